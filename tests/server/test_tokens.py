"""From the engine's figures to the JSON of an event."""

import json

import msgspec

from neuroscope_jax.engine.requests import GeneratedToken, TokenFeatures
from server.tokens import feature_events
from tests.server.conftest import FakeLabels, FakeTokenizer


def shown(surprise, firings):
    features = TokenFeatures(3, (7, 8, 9, 10), (4.00004, 3.0, 2.0, 1.0), surprise, 5, firings)
    token = GeneratedToken(0, 1, -0.5, (), 4, 2, (features,))
    (event,) = feature_events(token, "b", "chatcmpl-1", 0, FakeTokenizer(), FakeLabels())
    return json.loads(msgspec.json.encode(event))


def test_surprise_and_thin_calibration():
    event = shown((2.10004, -1.0, 8.0, None), (10, 9, 1, 0))
    assert event["filtered_count"] == 5
    assert event["top_features"] == [
        {"index": 7, "label": "label 7", "activation": 4.0, "surprise": 2.1},
        {"index": 8, "label": "label 8", "activation": 3.0, "surprise": -1.0, "calibration_firings": 9},
        {"index": 9, "label": "label 9", "activation": 2.0, "surprise": 8.0, "calibration_firings": 1},
        {"index": 10, "label": "label 10", "activation": 1.0, "calibration_firings": 0},
    ]


def test_without_calibration():
    assert all(set(feature) == {"index", "label", "activation"} for feature in shown(None, None)["top_features"])
