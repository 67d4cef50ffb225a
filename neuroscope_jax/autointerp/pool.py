"""The windows of a pass and, of each, on which features it is silent: where sequences without a feature come from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, UInt8

from neuroscope_jax.corpus.passages import OUTSIDE
from neuroscope_jax.corpus.samples import STRIDE
from neuroscope_jax.corpus.windows import WIDTH
from neuroscope_jax.errors import UserError


@dataclass(frozen=True, eq=False)
class Pool:
    """W windows, each from a sample of its own; 8 MB of bits for 4,096 of them and 16,384 features."""

    ids: Int[np.ndarray, "W width"]  # OUTSIDE behind the last token
    length: Int[np.ndarray, " W"]  # tokens
    sample: Int[np.ndarray, " W"]  # a number of the (document, sample) each comes from
    fired: UInt8[np.ndarray, "bytes W"]  # bit e % 8 of row e // 8: feature e fires somewhere in the window

    @classmethod
    def read(cls, table: Any, path: Path, width: int) -> "Pool":
        """From the table of windows at `path`. Raises UserError where their bits are not of `width` features."""
        bits = [np.frombuffer(fired, np.uint8) for fired in table["fired"].to_pylist()]
        wrong = [row for row in bits if len(row) * 8 < width]
        if wrong:
            raise UserError(f"{path}: fired has {len(wrong[0])} bytes, expected one bit for each of {width} features")
        lists = table["ids"].to_pylist()
        ids = np.full((len(lists), WIDTH), OUTSIDE, np.int32)
        for row, tokens in zip(ids, lists, strict=True):
            row[: len(tokens)] = tokens
        offset = table["offset"].to_numpy()
        fired = np.ascontiguousarray(np.stack(bits, axis=1)) if bits else np.zeros((-(-width // 8), 0), np.uint8)
        return cls(ids, np.sum(ids != OUTSIDE, axis=1), numbered(table["document"].to_numpy(), offset // STRIDE), fired)

    def silent(self, feature: int) -> Bool[np.ndarray, " W"]:
        """Which windows a feature fires nowhere in."""
        silent: Bool[np.ndarray, " W"] = (self.fired[feature // 8] & np.uint8(1 << feature % 8)) == 0
        return silent

    def holding(self, token: int) -> Bool[np.ndarray, " W"]:
        """Which windows a token is in."""
        holding: Bool[np.ndarray, " W"] = np.any(self.ids == token, axis=1)
        return holding


def numbered(document: Int[np.ndarray, " n"], sample: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """One number for each sample of each document."""
    number: Int[np.ndarray, " n"] = document.astype(np.int64) << 32 | sample
    return number
