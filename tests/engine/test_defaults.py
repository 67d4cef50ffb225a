"""What generation_config.json says of sampling."""

import json

import pytest

from neuroscope_jax.engine.defaults import sampling_defaults
from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.errors import UserError


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({}, SamplingOptions()),
        ({"eos_token_id": [1, 107], "temperature": None}, SamplingOptions()),
        ({"do_sample": True, "temperature": 0.2, "top_k": 64, "top_p": 0.95}, SamplingOptions(0.2, 0.95, 64)),
        ({"temperature": 1}, SamplingOptions(1.0)),
        ({"do_sample": False, "temperature": 0.7}, SamplingOptions(0.0)),
    ],
)
def test_what_is_stated_replaces_the_defaults(tmp_path, config, wanted):
    (tmp_path / "generation_config.json").write_text(json.dumps(config))
    assert sampling_defaults(tmp_path) == wanted


def test_no_file_no_matter(tmp_path):
    assert sampling_defaults(tmp_path) == SamplingOptions()


@pytest.mark.parametrize("text", ["{", "[]", '{"temperature": "hot"}', '{"top_k": 100000}', '{"top_k": [1]}'])
def test_what_cannot_be_is_named(tmp_path, text):
    (tmp_path / "generation_config.json").write_text(text)
    with pytest.raises(UserError, match=r"generation_config\.json"):
        sampling_defaults(tmp_path)
