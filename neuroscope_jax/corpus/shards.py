"""What one host found, in a file, so that the parts of a pass can be put together by whoever has them all."""

import dataclasses
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from neuroscope_jax.corpus import collected, passages
from neuroscope_jax.corpus.collected import Collected, Entries
from neuroscope_jax.corpus.hosts import Hosts
from neuroscope_jax.corpus.passages import Passages
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance
from neuroscope_jax.files import set_aside, what_it_is


@dataclasses.dataclass(frozen=True)
class Shard:
    """The part of one host."""

    collected: Collected
    passages: Passages
    provenance: Provenance
    hosts: Hosts


def save(path: Path, shard: Shard) -> None:
    """Write a shard, whole or not at all. Raises UserError where it cannot."""
    about = msgspec.json.encode({"provenance": shard.provenance, "hosts": shard.hosts}).decode()
    with set_aside(path) as (aside,), aside.open("wb") as file:
        np.savez(file, about=np.array(about), **_flat("c", shard.collected), **_flat("p", shard.passages))


def load(path: Path) -> Shard:
    """Read a shard. Raises UserError for any other file."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            about = msgspec.json.decode(str(arrays["about"]), type=_About)
            parts = {name: arrays[name] for name in arrays.files}
        shard = Shard(_collected(parts), _passages(parts), about.provenance, about.hosts)
        _check(shard)
        return shard
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; expected a shard of `calibrate run --distributed`") from error
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, msgspec.DecodeError) as error:
        raise UserError(f"{path}: {what_it_is(path)}, expected a shard of `calibrate run --distributed`") from error


def merge(paths: Sequence[Path]) -> tuple[Collected, Passages, Provenance]:
    """One pass out of the shards of all its hosts. Raises UserError where one is missing, double or of another pass."""
    shards = [load(path) for path in paths]
    first = shards[0]
    for path, shard in zip(paths, shards, strict=True):
        if shard.provenance.run != first.provenance.run or shard.hosts.count != first.hosts.count:
            raise UserError(f"{path}: of another pass ({_named(shard)}) than {paths[0]} ({_named(first)})")
    found = sorted(shard.hosts.index for shard in shards)
    if found != list(range(first.hosts.count)):
        raise UserError(
            f"{paths[0].parent}: shards of hosts {found} of a pass by {first.hosts.count}, numbered from 0; "
            "each must be there once"
        )
    shards.sort(key=lambda shard: shard.hosts.index)
    whole = collected.joined([shard.collected for shard in shards])
    return whole, passages.joined([shard.passages for shard in shards]), first.provenance


def _check(shard: Shard) -> None:
    """Raises ValueError where the columns do not belong together."""
    width, many = shard.provenance.pair.width, len(shard.passages.document)
    found = shard.collected
    columns = [getattr(found, name) for name in ("count", "mean", "m2", "histogram")]
    lists = [vars(entries) for entries in (found.top, found.drawn)]
    sizes = {len(column) for column in (*columns, *(c for entries in lists for c in entries.values()))}
    shapes = [{column.shape for column in entries.values()} for entries in lists]
    cited = {len(column) for column in vars(shard.passages).values()}
    if sizes != {width} or any(len(s) != 1 for s in shapes) or cited != {many} or found.windows.ndim != 2:
        raise ValueError("columns of different lengths")
    if shard.passages.slot.max(initial=-1) >= len(found.windows):
        raise ValueError("a window that is not in the pool")


class _About(msgspec.Struct):
    provenance: Provenance
    hosts: Hosts


def _named(shard: Shard) -> str:
    p = shard.provenance
    return (
        f"{p.pair.model_id}, {p.pair.sae_id}, {p.samples} samples of {p.corpus}, {shard.hosts.count} hosts, run {p.run}"
    )


def _flat(prefix: str, value: Any) -> dict[str, Any]:
    """The fields of nested dataclasses under dotted names."""
    flat: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        found, name = getattr(value, field.name), f"{prefix}.{field.name}"
        flat |= _flat(name, found) if dataclasses.is_dataclass(found) else {name: found}
    return flat


def _fields(prefix: str, kind: type, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f.name: arrays[f"{prefix}.{f.name}"] for f in dataclasses.fields(kind) if f"{prefix}.{f.name}" in arrays}


def _collected(arrays: dict[str, np.ndarray]) -> Collected:
    fields: dict[str, Any] = _fields("c", Collected, arrays)
    entries = {name: Entries(**_fields(f"c.{name}", Entries, arrays)) for name in ("top", "drawn")}
    return Collected(**fields | {"tokens": int(fields["tokens"])} | entries)


def _passages(arrays: dict[str, np.ndarray]) -> Passages:
    return Passages(**_fields("p", Passages, arrays))
