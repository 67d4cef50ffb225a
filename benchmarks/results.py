"""What the processes of a run are told and what they report, as JSON between them and in the --json file."""

import statistics
from typing import Literal

import msgspec


class Plan(msgspec.Struct, frozen=True):
    """The orders of one process."""

    folder: str  # the checkpoint, with its SAE
    shape: str
    dtype: Literal["float32", "bfloat16"]
    platform: Literal["cpu", "gpu", "tpu"]
    tokens: int  # in each answer
    repeats: int
    prompts: tuple[int, ...] = ()  # lengths whose time to first token is measured; the shape's own where none are named
    quantization: Literal["none", "int8", "int4"] = "none"  # of our weights
    gguf: Literal["none", "q8_0"] = "none"  # quantization of llama.cpp's


class Spread(msgspec.Struct, frozen=True):
    """Median and extremes of a repeated measurement."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """The spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values))


class Start(msgspec.Struct, frozen=True):
    """One start of the engine."""

    load_seconds: float  # in which steps are compiled meanwhile
    start_seconds: float  # from loaded to serving
    compile_seconds: float  # of both, summed over threads, in XLA or in reading from the compile cache
    compiled: int  # programs that XLA compiled
    reused: int  # programs taken from the compile cache
    ready_seconds: float  # from the process's creation to serving, imports included


class StepCost(msgspec.Struct, frozen=True):
    """The decode step with and without tap, by turns, each waited for."""

    tapped_seconds: Spread
    bare_seconds: Spread
    overhead: Spread  # how much slower the tapped step is: ratios of neighbouring steps, less 1
    temporary_bytes: int  # of the tapped step
    bare_marks: list[str]  # traces of an SAE in the bare step's program
    tapped_marks: list[str]  # the same search in the tapped one, which must find some


class Ours(msgspec.Struct, frozen=True):
    """One dtype, served by JaxEngine."""

    start: Start
    second_start: Start | None  # in another process; filled in by the parent
    first_token_seconds: dict[str, Spread]  # by prompt length
    tokens_per_second: Spread  # with features
    read_speed: Spread  # bytes of memory a second, before and behind other answers
    share: Spread  # of what the faster of these two would allow, in such an answer
    step: StepCost
    recompiled: int  # programs that other sampling parameters made anew
    average_l0: float
    model_bytes: int
    sae_bytes: int
    peak_bytes: int
    ids: list[int]  # the greedy answer to the shortest prompt


class Peer(msgspec.Struct, frozen=True):
    """One program that is not this project's."""

    load_seconds: float
    first_token_seconds: dict[str, Spread]
    tokens_per_second: Spread
    peak_bytes: int
    ids: list[int]
    features: bool = True  # whether it reads features at each token


class Made(msgspec.Struct, frozen=True):
    """A file that a peer needs, in the cache folder."""

    path: str


class Bandwidth(msgspec.Struct, frozen=True):
    """Bytes a second read from memory, by how they were read."""

    device: str
    forms: dict[str, Spread]

    @property
    def best(self) -> float:
        """The fastest form's."""
        return max(spread.most for spread in self.forms.values())


class Run(msgspec.Struct):
    """Everything one command measured."""

    machine: dict[str, str]
    shape: str
    platform: str
    bandwidth: Bandwidth
    ours: dict[str, Ours]
    peers: dict[str, Peer]
    skipped: dict[str, str]  # what was asked for and not measured, and why
