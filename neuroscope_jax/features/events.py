"""The events of the features stream, in the spec's JSON, with a few more fields."""

import msgspec


class ActiveFeature(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the top-K features of a token."""

    index: int
    label: str
    activation: float
    surprise: float | None = None  # absent without calibration statistics, and where the feature never fired in them
    calibration_firings: int | None = None  # only where there were so few that `surprise` says little


class FeatureActivation(msgspec.Struct, frozen=True):
    """SSE event `feature_activation`: one generated token and the features of the step that chose it."""

    token_index: int
    token: str  # the text this token added; the tokens of an answer join to its text
    layer: int
    top_features: list[ActiveFeature]
    filtered_count: int
    completion_id: str
    position: int  # of input_token in the whole sequence, BOS at 0
    input_token: str  # what was fed in when this token was chosen
    logprob: float
    choice_index: int = 0  # which of the answer's choices; each has a completion_id of its own


class GenerationComplete(msgspec.Struct, frozen=True):
    """SSE event `generation_complete`: always the last of a completion, whatever ended it."""

    total_tokens: int
    model: str
    completion_id: str
    reason: str  # stop, length, cancelled or error
    choice_index: int = 0


FeatureEvent = FeatureActivation | GenerationComplete

EVENT_NAMES: dict[type, str] = {
    FeatureActivation: "feature_activation",
    GenerationComplete: "generation_complete",
}
