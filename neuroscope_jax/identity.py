"""Which model and which SAE something was computed with, told from a few kilobytes of their files.

Names are not enough: a base model and its tuned version share label ids, and a local folder may hold anything.
"""

import dataclasses
import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from neuroscope_jax.files import read_json, what_it_is
from neuroscope_jax.tensor_file import tensors

SHOWN = 8  # hex digits of a hash in messages
# Fields of config.json that say who saved the checkpoint and how, not what it is.
OF_THE_SAVER = ("_name_or_path", "transformers_version")
PROBE = 4096  # bytes


@dataclasses.dataclass(frozen=True)
class PairIdentity:
    """A model, an SAE and where the one reads the other. Equal hashes mean the same files wherever they lie."""

    model_id: str
    model_sha256: str  # of config.json, every tensor's name, type and shape, and probes of its content
    sae_id: str
    sae_sha256: str  # of the names, sizes and CRCs in the archive's directory
    width: int  # features of the SAE
    layer: int  # the block whose output the SAE reads

    def misfits(self, other: "PairIdentity") -> list[str]:
        """What differs between the pair something was made with (self) and the one in use, each with both ids."""
        facts = {
            "model": (_named(self.model_id, self.model_sha256), _named(other.model_id, other.model_sha256)),
            "SAE": (_named(self.sae_id, self.sae_sha256), _named(other.sae_id, other.sae_sha256)),
            "width": (str(self.width), str(other.width)),
            "layer": (str(self.layer), str(other.layer)),
        }
        same = {"model": self.model_sha256 == other.model_sha256, "SAE": self.sae_sha256 == other.sae_sha256}
        return [
            f"another {name} ({made}; in use is {used})"
            for name, (made, used) in facts.items()
            if not same.get(name, made == used)
        ]


def identify(config: NeuroscopeConfig, model_folder: Path, sae_path: Path, width: int) -> PairIdentity:
    """The identity of the pair of these files. Raises UserError for a file that is absent or not what it should be."""
    return PairIdentity(
        model_id=config.model_id,
        model_sha256=model_hash(model_folder),
        sae_id=config.sae_id,
        sae_sha256=_sae_hash(sae_path),
        width=width,
        layer=config.target_layer,
    )


def _named(name: str, sha256: str) -> str:
    return f"{name}, sha256 {sha256[:SHOWN]}…"


def model_hash(folder: Path) -> str:
    """Does not depend on how the tensors are spread over shards; a tuned or patched tensor changes it."""
    config = {k: v for k, v in read_json(folder / "config.json", dict).items() if k not in OF_THE_SAVER}
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for key, dtype, shape, content in sorted(t for file in _weight_files(folder) for t in _tensors(file)):
        digest.update(f"\n{key} {dtype} {shape}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _weight_files(folder: Path) -> list[Path]:
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.exists() or not index.exists():
        return [single]
    return [folder / name for name in sorted(set(read_json(index, _Index).weight_map.values()))]


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def _tensors(path: Path) -> Iterator[tuple[str, str, tuple[int, ...], bytes]]:
    """(key, dtype, shape, content) of each tensor; of a large one PROBE bytes at its start, middle and end."""
    found = tensors(path)
    try:
        with path.open("rb") as file:
            for key, tensor in found.items():
                yield key, tensor.dtype, tensor.shape, _probed(file, tensor.start, tensor.end)
    except OSError as error:
        raise UserError(f"{path}: {what_it_is(path)}, expected safetensors ({error})") from error


def _probed(file: BinaryIO, start: int, end: int) -> bytes:
    size = end - start
    places = [start] if size <= 3 * PROBE else [start, start + (size - PROBE) // 2, end - PROBE]
    content = b""
    for place in places:
        file.seek(place)
        content += file.read(size if len(places) == 1 else PROBE)
    return content


def _sae_hash(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted((m.filename, m.file_size, m.CRC) for m in archive.infolist())
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such SAE file; check --sae-path or --sae-local-path") from error
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise UserError(f"{path}: {what_it_is(path)}, expected an .npz archive ({error})") from error
    return hashlib.sha256(json.dumps(members).encode()).hexdigest()
