"""The JSON of the chat port as structs. Unknown fields are ignored, null stands for a field's default."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from neuroscope_jax.engine.requests import MAX_TOP_K, MAX_TOP_LOGPROBS

Count = Annotated[int, Meta(ge=1)]
TokenId = Annotated[int, Meta(ge=0, lt=2**31)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]


class ContentPart(Struct):
    """One part of a message's content; only those that hold text are understood."""

    type: str
    text: str | None = None
    refusal: str | None = None


class Message(Struct):
    """One message of a request."""

    role: str
    content: str | list[ContentPart] | None = None


class StreamOptions(Struct):
    include_usage: bool | None = None


class ResponseFormat(Struct):
    type: str


class GenerationFields(Struct, kw_only=True):
    """What both kinds of request may say about the answer they want."""

    model: str | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=0, le=MAX_TOP_K)] | None = None  # not OpenAI's; 0 switches the cut off
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: dict[TokenId, Annotated[float, Meta(ge=-100, le=100)]] | None = None
    stop: str | list[str] | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether a stream shall end with the usage."""
        return bool(self.stream_options and self.stream_options.include_usage)


class ChatRequest(GenerationFields, kw_only=True):
    """Body of POST /v1/chat/completions."""

    messages: list[Message] | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    response_format: ResponseFormat | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    functions: list[Any] | None = None
    function_call: Any = None
    modalities: list[str] | None = None
    audio: Any = None
    web_search_options: Any = None
    continue_final_message: bool | None = None  # vLLM's: go on from the assistant's message at the end


class Usage(Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class TopLogprob(Struct):
    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(Struct):
    """One generated token; `bytes` joins over tokens where characters are split."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


class Logprobs(Struct):
    content: list[TokenLogprob]
    refusal: None = None


class AnswerMessage(Struct):
    content: str
    role: Literal["assistant"] = "assistant"
    refusal: None = None


class Choice(Struct):
    message: AnswerMessage
    finish_reason: str
    logprobs: Logprobs | None
    index: int = 0


class ChatCompletion(Struct):
    """A whole answer."""

    id: str
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    object: Literal["chat.completion"] = "chat.completion"


class ChunkDelta(Struct):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET


class ChunkChoice(Struct):
    delta: ChunkDelta
    finish_reason: str | None = None
    logprobs: Logprobs | None = None
    index: int = 0


class ChatCompletionChunk(Struct):
    """A piece of a streamed answer. `usage` is there, null until the last, only where the request asked for it."""

    id: str
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Usage | None | UnsetType = UNSET
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"


class Model(Struct):
    """An entry of GET /v1/models; `context_length` in tokens is not OpenAI's."""

    id: str
    created: int
    context_length: int
    object: Literal["model"] = "model"
    owned_by: str = "neuroscope"


class ModelList(Struct):
    data: list[Model]
    object: Literal["list"] = "list"


class ErrorObject(Struct):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(Struct):
    error: ErrorObject
