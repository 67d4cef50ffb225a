"""What a decoded request may say beyond its fields' types, and its fields as the engine takes them."""

from collections.abc import Mapping
from typing import Any

from neuroscope_jax.engine.requests import MAX_LOGIT_BIASES, SamplingOptions
from server.errors import invalid
from server.schemas import ChatRequest, GenerationFields
from server.text_schemas import TextRequest

MAX_STOPS = 4
SAMPLING_FIELDS = ("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty")


def check_chat(request: ChatRequest) -> None:
    """Refuse what is understood, cannot be done and would change the answer. Raises ApiError."""
    if request.tools and request.tool_choice != "none":
        raise invalid("tools", "This model does not support tools; send the request without them.")
    if request.functions and request.function_call != "none":
        raise invalid("functions", "This model does not support tools; send the request without functions.")
    if request.response_format and request.response_format.type != "text":
        found = request.response_format.type
        raise invalid("response_format", f"response_format type {found!r} is not supported; only 'text' is.")
    if any(modality != "text" for modality in request.modalities or []) or request.audio is not None:
        raise invalid("modalities" if request.modalities else "audio", "This model answers in text only.")
    if request.web_search_options is not None:
        raise invalid("web_search_options", "This server cannot search the web; leave web_search_options out.")
    if request.top_logprobs and not request.logprobs:
        raise invalid("top_logprobs", "top_logprobs needs logprobs to be true.")
    _check_common(request)


def check_text(request: TextRequest) -> None:
    """The same for POST /v1/completions."""
    if request.suffix:
        raise invalid("suffix", "suffix is not supported: this model only continues a text; leave it out.")
    if request.best_of is not None and request.best_of != (request.n or 1):
        raise invalid("best_of", f"best_of is {request.best_of}; only as many as n ({request.n or 1}) is supported.")
    _check_common(request)


def sampling_options(
    request: GenerationFields, top_logprobs: int, defaults: SamplingOptions, vocabulary_size: int
) -> SamplingOptions:
    """The request's options, its nulls replaced by the model's defaults. Raises ApiError for an unknown token id."""
    given: dict[str, Any] = {name: getattr(request, name) for name in SAMPLING_FIELDS}
    fields = {name: value for name, value in given.items() if value is not None}
    bias = _logit_bias(request.logit_bias or {}, vocabulary_size)
    return SamplingOptions(
        **{name: fields.get(name, getattr(defaults, name)) for name in SAMPLING_FIELDS},
        top_logprobs=top_logprobs,
        logit_bias=bias,
    )


def stop_strings(request: GenerationFields) -> list[str]:
    """The stop strings that are not empty."""
    stops = [request.stop] if isinstance(request.stop, str) else request.stop or []
    return [stop for stop in stops if stop]


def chat_limit(request: ChatRequest) -> int | None:
    """The smaller of what was asked for under either name."""
    limits = [limit for limit in (request.max_tokens, request.max_completion_tokens) if limit is not None]
    return min(limits, default=None)


def _check_common(request: GenerationFields) -> None:
    if len(stop_strings(request)) > MAX_STOPS:
        raise invalid("stop", f"stop has more than {MAX_STOPS} strings.")
    if len(request.logit_bias or {}) > MAX_LOGIT_BIASES:
        raise invalid("logit_bias", f"logit_bias has more than {MAX_LOGIT_BIASES} tokens.")


def _logit_bias(bias: Mapping[int, float], vocabulary_size: int) -> tuple[tuple[int, float], ...]:
    for token_id in bias:
        if token_id >= vocabulary_size:
            raise invalid("logit_bias", f"logit_bias: there is no token {token_id}; ids end at {vocabulary_size - 1}.")
    return tuple(bias.items())
