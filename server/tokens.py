"""What one generated token looks like from outside: its events on the features port, its logprobs on the chat port."""

from neuroscope_jax.engine.requests import GeneratedToken, TokenFeatures
from neuroscope_jax.features.calibration import RARE
from neuroscope_jax.features.events import ActiveFeature, FeatureActivation
from server.schemas import TokenLogprob, TopLogprob
from server.state import Labels, Tokenizer

DIGITS = 4  # behind the point, of activations and z-scores: more is noise
LEAST_LOGPROB = -9999.0  # OpenAI's figure for a token that is all but impossible; JSON has no infinity


def feature_events(
    token: GeneratedToken, text: str, completion_id: str, choice_index: int, tokenizer: Tokenizer, labels: Labels
) -> list[FeatureActivation]:
    """One event a tap. `text` is what this token added to the answer."""
    return [
        FeatureActivation(
            token_index=token.index,
            token=text,
            layer=features.layer,
            top_features=_labelled(features, labels),
            filtered_count=features.filtered_count,
            completion_id=completion_id,
            position=token.position,
            input_token=tokenizer.token_text(token.input_id),
            logprob=token.logprob,
            choice_index=choice_index,
        )
        for features in token.features
    ]


def token_logprob(token: GeneratedToken, tokenizer: Tokenizer) -> TokenLogprob:
    """The token and its likeliest alternatives, in OpenAI's shape."""
    top = [TopLogprob(*_entry(token_id, logprob, tokenizer)) for token_id, logprob in token.top_logprobs]
    return TokenLogprob(*_entry(token.id, token.logprob, tokenizer), top)


def bounded(logprob: float) -> float:
    """A logprob that JSON can hold."""
    return max(logprob, LEAST_LOGPROB)


def _entry(token_id: int, logprob: float, tokenizer: Tokenizer) -> tuple[str, float, list[int]]:
    return tokenizer.token_text(token_id), bounded(logprob), list(tokenizer.token_bytes(token_id))


def _labelled(features: TokenFeatures, labels: Labels) -> list[ActiveFeature]:
    nothing = [None] * len(features.indices)
    rows = zip(
        features.indices, features.activations, features.surprise or nothing, features.firings or nothing, strict=True
    )
    return [
        ActiveFeature(
            index=index,
            label=labels.text(index),
            activation=round(activation, DIGITS),
            surprise=None if z is None else round(z, DIGITS),
            calibration_firings=None if firings is None or firings >= RARE else firings,
        )
        for index, activation, z, firings in rows
    ]
