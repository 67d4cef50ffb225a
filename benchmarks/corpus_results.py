"""What the processes of a corpus run are told and what they report, as JSON between them and in the --json file."""

import statistics
from typing import Literal

import msgspec


class PassPlan(msgspec.Struct, frozen=True):
    """The orders of one process: a pass over half of the samples, then over all of them."""

    folder: str  # the checkpoint
    sae: str  # the file
    layer: int  # tapped
    samples: str  # a .npy file of token ids [samples, 128], BOS first in each
    dtype: Literal["float32", "bfloat16"]
    platform: Literal["cpu", "gpu", "tpu"]


class Took(msgspec.Struct, frozen=True):
    """How long something ran."""

    seconds: float
    cpu_seconds: float  # of all threads together, which tells more where other programs share the cores


class Passed(msgspec.Struct, frozen=True):
    """One pass over some of the samples."""

    tokens: int  # all that the model read, BOS too
    took: Took
    peak_bytes: int  # held during this pass
    firings: int  # of features at tokens other than BOS

    @property
    def tokens_per_second(self) -> float:
        """Read by the model."""
        return self.tokens / self.took.seconds

    @property
    def tokens_per_cpu_second(self) -> float:
        """Read by the model in a second of one core's time."""
        return self.tokens / self.took.cpu_seconds


class PeerPass(msgspec.Struct, frozen=True):
    """Another program's pass in one process."""

    half: Passed
    whole: Passed
    features: int | None = None  # that it collected, where not all


class OurPass(msgspec.Struct, frozen=True):
    """This project's pass in one process, and its step beside the bare forward, by turns and each waited for."""

    half: Passed
    whole: Passed
    rows: int  # of a batch
    bare: list[Took]  # the truncated forward, one batch each
    full: list[Took]  # the same batch with SAE, statistics and examples
    state_bytes: int


class CorpusRun(msgspec.Struct):
    """Everything about one pair; each process ran `repeats` times, in rounds."""

    pair: str
    samples: int
    ours: dict[str, list[OurPass]]
    peers: dict[str, list[PeerPass]]
    skipped: dict[str, str]  # what was asked for and not measured, and why


class Report(msgspec.Struct):
    """Everything one command measured."""

    machine: dict[str, str]
    platform: str
    runs: list[CorpusRun]


def overhead(measured: list[OurPass]) -> Took:
    """What collecting costs over the bare forward: median of the ratios of neighbouring batches, less 1."""
    pairs = [pair for one in measured for pair in zip(one.full, one.bare, strict=True)]
    return Took(
        statistics.median(full.seconds / bare.seconds for full, bare in pairs) - 1,
        statistics.median(full.cpu_seconds / bare.cpu_seconds for full, bare in pairs) - 1,
    )
