"""The servers that the cases are sent to."""

from collections.abc import Iterator

import pytest

from tests.api.serving import CaseServer, serving

ACCESS = {
    "api_key": "sesame-42",
    "allowed_hosts": ("neuroscope.example",),
    "allowed_origins": ("https://chat.example",),
}


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, CaseServer]]:
    """One with a chat model, one with a base model, one that asks for a key and allows a name and a page more."""
    chat, base, keyed = (tmp_path_factory.mktemp(name) for name in ("chat", "base", "keyed"))
    with (
        serving(chat) as first,
        serving(base, chat_template=None) as second,
        serving(keyed, ACCESS) as third,
    ):
        yield {"chat": first, "base": second, "keyed": third}
