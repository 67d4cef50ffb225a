"""NeuroscopeConfig: everything a run can be told, with the defaults of the specification, and the presets by name."""

import dataclasses
import difflib
import math
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import platformdirs

from neuroscope_jax.errors import UserError

FilterMode = Literal["none", "frequency", "surprise", "combined"]
Platform = Literal["auto", "cpu", "gpu", "tpu"]
DType = Literal["auto", "float32", "bfloat16"]
InputNorm = Literal["auto", "none", "rms", "scalar"]
Quantization = Literal["none", "int8", "int4"]


@dataclasses.dataclass(frozen=True)
class CorpusSource:
    """Where texts come from, one [[corpus]] table of a TOML file: a path or a dataset of the hub."""

    path: str | None = None  # a file or folder; "demo" is the bundled corpus
    dataset: str | None = None  # hub id
    config: str | None = None  # the dataset's configuration
    split: str = "train"
    text_field: str = "text"  # field or column that holds the text
    weight: float = 1.0  # share of the documents, relative to the other sources

    def __post_init__(self) -> None:
        if bool(self.path) == bool(self.dataset):
            found = f"path = {self.path!r} and dataset = {self.dataset!r}"
            raise UserError(f"corpus: a source has {found}; expected one of the two, a file or folder or a hub id")
        if self.path and self.config:
            raise UserError(f"corpus: config is {self.config!r} beside path = {self.path!r}; only a dataset has one")
        if not (self.weight > 0 and math.isfinite(self.weight)):
            raise UserError(f"corpus: weight is {self.weight!r}; expected a number above 0")
        for name in ("split", "text_field"):
            if not getattr(self, name):
                raise UserError(f"corpus: {name} is empty; leave it out for the default")


@dataclasses.dataclass(frozen=True)
class NeuroscopeConfig:
    """One model, one SAE on its residual stream, and how to serve them."""

    model_id: str = "google/gemma-2-2b-it"  # hub id, local folder, or "demo"
    sae_repo: str = "google/gemma-scope-2b-pt-res"
    sae_path: str = "layer_20/width_16k/average_l0_71/params.npz"
    sae_local_path: str | None = None  # a file; bypasses the hub
    target_layer: int = 20  # output of this 0-indexed block
    top_k: int = 10
    neuronpedia_model_id: str = "gemma-2-2b"
    neuronpedia_sae_id: str = "20-gemmascope-res-16k"
    broadcast_buffer_size: int = 1024  # events kept for a reader that lags
    feature_filter: FilterMode = "frequency"
    filter_threshold: float = 0.5  # firing rate above which a feature counts as always on
    calibration_path: str | None = None
    corpus: tuple[CorpusSource, ...] = (CorpusSource(dataset="Salesforce/wikitext", config="wikitext-103-raw-v1"),)

    sae_input_norm: InputNorm = "auto"
    platform: Platform = "auto"
    dtype: DType = "auto"  # float32 on CPU where it fits in memory, else bfloat16
    quantization: Quantization = "none"  # of the served model's weights; activations stay in dtype
    model_parallel: int = 1  # devices that the served model is split over
    lookahead: bool = False  # try what followed the last words before, several tokens to a step
    context_length: int = 4096  # prompt and answer together, in tokens
    queue_size: int = 32  # requests waiting for the one device
    heartbeat_seconds: float = 15.0  # between comments in a stream with nothing to say; 0 for none
    host: str = "127.0.0.1"
    port: int = 8080
    features_port: int = 8081
    api_key: str | None = dataclasses.field(default=None, repr=False)  # asked for on both ports
    model_aliases: tuple[str, ...] = ()  # further names that clients may ask for the model by
    allowed_hosts: tuple[str, ...] = ()  # names, beside this machine's own, that clients may call the server by
    allowed_origins: tuple[str, ...] = ()  # pages, beside those from this machine, that may use it; "*" for any

    def __post_init__(self) -> None:
        least_of = {"top_k": 1, "broadcast_buffer_size": 1, "model_parallel": 1, "context_length": 2, "queue_size": 1}
        for name, least in least_of.items():
            _check(name, getattr(self, name) >= least, getattr(self, name), f"at least {least}")
        _check("target_layer", self.target_layer >= 0, self.target_layer, "a 0-indexed block, 0 or more")
        _check("filter_threshold", 0 <= self.filter_threshold <= 1, self.filter_threshold, "a firing rate from 0 to 1")
        _check("heartbeat_seconds", 0 <= self.heartbeat_seconds < 1e6, self.heartbeat_seconds, "seconds, or 0 for none")
        for name in ("port", "features_port"):
            _check(name, 0 <= getattr(self, name) <= 65535, getattr(self, name), "a port from 0 to 65535")
        same = self.port == self.features_port != 0
        _check("features_port", not same, self.features_port, f"a port other than the chat port {self.port}")
        _check_access(self)
        _check("corpus", len(self.corpus) > 0, (), EXPECTED["corpus"])
        for name, allowed in CHOICES.items():
            _check(name, getattr(self, name) in allowed, getattr(self, name), f"one of {', '.join(allowed)}")

    @property
    def sae_id(self) -> str:
        """Repository and folder of the SAE, e.g. google/gemma-scope-2b-pt-res/layer_20/width_16k/average_l0_71."""
        return self.sae_local_path or f"{self.sae_repo}/{self.sae_path.removesuffix('/params.npz')}"


CHOICES: dict[str, tuple[str, ...]] = {
    "feature_filter": get_args(FilterMode),
    "platform": get_args(Platform),
    "dtype": get_args(DType),
    "sae_input_norm": get_args(InputNorm),
    "quantization": get_args(Quantization),
}

# Where the bare type says too little.
EXPECTED = {"corpus": "one or more [[corpus]] tables", "api_key": "text"}
SECRET = ("api_key",)  # never repeated in a message
API_KEY = re.compile(r"[!-~]{1,512}")
ALIAS = re.compile(r"[\w.:/-]+", re.ASCII)
HOST = re.compile(r"[\w.:-]+", re.ASCII)
ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[\w.:\[\]-]+", re.ASCII | re.IGNORECASE)
# Where the flag is not the field's own name.
FLAGS = {"target_layer": "--sae-layer", "corpus": "no flag"}


def _check(name: str, holds: bool, found: object, expected: str) -> None:
    if not holds:
        flag = FLAGS.get(name, "--" + name.replace("_", "-"))
        raise UserError(f"{name} ({flag}) is {found!r}; expected {expected}")


def _check_access(config: NeuroscopeConfig) -> None:
    key = config.api_key
    _check("api_key", key is None or bool(API_KEY.fullmatch(key)), "not shown", "1 to 512 ASCII characters, no spaces")
    for name, pattern, expected in (
        ("model_aliases", ALIAS, "names without spaces, such as gpt-4o-mini"),
        ("allowed_hosts", HOST, "names or addresses without scheme and port, such as neuroscope.lan"),
        ("allowed_origins", ORIGIN, "origins such as https://chat.example, or * for any page"),
    ):
        for value in getattr(config, name):
            _check(name, bool(pattern.fullmatch(value)), value, expected)


def preset_names() -> list[str]:
    """Names that `--config` accepts besides a path."""
    return sorted(file.stem for file in _presets_folder().glob("*.toml"))


def load_preset(name_or_path: str, **overrides: Any) -> NeuroscopeConfig:
    """A preset by name, or a TOML file by path, with single fields replaced.

    Raises UserError for an unknown name, an unreadable file, an unknown field or a value of the wrong type.
    """
    return build_config({**preset_fields(name_or_path), **overrides}, source=name_or_path)


def preset_fields(name_or_path: str) -> dict[str, Any]:
    """Only what a preset or TOML file itself says, not yet checked. Raises UserError where it cannot be read."""
    try:
        return tomllib.loads(_preset_text(name_or_path))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"--config {name_or_path}: not valid TOML: {error}") from error


def build_config(fields: dict[str, Any], source: str = "flags") -> NeuroscopeConfig:
    """A checked config from plain values. Raises UserError naming the field, or the nearest one for an unknown name."""
    _check_names(fields, NeuroscopeConfig, source)
    tables = fields.get("corpus")
    for table in tables if isinstance(tables, (list, tuple)) else ():
        _check_names(table if isinstance(table, dict) else {}, CorpusSource, f"{source}: corpus")
    try:
        return msgspec.convert(fields, NeuroscopeConfig)
    except msgspec.ValidationError as error:
        name = str(error).partition("`$.")[2].rstrip("`")
        kind = str(error).partition(",")[0].removeprefix("Expected ").replace("`", "")
        expected = "one of " + ", ".join(CHOICES[name]) if name in CHOICES else EXPECTED.get(name, kind)
        raise UserError(f"{source}: {name} is {_shown(fields, name)}; expected {expected}") from error


def _check_names(fields: dict[str, Any], kind: type, source: str) -> None:
    known = [f.name for f in dataclasses.fields(kind)]
    for name in fields:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known fields: {', '.join(known)}"
            raise UserError(f"{source}: unknown field {name!r}{hint}")


def _shown(fields: dict[str, Any], name: str) -> str:
    return "not shown" if name in SECRET else repr(_value_at(fields, name))


def _value_at(fields: dict[str, Any], place: str) -> object:
    """What stands at a place as msgspec writes it: top_k, or corpus[0].weight."""
    value: Any = fields
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", place):
        value = value[int(index)] if index else value.get(name)
    return value


def _preset_text(name_or_path: str) -> str:
    path = Path(name_or_path)
    if path.suffix == ".toml":
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"--config {name_or_path}: cannot be read: {error}") from error
    names = preset_names()
    if name_or_path not in names:
        raise UserError(f"--config {name_or_path}: no such preset; there are {', '.join(names)}, or give a .toml file")
    return (_presets_folder() / f"{name_or_path}.toml").read_text(encoding="utf-8")


def _presets_folder() -> Path:
    """configs/: beside this package in a checkout, inside it where it was installed from a wheel."""
    package = Path(__file__).parent
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def cache_folder() -> Path:
    """Where everything downloaded or computed is kept: NEUROSCOPE_CACHE, or ~/.cache/neuroscope on Linux."""
    return Path(os.environ.get("NEUROSCOPE_CACHE") or platformdirs.user_cache_path("neuroscope"))
