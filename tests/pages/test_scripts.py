"""Data scripts hold any text, and are harmless inside a page as well."""

import json

import pytest

from neuroscope_jax.pages.scripts import call, literal, write_call
from tests.pages.conftest import HOSTILE, called


@pytest.mark.parametrize("text", [*HOSTILE.values(), "\ud800 alone", "\x00", "</SCRIPT", "]]>"])
def test_any_text_survives_and_none_is_markup(text):
    written = literal({text: [text]})
    assert json.loads(written) == {text: [text]}
    assert written.isascii()
    assert not set("<>&") & set(written)


def test_a_call(tmp_path):
    assert call("f", 1, None, "a") == 'f(1,null,"a");\n'
    write_call(tmp_path / "a.js", "neuroscope.f", {"a": "é\u2028"}, 2)
    assert list(called(tmp_path / "a.js")) == [{"a": "é\u2028"}, 2]


def test_what_json_lacks_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        literal([float("nan")])
