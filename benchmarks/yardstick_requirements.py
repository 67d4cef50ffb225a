"""What the yardstick is held to on the 2B shape: each requirement, and how its figure is found."""

import dataclasses
import statistics
from collections.abc import Callable

from benchmarks.corpus_results import OurPass, PeerPass
from benchmarks.results import Ours, Peer
from benchmarks.yardstick_results import Yardstick

DTYPE = "bfloat16"
TIMES_TORCH = 1.6
SHARE_OF_LIMIT = 0.8
TAP_BESIDE_ITS_BYTES = 0.01  # of the step
PREFILL = "512"
SHARE_OF_TORCH_PREFILL = 0.9
TENTH_TURN = 1.3
WHOLE_CONTEXT = 1.05
LOOP_LAG = 0.020  # seconds
LOOKAHEAD_ELSEWHERE = 0.97  # 3 % are within what two equal runs differ by
WARM_START = 5.0  # seconds
TIMES_DELPHI = 2.0

Found = tuple[str, bool]  # the figure, and whether it holds


@dataclasses.dataclass(frozen=True)
class Figures:
    """The figures of a run, where it has them."""

    yardstick: Yardstick

    def times_torch(self) -> Found | None:
        """Decoding beside PyTorch with a hook and the SAE."""
        return self._times(f"torch-{DTYPE}", DTYPE, TIMES_TORCH)

    def share_of_limit(self) -> Found | None:
        """Of what reading weights and encoder once a token allows."""
        if (ours := self._ours(DTYPE)) is None:
            return None
        share = ours.share.median
        limit = ours.read_speed.median / (ours.model_bytes + ours.sae_bytes)
        return f"{share:.2f} of {limit:.2f} tokens/s", share >= SHARE_OF_LIMIT

    def beside_llama(self) -> Found | None:
        """With features, beside plain decoding of as many bytes."""
        return self._times("llama-bf16", DTYPE, 1)

    def beside_llama_q8_0(self) -> Found | None:
        """The same in eight bits."""
        return self._times("llama-q8_0", "int8", 1)

    def tap(self) -> Found | None:
        """Median of the ratios of neighbouring steps, beside one read of the encoder."""
        if (ours := self._ours(DTYPE)) is None:
            return None
        read = ours.sae_bytes / ours.read_speed.median / ours.step.bare_seconds.median
        cost, allowed = ours.step.overhead.median, read + TAP_BESIDE_ITS_BYTES
        return f"{cost:+.1%}; allowed {allowed:+.1%}", cost <= allowed

    def prefill(self) -> Found | None:
        """Time to the first token, as a speed beside PyTorch's."""
        ours, peer = (self.yardstick.first_token.get(name) for name in (DTYPE, f"torch-{DTYPE}"))
        if ours is None or peer is None or PREFILL not in ours.seconds.keys() & peer.seconds.keys():
            return None
        times = peer.seconds[PREFILL].median / ours.seconds[PREFILL].median
        return f"{times:.2f} times", times >= SHARE_OF_TORCH_PREFILL

    def tenth_turn(self) -> Found | None:
        """Beside a fresh prompt of the new part's length."""
        found = self.yardstick.first_token.get(DTYPE)
        if found is None or found.chat is None:
            return None
        ratio = found.chat.ratio.median
        return f"{ratio:.2f} times", ratio <= TENTH_TURN

    def loop_lag(self) -> Found | None:
        """The latest that an event loop woke while the longest prompt was read."""
        found = self.yardstick.first_token.get(DTYPE)
        if found is None or found.lag is None:
            return None
        return f"{1e3 * found.lag.most:.1f} ms", found.lag.most < LOOP_LAG

    def whole_context(self) -> Found | None:
        """The step at the same position in a short context."""
        if (found := self.yardstick.growth.get(DTYPE)) is None:
            return None
        return f"{found.ratio.median:.3f} times", found.ratio.median <= WHOLE_CONTEXT

    def lookahead(self) -> Found | None:
        """Where there is nothing to gain."""
        if (found := self.yardstick.lookahead.get(DTYPE)) is None:
            return None
        return f"{found.elsewhere.median:.3f} times", found.elsewhere.median >= LOOKAHEAD_ELSEWHERE

    def warm_start(self) -> Found | None:
        """From the creation of the process to serving."""
        starts = self.yardstick.start.get(DTYPE)
        if starts is None or not starts.warm:
            return None
        ready = statistics.median(start.ready_seconds for start in starts.warm)
        allowed = WARM_START + statistics.median(starts.read_seconds)
        return f"{ready:.1f} s; allowed {allowed:.1f} s", ready <= allowed

    def corpus(self) -> Found | None:
        """Tokens a second of the pass."""
        run = self.yardstick.corpus
        if run is None or not (run.ours.get(DTYPE) and run.peers.get(f"delphi-{DTYPE}")):
            return None
        times = _speed(run.ours[DTYPE]) / _speed(run.peers[f"delphi-{DTYPE}"])
        return f"{times:.2f} times", times >= TIMES_DELPHI

    def _times(self, peer: str, program: str, least: float) -> Found | None:
        ours, its = self._ours(program), self.yardstick.decode.peers.get(peer)
        if ours is None or its is None:
            return None
        times = _per_second(ours) / _per_second(its)
        return f"{times:.2f} times", times >= least

    def _ours(self, program: str) -> Ours | None:
        return self.yardstick.decode.ours.get(program)


def _per_second(measured: Ours | Peer) -> float:
    return measured.tokens_per_second.median


def _speed(measured: list[OurPass] | list[PeerPass]) -> float:
    return statistics.median(one.whole.tokens_per_second for one in measured)


REQUIREMENTS: tuple[tuple[str, Callable[[Figures], Found | None]], ...] = (
    (f"bfloat16 with features at least {TIMES_TORCH} times PyTorch bfloat16 with hook and SAE", Figures.times_torch),
    (f"bfloat16 with features at least {SHARE_OF_LIMIT} of the read limit", Figures.share_of_limit),
    ("bfloat16 with features not behind llama.cpp's plain BF16", Figures.beside_llama),
    ("int8 with features not behind llama.cpp's plain Q8_0", Figures.beside_llama_q8_0),
    (f"bfloat16: the tap costs at most one read of its encoder and {TAP_BESIDE_ITS_BYTES:.0%}", Figures.tap),
    (f"bfloat16: prefill of {PREFILL} at least {SHARE_OF_TORCH_PREFILL} times PyTorch's speed", Figures.prefill),
    (f"bfloat16: tenth turn at most {TENTH_TURN} times a fresh prompt of what is new", Figures.tenth_turn),
    (f"bfloat16: event loop less than {1e3 * LOOP_LAG:.0f} ms late while a long prompt is read", Figures.loop_lag),
    (f"bfloat16: step in the whole context at most {WHOLE_CONTEXT} times that in a short one", Figures.whole_context),
    (
        f"bfloat16: lookahead at least {LOOKAHEAD_ELSEWHERE} times the speed where nothing is foreseen",
        Figures.lookahead,
    ),
    (f"bfloat16: warm start in {WARM_START:.0f} s and one read of the files", Figures.warm_start),
    (f"bfloat16: corpus pass at least {TIMES_DELPHI:.0f} times delphi", Figures.corpus),
)
