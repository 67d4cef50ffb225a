"""The JSON of POST /v1/completions as structs: raw text in, raw text out."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from server.schemas import GenerationFields, TokenId, Usage

MAX_TEXT_LOGPROBS = 5


class TextRequest(GenerationFields, kw_only=True):
    """Body of POST /v1/completions. The items of `prompt` are of one kind: texts, ids, or lists of ids."""

    prompt: str | list[str | TokenId | list[TokenId]] | None = None
    max_tokens: Annotated[int, Meta(ge=0)] | None = None
    logprobs: Annotated[int, Meta(ge=0, le=MAX_TEXT_LOGPROBS)] | None = None
    echo: bool | None = None
    suffix: str | None = None
    best_of: Annotated[int, Meta(ge=1, le=20)] | None = None


class TextLogprobs(Struct):
    """Columns, one row a token: its text, where that begins in the choice's text, its and the likeliest logprobs."""

    text_offset: list[int]
    token_logprobs: list[float | None]
    tokens: list[str]
    top_logprobs: list[dict[str, float] | None] | None


class TextChoice(Struct):
    text: str
    index: int
    logprobs: TextLogprobs | None
    finish_reason: str | None


class TextCompletion(Struct):
    """A whole answer, or a piece of a streamed one."""

    id: str
    created: int
    model: str
    choices: list[TextChoice]
    usage: Usage | None | UnsetType = UNSET
    object: Literal["text_completion"] = "text_completion"
