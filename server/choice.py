"""One choice of an answer: token ids to text, its events to the features port, its text to the chat port."""

import dataclasses

from neuroscope_jax.engine.requests import FinishReason, GeneratedToken, PromptScored
from neuroscope_jax.features.events import GenerationComplete
from server.schemas import TokenLogprob
from server.state import ServerState
from server.stop_strings import StopStrings
from server.tokens import feature_events, token_logprob


@dataclasses.dataclass(frozen=True)
class Delta:
    """What one token added to a choice, or how the choice ended."""

    choice: int
    text: str = ""
    logprob: TokenLogprob | None = None  # only where the request asked for it
    offset: int = 0  # of the token, in characters from where the answer begins
    finish_reason: FinishReason | None = None
    prompt: PromptScored | None = None  # before the first token, where asked for


def choice_id(completion_id: str, index: int) -> str:
    """What a choice is called in its events: as its answer, the further ones with their number behind."""
    return completion_id if index == 0 else f"{completion_id}-{index}"


class Choice:
    """One choice being made. Belongs to the event loop."""

    def __init__(self, state: ServerState, index: int, completion_id: str, stops: list[str], logprobs: bool) -> None:
        self.index = index
        self.completion_id = choice_id(completion_id, index)
        self.tokens = 0
        self._state, self._logprobs = state, logprobs
        self._detokenizer = state.tokenizer.detokenizer()
        self._stops = StopStrings(stops)
        self._characters = 0

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""
        return self._stops.found

    def push(self, token: GeneratedToken) -> Delta:
        """Publish the token's events, then give back what may be shown of it."""
        state, text = self._state, self._detokenizer.push(token.id)
        for event in feature_events(token, text, self.completion_id, self.index, state.tokenizer, state.labels):
            state.broadcast.publish(event)
        self.tokens += 1
        logprob = token_logprob(token, state.tokenizer) if self._logprobs else None
        delta = Delta(self.index, self._stops.push(text), logprob, self._characters)
        self._characters += len(text)
        return delta

    def flush(self) -> Delta:
        """What was held back, at the end of the tokens."""
        text = self._stops.push(self._detokenizer.flush())
        return Delta(self.index, text + self._stops.flush())

    def end(self, model: str, reason: FinishReason) -> None:
        """Tell the features port; once, and last."""
        complete = GenerationComplete(self.tokens, model, self.completion_id, reason, self.index)
        self._state.broadcast.publish(complete)
