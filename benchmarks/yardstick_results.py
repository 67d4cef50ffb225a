"""Everything that `python -m benchmarks` measures, as JSON between its processes and in the --json file."""

import msgspec

from benchmarks.corpus_results import CorpusRun
from benchmarks.results import Run, Spread, Start


class Chat(msgspec.Struct, frozen=True):
    """The tenth turn of a chat whose earlier turns the engine has served, beside a prompt of the new part's length."""

    prompt_tokens: int  # of the tenth turn
    new_tokens: int  # of them, what the engine has not read: the question, and the last token of the answer before
    turn_seconds: Spread  # to the first token
    fresh_seconds: Spread
    ratio: Spread


class Lag(msgspec.Struct, frozen=True):
    """How late an event loop wakes, in seconds, while the engine beside it reads a prompt."""

    prompt_tokens: int
    wakes: int
    median: float
    percentile_99: float
    most: float


class FirstToken(msgspec.Struct, frozen=True):
    """Time to the first token in one dtype."""

    seconds: dict[str, Spread]  # by prompt length
    chat: Chat | None  # of this project alone
    lag: Lag | None = None  # the same


class Growth(msgspec.Struct, frozen=True):
    """The decode step as the context fills, in one dtype."""

    context: int
    step_seconds: dict[str, Spread]  # by position
    peak_bytes: dict[str, Spread]  # of a request that reaches that position
    short_context: int
    short_seconds: Spread  # at the common position, in an engine of that context
    common_position: int
    ratio: Spread  # of the steps there, whole context over short, by turns


class Lookahead(msgspec.Struct, frozen=True):
    """Decoding with lookahead beside decoding without, by turns, in one dtype."""

    plain: Spread  # tokens a second of a text that can be foreseen, without
    foreseen: Spread  # with
    gain: Spread  # their ratios
    elsewhere: Spread  # the same ratios where nothing can be foreseen


class Starts(msgspec.Struct, frozen=True):
    """Starts of one dtype, each in a process of its own, by turns."""

    cold: list[Start]  # nothing compiled is kept, and the files have left the memory where the system allows it
    warm: list[Start]  # with what the cold one left
    read_seconds: list[float]  # reading every byte of the files once, when they are in memory


class Yardstick(msgspec.Struct):
    """What one command measured, and with what orders, so that it can go on where it was interrupted."""

    tokens: int
    repeats: int
    decode: Run
    first_token: dict[str, FirstToken] = {}  # by program
    growth: dict[str, Growth] = {}  # by dtype
    lookahead: dict[str, Lookahead] = {}  # by dtype
    start: dict[str, Starts] = {}  # by dtype
    corpus: CorpusRun | None = None
    skipped: dict[str, str] = {}  # "section: program" that was asked for and cannot be measured here, and why
    failed: dict[str, str] = {}  # the same of programs that ended with an error
