"""From a checked request to what the engine shall do for it: prompts as token ids, limits, options."""

import asyncio
import dataclasses
import itertools

from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.errors import UserError
from server import errors, validation
from server.errors import invalid
from server.messages import prompt_messages
from server.prompts import Prompt, encode_prompt, given_prompts
from server.schemas import ChatRequest, GenerationFields
from server.state import ServerState
from server.text_schemas import TextRequest

MAX_CHOICES = 128
TEXT_TOKENS = 16  # OpenAI's default for /v1/completions


@dataclasses.dataclass(frozen=True)
class Plan:
    """Everything one request asks for. Choice i answers prompt i // n."""

    id_prefix: str
    prompts: tuple[tuple[int, ...], ...]
    n: int
    max_tokens: int | None  # None: as many as the context has room for
    sampling: SamplingOptions
    stops: list[str]
    with_logprobs: bool
    echoes: tuple[Prompt, ...] = ()  # the prompts again, where the answer shall begin with their text

    @property
    def choices(self) -> int:
        """How many answers are to be made."""
        return len(self.prompts) * self.n

    @property
    def score_prompts(self) -> bool:
        """Whether logprobs of the prompts' own tokens are asked for."""
        return bool(self.echoes) and self.with_logprobs

    def echo_of(self, choice: int) -> Prompt | None:
        """The prompt that a choice begins with."""
        return self.echoes[choice // self.n] if self.echoes else None

    def sampling_of(self, choice: int) -> SamplingOptions:
        """A seed is counted up from choice to choice: each differs, and can be had again on its own."""
        seed = self.sampling.seed
        return self.sampling if seed is None else dataclasses.replace(self.sampling, seed=seed + choice % self.n)


async def chat_plan(state: ServerState, request: ChatRequest) -> Plan:
    """Check, render and encode a chat. Raises ApiError."""
    validation.check_chat(request)
    _check_available(state, request.model)
    messages = prompt_messages(request)
    if not state.tokenizer.has_chat_template:
        raise errors.no_chat(state.model_name)
    _check_length(state, messages)
    sampling = _sampling(state, request, request.top_logprobs)
    goes_on, tokenizer = request.continue_final_message, state.tokenizer
    encode = tokenizer.encode_continuation if goes_on else tokenizer.encode_chat
    if goes_on and messages[-1][0] != "assistant":
        raise invalid("continue_final_message", "continue_final_message: the last message is not the assistant's.")
    try:
        prompt = await asyncio.to_thread(encode, messages)
    except UserError as error:
        raise invalid("messages", str(error)) from error
    if len(prompt) >= state.engine.context_length:
        raise errors.context_exceeded("messages", state.engine.context_length, len(prompt))
    return Plan(
        id_prefix="chatcmpl-",
        prompts=(prompt,),
        n=request.n or 1,
        max_tokens=validation.chat_limit(request),
        sampling=sampling,
        stops=validation.stop_strings(request),
        with_logprobs=bool(request.logprobs),
    )


async def text_plan(state: ServerState, request: TextRequest) -> Plan:
    """Check and encode raw prompts. Raises ApiError."""
    validation.check_text(request)
    _check_available(state, request.model)
    given, n = given_prompts(request.prompt), request.n or 1
    if len(given) * n > MAX_CHOICES:
        raise invalid("prompt", f"{len(given)} prompts and n {n} make {len(given) * n} choices; at most {MAX_CHOICES}.")
    sampling = _sampling(state, request, request.logprobs)

    def encode() -> list[Prompt]:
        return [encode_prompt(each, state.tokenizer, state.engine.context_length) for each in given]

    prompts = await asyncio.to_thread(encode)
    return Plan(
        id_prefix="cmpl-",
        prompts=tuple(prompt.ids for prompt in prompts),
        n=n,
        max_tokens=TEXT_TOKENS if request.max_tokens is None else request.max_tokens,
        sampling=sampling,
        stops=validation.stop_strings(request),
        with_logprobs=request.logprobs is not None,
        echoes=tuple(prompts) if request.echo else (),
    )


def _sampling(state: ServerState, request: GenerationFields, top_logprobs: int | None) -> SamplingOptions:
    return validation.sampling_options(request, top_logprobs or 0, state.sampling, state.tokenizer.vocabulary_size)


def _check_available(state: ServerState, model: str | None) -> None:
    if state.stopping:
        raise errors.stopping()
    if not state.engine.alive:
        raise errors.engine_stopped()
    if not state.serves(model or ""):
        raise errors.unknown_model(model or "", state.names)


def _check_length(state: ServerState, messages: list[tuple[str, str]]) -> None:
    """Refuse what cannot fit however it is cut: to tokenize megabytes would hold everybody up for seconds.

    Every turn takes a token; neighbours on one side, of which the system's texts are the user's, are one turn.
    """
    limit = state.engine.context_length
    sides = itertools.groupby(role == "assistant" for role, _ in messages)
    least = max(sum(len(text) for _, text in messages) // state.tokenizer.longest_token, sum(1 for _ in sides))
    if least >= limit:
        raise errors.context_exceeded("messages", limit, f"at least {least}")
