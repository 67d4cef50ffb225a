"""Which SAE goes with which model: from what was asked for to one path, one layer and the ids of its labels."""

import dataclasses
import logging
import re
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi

from neuroscope_jax import platforms
from neuroscope_jax.config import NeuroscopeConfig, build_config, load_preset, preset_fields, preset_names
from neuroscope_jax.errors import UserError
from neuroscope_jax.flags import UsageError
from neuroscope_jax.models import hub, hub_pins
from neuroscope_jax.quantization import names as quantization

logger = logging.getLogger(__name__)

# The releases Neuronpedia carries by release and width: its name for the model, and the average L0 of the variant it
# took of each layer, layer 0 first. Labels of other pairs are known only where a preset names them.
PUBLISHED = {
    ("google/gemma-scope-2b-pt-res", "16k"): (
        "gemma-2-2b",
        (105, 102, 141, 59, 124, 68, 70, 69, 71, 73, 77, 80, 82, 84, 84, 78, 78, 77, 74, 73, 71, 70, 72, 75, 73, 116),
    ),
}
USUAL_L0 = 100  # elsewhere the variant nearest to this, which is also how the published ones were picked
PATIENCE = 5.0  # seconds for the hub's listing

LAYER = re.compile(r"layer_(\d+)")
VARIANT = re.compile(r"layer_(\d+)/width_(\w+)/average_l0_(\d+)")
OTHER_HOOK = re.compile(r"gemma-scope-[\w-]*-(att|mlp|transcoders)\b")
OTHER_HOOKS = {"att": "attention heads", "mlp": "the outputs of MLPs", "transcoders": "the inputs of MLPs"}
SAE_FIELDS = {"sae_repo", "sae_path", "sae_local_path"}
LABEL_FIELDS = {"neuronpedia_model_id", "neuronpedia_sae_id"}


FIELDS = {"model": "model_id", "sae": "sae_repo"}  # flags whose name is not the config field's own


def from_flags(given: dict[str, Any]) -> NeuroscopeConfig:
    """The config that a command's flags mean; `given` holds those that were given. Raises UserError."""
    given = dict(given)
    chosen = {given.pop(name) for name in ("platform", "device") if name in given}
    if len(chosen) > 1:
        raise UsageError("--platform and --device say different things; they are one flag")
    for name in chosen:
        given["platform"] = platforms.parse(name)
    if "quantization" in given:
        given["quantization"] = quantization.parse(given["quantization"])
    preset, layer, width = (given.pop(name, None) for name in ("config", "sae_layer", "sae_width"))
    return resolve(preset, {FIELDS.get(name, name): value for name, value in given.items()}, layer, width)


def resolve(
    preset: str | None, asked: dict[str, Any], sae_layer: int | None = None, sae_width: str | None = None
) -> NeuroscopeConfig:
    """The config of a preset (a name, a .toml file or None) with the fields in `asked` replaced.

    What hangs on a replaced field follows it: the path on layer and width, the layer on the path, the label ids on
    the whole pair. Raises UserError for what is unknown, and where a listing needs a network that is not there.
    """
    sae_asked = bool(SAE_FIELDS & set(asked)) or sae_layer is not None or sae_width is not None
    if preset is None and not sae_asked:
        preset = _preset_for(asked.get("model_id"))
    given = preset_fields(preset) if preset else dataclasses.asdict(NeuroscopeConfig())
    base = load_preset(preset) if preset else NeuroscopeConfig()
    fields = given | asked
    if sae_asked and "sae_local_path" not in asked:
        fields |= {"sae_local_path": None, "sae_path": _sae_path(base, asked, sae_layer, sae_width)}
    if sae_asked or "target_layer" not in given:
        fields["target_layer"] = _layer(fields, sae_layer, base.target_layer if preset else None)
    config = build_config(fields, preset or "flags")
    _check_hook(config)
    same = (config.model_id, config.sae_id) == (base.model_id, base.sae_id)
    return config if same and set(given) >= LABEL_FIELDS else _with_label_ids(config, base)


def _preset_for(model_id: str | None) -> str | None:
    """The bundled preset of a model named alone, so that it gets an SAE that fits it."""
    for name in preset_names() if model_id else ():
        if preset_fields(name).get("model_id") == model_id:
            logger.info("preset %s taken for model %s", name, model_id)
            return name
    return None


def _sae_path(base: NeuroscopeConfig, asked: dict[str, Any], layer: int | None, width: str | None) -> str:
    """The path asked for, else the variant of the layer and width asked for, either taken from the preset if absent."""
    if "sae_path" in asked:
        if layer is not None or width is not None:
            logger.warning("--sae-path overrides --sae-layer and --sae-width")
        return str(asked["sae_path"])
    if not (usual := VARIANT.search(base.sae_path)):
        raise UserError(f"{base.sae_path} has no variants by layer and width; name the file with --sae-path")
    repo = asked.get("sae_repo", base.sae_repo)
    layer = int(usual[1]) if layer is None else layer
    width = width or usual[2]
    if (repo, layer, width) == (base.sae_repo, int(usual[1]), usual[2]):
        return base.sae_path
    path = _variant(repo, layer, width)
    logger.info("SAE %s/%s taken for layer %d, width %s", repo, path, layer, width)
    return path


def _variant(repo: str, layer: int, width: str) -> str:
    _, published = PUBLISHED.get((repo, width), ("", ()))
    if 0 <= layer < len(published):
        return f"layer_{layer}/width_{width}/average_l0_{published[layer]}/params.npz"
    folder = f"layer_{layer}/width_{width}"
    found = {int(match[3]): path for path in _files(repo, folder) if (match := VARIANT.search(path))}
    if not found:
        raise UserError(f"--sae {repo}: no SAE in {folder}; choose another --sae-layer or --sae-width, or --sae-path")
    return found[min(found, key=lambda l0: abs(l0 - USUAL_L0))]


def _files(repo: str, folder: str) -> list[str]:
    """The SAE files under a folder of a local directory or of a hub repository, paths from its top."""
    local = hub.DEMO_FOLDER / "sae" if repo == hub.DEMO else Path(repo).expanduser()
    if repo == hub.DEMO or local.is_dir():
        return [p.relative_to(local).as_posix() for p in (local / folder).rglob("params.npz")]
    try:
        siblings = HfApi().model_info(repo, revision=hub_pins.commit_of(repo), timeout=PATIENCE).siblings or []
    except Exception as error:  # the client library's own and those of whatever transport it uses
        raise UserError(
            f"--sae {repo}: the SAEs it has in {folder} cannot be listed ({type(error).__name__}); "
            "name one with --sae-path (`neuroscope_jax sae list` shows those on this machine) or --sae-local-path"
        ) from error
    paths = (s.rfilename for s in siblings)
    return [p for p in paths if p.startswith(folder + "/") and p.endswith("params.npz")]


def _layer(fields: dict[str, Any], sae_layer: int | None, otherwise: int | None) -> int:
    """The block whose output the SAE reads: as its path says, else --sae-layer, else the preset."""
    path = fields.get("sae_local_path") or fields.get("sae_path") or NeuroscopeConfig.sae_path
    named = LAYER.search(path)
    layer = int(named[1]) if named else sae_layer if sae_layer is not None else otherwise
    if layer is None:
        raise UserError(f"{path}: the path names no layer_N; say with --sae-layer which layer this SAE reads")
    if sae_layer not in (None, layer):
        logger.warning("layer %d is tapped, as %s says, not --sae-layer %d", layer, path, sae_layer)
    return layer


def _check_hook(config: NeuroscopeConfig) -> None:
    """Gemma Scope's other SAEs may have the right shape: only their names tell that they read something else."""
    found = OTHER_HOOK.search(config.sae_id)
    if found:
        raise UserError(
            f"{config.sae_id}: {found[0]} is trained on {OTHER_HOOKS[found[1]]}, but features are read from the "
            "residual stream after a block; choose an SAE of a release whose name ends in -res"
        )


def _with_label_ids(config: NeuroscopeConfig, base: NeuroscopeConfig) -> NeuroscopeConfig:
    """Published label ids where they belong to this very pair, else ids of its own: no label is borrowed."""
    ids = _published_ids(config, base)
    if ids is None:
        logger.info("no published labels belong to %s on %s", config.sae_id, config.model_id)
        ids = Path(config.model_id).name, re.sub(r"[^\w.]+", "-", config.sae_id).strip("-")
    return dataclasses.replace(config, neuronpedia_model_id=ids[0], neuronpedia_sae_id=ids[1])


def _published_ids(config: NeuroscopeConfig, base: NeuroscopeConfig) -> tuple[str, str] | None:
    known = [base, *map(load_preset, preset_names())]
    ids = [(c.neuronpedia_model_id, c.neuronpedia_sae_id) for c in known if c.sae_id == config.sae_id]
    variant = VARIANT.search(config.sae_id)
    for (repo, width), (model, average_l0) in PUBLISHED.items():
        # By the release's own name, so that a local copy of it is known too.
        if variant and variant[2] == width and repo.rpartition("/")[2] in config.sae_id:
            layer, l0 = int(variant[1]), int(variant[3])
            ids += [(model, f"{layer}-gemmascope-res-{width}")] if average_l0[layer : layer + 1] == (l0,) else []
    # A base model's labels serve its tuned versions and copies: gemma-2-2b's serve …/models--google--gemma-2-2b-it/…
    return next((pair for pair in ids if pair[0] in config.model_id), None)
