"""What goes into the engine and what comes out, in token ids and numbers only."""

import dataclasses
from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

FinishReason = Literal["stop", "length", "cancelled", "error"]

MAX_TOP_LOGPROBS = 20
MAX_TOP_K = 1024  # as many candidates as the step looks at before it falls back to the whole vocabulary
MAX_LOGIT_BIASES = 1024  # OpenAI's limit


@dataclasses.dataclass(frozen=True)
class SamplingOptions:
    """How the next token is chosen. All of it is traced: changing any of it compiles nothing.

    temperature 0 is greedy; top_k 0 and top_p 1 switch those cuts off; penalties are OpenAI's, over generated tokens;
    top_logprobs is how many alternatives to report a token; logit_bias is (token id, what is added to its logit).
    Raises ValueError above MAX_TOP_K, MAX_TOP_LOGPROBS or MAX_LOGIT_BIASES.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    top_logprobs: int = 0
    logit_bias: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        for name, most in (("top_k", MAX_TOP_K), ("top_logprobs", MAX_TOP_LOGPROBS)):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{name} is {getattr(self, name)}; expected 0 to {most}")
        if len(self.logit_bias) > MAX_LOGIT_BIASES:
            raise ValueError(f"logit_bias has {len(self.logit_bias)} entries; at most {MAX_LOGIT_BIASES}")


@dataclasses.dataclass(frozen=True)
class GenerationRequest:
    """A prompt as token ids (its BOS included) and how to go on from it.

    `continues`: a further run of something that was let in already, which a full queue does not refuse.
    `client`: whose request it is; clients take turns.
    """

    prompt_ids: tuple[int, ...]
    max_tokens: int
    sampling: SamplingOptions = SamplingOptions()
    continues: bool = False
    client: str = ""
    score_prompt: bool = False  # deliver a PromptScored first; max_tokens may be 0 then


@dataclasses.dataclass(frozen=True)
class TokenFeatures:
    """The read-out of one tap at one token: the K strongest features, strongest first, fewer where fewer are active."""

    layer: int
    indices: tuple[int, ...]
    activations: tuple[float, ...]
    surprise: tuple[float | None, ...] | None  # z-scores; None without calibration statistics, or where one never fired
    filtered_count: int  # active at this token and suppressed by the filter
    firings: tuple[int, ...] | None = None  # of each feature in the calibration


@dataclasses.dataclass(frozen=True)
class GeneratedToken:
    """One generated token and the features of the very step that chose it."""

    index: int  # 0, 1, 2, … within the answer
    id: int
    logprob: float  # natural log of the model's own probability, before temperature and cuts
    top_logprobs: tuple[tuple[int, float], ...]  # (id, logprob), likeliest first
    position: int  # where the residual sits: position of input_id in the sequence, BOS at 0
    input_id: int  # the token that was fed in when this one was chosen
    features: tuple[TokenFeatures, ...]  # one a tap


@dataclasses.dataclass(frozen=True)
class PromptScored:
    """What the model thought of the prompt's own tokens, from the second on: delivered first, where asked for."""

    logprobs: tuple[float, ...]  # of each token, given those before it
    top_logprobs: tuple[tuple[tuple[int, float], ...], ...]  # (id, logprob) in its place, likeliest first


@dataclasses.dataclass(frozen=True)
class Finished:
    """The last thing a generation delivers, exactly once.

    stop: a stop id was chosen (it is not delivered as a token). length: max_tokens or the context ended it.
    """

    reason: FinishReason
    tokens: int  # generated and delivered
    error: Exception | None = None


Item = GeneratedToken | PromptScored | Finished
Deliver = Callable[[Item], None]


class QueueFull(Exception):
    """Raised by submit when as many requests wait as may."""


@runtime_checkable
class Generation(Protocol):
    """A submitted request."""

    def cancel(self) -> None:
        """Stop at the next token, queued or running. Safe from any thread, more than once, and after the end."""


@runtime_checkable
class Engine(Protocol):
    """What the server needs of an engine; tests put one with arithmetic done by hand in its place."""

    @property
    def context_length(self) -> int:
        """Prompt and answer together, in tokens."""

    @property
    def alive(self) -> bool:
        """False once the engine thread has died."""

    def submit(self, request: GenerationRequest, deliver: Deliver) -> Generation:
        """Queue a request. `deliver` must not block; it is called from the engine thread, or from that which gives
        up a waiting request.

        Raises QueueFull at once where the queue is full, ValueError where the prompt leaves no room for an answer.
        """

    def close(self) -> None:
        """End running and queued generations as cancelled and join the thread."""
