"""What the two apps share, and what the server needs of a tokenizer and of labels."""

import dataclasses
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.engine.requests import Engine, SamplingOptions
from neuroscope_jax.features.label_details import LabelDetail
from server.broadcast import Broadcast
from server.metered import MeteredEngine
from server.metrics import Metrics

if TYPE_CHECKING:
    from server.completion import Completion


class Detokenizer(Protocol):
    """Token ids in, text out, whole characters only."""

    def push(self, token_id: int) -> str:
        """The text that became certain with this token, perhaps empty."""

    def flush(self) -> str:
        """What was held back, at the end of an answer."""


class Tokenizer(Protocol):
    """What the server needs of models/chat.py."""

    longest_token: int  # in characters; so many of them make at least one token
    vocabulary_size: int
    bos_id: int

    @property
    def has_chat_template(self) -> bool:
        """False for a base model."""

    def encode_chat(self, messages: list[tuple[str, str]]) -> tuple[int, ...]:
        """(role, text) pairs, role system, user or assistant, as the ids of a prompt for the next assistant turn."""

    def encode_continuation(self, messages: list[tuple[str, str]]) -> tuple[int, ...]:
        """The same, but the last message, an assistant's, is gone on from."""

    def encode_raw(self, text: str) -> tuple[int, ...]:
        """A text as it is; what spells a control token becomes one. No BOS of its own."""

    def spelled_out(self, ids: Iterable[int]) -> str:
        """The text of ids, control tokens by their names."""

    def detokenizer(self) -> Detokenizer:
        """A fresh one for one answer."""

    def token_text(self, token_id: int) -> str:
        """The text of one token on its own."""

    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes of one token, perhaps a part of a character."""


class Labels(Protocol):
    """What a person may call each feature of one SAE."""

    @property
    def sae_id(self) -> str: ...

    @property
    def width(self) -> int: ...

    def text(self, index: int) -> str:
        """The label, or the numeric fallback."""

    def all(self) -> dict[str, str]:
        """Feature index, in digits, to label."""

    def source_of(self, index: int) -> str:
        """Where the label comes from; "numeric" for the fallback."""

    def detail_of(self, index: int) -> LabelDetail | None:
        """What is known of the label, or of why there is none."""


@dataclasses.dataclass
class ServerState:
    """Built once before the server starts; both apps hold the same one."""

    config: NeuroscopeConfig
    engine: Engine
    tokenizer: Tokenizer
    labels: Labels
    sampling: SamplingOptions = SamplingOptions()  # for what a request leaves open
    started: int = dataclasses.field(default_factory=lambda: int(time.time()))  # unix seconds
    running: "set[Completion]" = dataclasses.field(default_factory=set)
    stopping: bool = False
    metrics: Metrics = dataclasses.field(default_factory=Metrics)
    broadcast: Broadcast = dataclasses.field(init=False)
    metered: MeteredEngine = dataclasses.field(init=False)  # `engine` itself, with what is counted of it

    def __post_init__(self) -> None:
        self.engine = self.metered = MeteredEngine(self.engine, self.metrics)
        self.broadcast = Broadcast(self.config.broadcast_buffer_size, self.metrics)

    @property
    def model_name(self) -> str:
        """The name on the chat port: the hub id, or the name of a local folder without its path."""
        path = Path(self.config.model_id)
        return path.resolve().name if path.is_dir() else self.config.model_id

    def serves(self, name: str) -> bool:
        """Whether a request for this model name is meant for the one loaded: any of its names, in any case."""
        return name.lower() in ("", *(known.lower() for known in self.names))

    @property
    def names(self) -> tuple[str, ...]:
        """What the model answers to: its id, the last part of that, and the configured aliases."""
        full = self.model_name
        return tuple(dict.fromkeys((full, full.rpartition("/")[2], *self.config.model_aliases)))
