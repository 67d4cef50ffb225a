"""Chat messages to token ids, with the checkpoint's own tokenizer and chat template."""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import jinja2
import jinja2.sandbox
import msgspec
from tokenizers import Tokenizer

from neuroscope_jax.errors import UserError
from neuroscope_jax.files import read_json
from neuroscope_jax.models.detokenizer import IncrementalDetokenizer, byte_table

TURN_MARKERS = ("<start_of_turn>", "<end_of_turn>")
ROLES = ("system", "developer", "user", "assistant")
TokenId = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
T = TypeVar("T")
NAMED_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token")
# A message's stand-in while the template is rendered. The wide spaces are lost where the template trims its content.
STAND_IN = "\u2003\ue000{}\ue001\u2003"
STAND_IN_END = "\ue001\u2003"
STAND_IN_PATTERN = re.compile("(\u2003?)\ue000(\\d+)\ue001(\u2003?)")


class NamedToken(msgspec.Struct):
    """How older configs write a token."""

    content: str


class NamedTemplate(msgspec.Struct):
    """One of several chat templates."""

    name: str
    template: str


class TokenizerConfig(msgspec.Struct):
    """What is read of tokenizer_config.json."""

    bos_token: str | NamedToken | None = None
    eos_token: str | NamedToken | None = None
    pad_token: str | NamedToken | None = None
    unk_token: str | NamedToken | None = None
    chat_template: str | list[NamedTemplate] | None = None

    def named(self) -> dict[str, str]:
        """The text of each token that is named."""
        tokens = {name: getattr(self, name) for name in NAMED_TOKENS}
        return {n: t.content if isinstance(t, NamedToken) else t for n, t in tokens.items() if t}


class GenerationConfig(msgspec.Struct):
    """What is read of generation_config.json."""

    eos_token_id: TokenId | list[TokenId] | None = None


class ChatTokenizer:
    """A tokenizer that knows its chat format.

    bos_id: the one token every prompt starts with. control_ids: tokens that are structure, not text (bos, turn markers,
    padding …). stop_ids: tokens that end an answer.
    """

    def __init__(
        self, tokenizer: Tokenizer, template: str | None, named: Mapping[str, str], stop_ids: Iterable[int], name: str
    ) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer, self._template_source, self._named, self._name = tokenizer, template, named, name
        self._control = _control_tokens(tokenizer, named.values())
        self._spelled = "|".join(re.escape(token) for token in sorted(self._control, key=len, reverse=True))
        self.control_ids = frozenset(self._control.values())
        bos = self._control.get(named.get("bos_token", "<bos>"))
        if bos is None:
            raise UserError(f"{name}: tokenizer_config.json names no bos_token that is in tokenizer.json")
        self.bos_id = bos
        ends = (self._control.get(token) for token in (named.get("eos_token", ""), "<end_of_turn>"))
        self.stop_ids = frozenset(stop_ids) | {i for i in ends if i is not None}
        self._bytes_of = byte_table(tokenizer, self.control_ids, name)
        vocabulary = tokenizer.get_vocab()
        self.vocabulary_size = max(vocabulary.values()) + 1
        self.longest_token = max(map(len, vocabulary))  # in characters; so many of them make at least one token

    @classmethod
    def load(cls, folder: Path) -> "ChatTokenizer":
        """Read tokenizer.json, tokenizer_config.json, chat_template.jinja and generation_config.json of a checkpoint.

        Raises UserError for an absent or broken file. A checkpoint without a chat template loads.
        """
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise UserError(f"{path}: absent; the tokenizer is read from this file only")
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise UserError(f"{path}: not a tokenizer ({error}); fetch the file again") from error
        config = _read_if_there(folder / "tokenizer_config.json", TokenizerConfig)
        eos = _read_if_there(folder / "generation_config.json", GenerationConfig).eos_token_id
        stop_ids = [eos] if isinstance(eos, int) else eos or []
        loaded = cls(tokenizer, _template_text(folder, config), config.named(), stop_ids, folder.name)
        if loaded.has_chat_template:
            loaded.encode_chat([("user", "hello")])  # a template that cannot be rendered is known now
        return loaded

    @property
    def has_chat_template(self) -> bool:
        """False for a base checkpoint, which `encode_chat` refuses."""
        return self._template_source is not None

    def encode_chat(self, messages: list[tuple[str, str]]) -> tuple[int, ...]:
        """Ids of a conversation and the opening of the model's turn, with exactly one BOS, first.

        Messages are (role, text), with a role of ROLES. System and developer text joins the user turn beside it, since
        Gemma's template has no system role; neighbours of one role become one turn with a blank line between. What
        messages say is encoded as plain text: only the template can put control tokens.
        Raises UserError where the template refuses the conversation, or there is no template.
        """
        turns = _merged(messages)
        return self._put_in(self._render(turns), turns)

    def encode_continuation(self, messages: list[tuple[str, str]]) -> tuple[int, ...]:
        """The same up to the end of the last message, an assistant's: its turn stays open, no space at its end is lost.

        Raises UserError also where the last message is another's.
        """
        turns = _merged(messages)
        if turns[-1:] == [] or turns[-1][0] != "assistant":
            raise UserError("the last message is not the assistant's; there is nothing to continue")
        rendered = self._render(turns, add_generation_prompt=False)
        last = [*STAND_IN_PATTERN.finditer(rendered)][-1]
        return self._put_in(rendered[: last.end(2)] + STAND_IN_END, turns)

    def _put_in(self, rendered: str, turns: list[tuple[str, str]]) -> tuple[int, ...]:
        """Ids of a rendered template with the texts in the place of their stand-ins, one BOS first."""
        ids: list[int] = []
        for run in self._runs(rendered, [text for _, text in turns]):
            ids.extend([run] if isinstance(run, int) else self.encode_text(run))
        while ids and ids[0] == self.bos_id:
            ids.pop(0)
        return (self.bos_id, *ids)

    def encode_text(self, text: str) -> list[int]:
        """Ids of plain text, BOS not added. Text that spells a control token stays text."""
        text = _whole_characters(text)
        # Cut after the first character of whatever spells a control token, and the tokenizer cannot see it whole.
        cuts = [match.start() + 1 for match in re.finditer(f"(?={self._spelled})", text)]
        pieces = [text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        return [i for piece in pieces for i in self._tokenizer.encode(piece, add_special_tokens=False).ids]

    def encode_documents(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of texts of a corpus, BOS not added. What spells a control token is one: chats are stored like that."""
        return [found.ids for found in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def encode_raw(self, text: str) -> tuple[int, ...]:
        """Ids of a prompt that is fed in as it is written: what spells a control token is one. BOS not added."""
        return tuple(self.encode_documents([_whole_characters(text)])[0])

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids: control tokens are left out, bytes that are no UTF-8 become U+FFFD."""
        detokenizer = self.detokenizer()
        return "".join([*map(detokenizer.push, ids), detokenizer.flush()])

    def spelled_out(self, ids: Iterable[int]) -> str:
        """Text of ids for display: as `decode`, with control tokens by their names."""
        pieces = (self.token_text(i).encode() if i in self.control_ids else self._bytes_of(i) for i in ids)
        return b"".join(pieces).decode("utf-8", "replace")

    def detokenizer(self) -> IncrementalDetokenizer:
        """A fresh one, for one answer."""
        return IncrementalDetokenizer(self._bytes_of)

    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes one token adds to the text, maybe part of a character; none for a control token."""
        return self._bytes_of(token_id)

    def token_text(self, token_id: int) -> str:
        """One token for display: its text, or its name where it is a control token or part of a character."""
        name = self._tokenizer.id_to_token(token_id)
        if name is None:
            return f"<{token_id}>"
        text = self._bytes_of(token_id).decode("utf-8", "replace")
        return name if token_id in self.control_ids or "\ufffd" in text else text

    def single_token(self, text: str) -> int:
        """The id of the one token that is this text, -1 where there is none."""
        ids = self.encode_documents([text])[0]
        return ids[0] if len(ids) == 1 else -1

    def _render(self, turns: list[tuple[str, str]], add_generation_prompt: bool = True) -> str:
        """The template over stand-ins of what the messages say."""
        if self._template_source is None:
            raise UserError(f"{self._name} has no chat template: a base model; use its instruction-tuned sister (…-it)")
        try:
            messages = [{"role": role, "content": STAND_IN.format(i)} for i, (role, _) in enumerate(turns)]
            return self._template.render(messages=messages, add_generation_prompt=add_generation_prompt, **self._named)
        except jinja2.TemplateError as error:
            raise UserError(f"the chat template of {self._name} refuses these messages: {error}") from error
        except Exception as error:  # a template is a program: it can fail in any way
            raise UserError(f"the chat template of {self._name} fails: {error!r}") from error

    @functools.cached_property
    def _template(self) -> jinja2.Template:
        # The options are transformers', which chat templates are written for.
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _raise_exception
        return environment.from_string(self._template_source or "")

    def _runs(self, rendered: str, texts: list[str]) -> Iterator[int | str]:
        """Control ids of the template and, between them, runs of plain text with the messages put in.

        A run is encoded whole, so that merges across the border of template and message are the same as where the
        rendered string is tokenized as one, which is what transformers does.
        """
        run = ""
        for piece, from_template in _pieces(rendered, texts):
            for part in re.split(f"({self._spelled})", piece) if from_template else [piece]:
                if from_template and part in self._control:
                    yield run
                    yield self._control[part]
                    run = ""
                else:
                    run += part
        yield run


def _whole_characters(text: str) -> str:
    """Half a surrogate pair is no character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _pieces(rendered: str, texts: list[str]) -> Iterator[tuple[str, bool]]:
    """The rendered template with its stand-ins replaced: (text, whether it is the template's)."""
    start = 0
    for stand_in in STAND_IN_PATTERN.finditer(rendered):
        yield rendered[start : stand_in.start()], True
        text = texts[int(stand_in[2])]
        text = text if stand_in[1] else text.lstrip()
        yield text if stand_in[3] else text.rstrip(), False
        start = stand_in.end()
    yield rendered[start:], True


def _merged(messages: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Turns that alternate: system text as the user's, neighbours of one role joined by a blank line."""
    turns: list[tuple[str, str]] = []
    for i, (role, text) in enumerate(messages):
        if role not in ROLES:
            raise UserError(f"messages[{i}].role is {role!r}; expected one of {', '.join(ROLES)}")
        role = "assistant" if role == "assistant" else "user"
        if turns and turns[-1][0] == role:
            turns[-1] = (role, f"{turns[-1][1]}\n\n{text}")
        else:
            turns.append((role, text))
    return turns


def _control_tokens(tokenizer: Tokenizer, named: Iterable[str]) -> dict[str, int]:
    """Tokens that are structure: those marked special, those the config names, and Gemma's turn markers."""
    added = tokenizer.get_added_tokens_decoder()
    structural = {*named, *TURN_MARKERS}
    return {token.content: i for i, token in added.items() if token.special or token.content in structural}


def _template_text(folder: Path, config: TokenizerConfig) -> str | None:
    """chat_template.jinja goes before tokenizer_config.json, whose entry may be a list of named templates."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8", errors="replace")
    if isinstance(config.chat_template, list):
        return next((entry.template for entry in config.chat_template if entry.name == "default"), None)
    return config.chat_template


def _read_if_there(path: Path, kind: type[T]) -> T:
    return read_json(path, kind) if path.is_file() else kind()


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
