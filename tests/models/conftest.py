"""A tokenizer whose ids can be worked out by hand, a small random Gemma 2 checkpoint, and a stand-in for the hub."""

import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from huggingface_hub import constants
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.gemma2 import Gemma2, Gemma2Config
from tests.models.hub_repositories import repositories
from tests.models.hub_stand_in import Hub, running_hub

CONTROL = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
TEMPLATE = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}<start_of_turn>"
    "{{ ('model' if message['role'] == 'assistant' else message['role']) + '\n' + message['content'] | trim }}"
    "<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
TINY = Gemma2Config(
    vocab_size=64,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=8,
    query_pre_attn_scalar=8.0,
    sliding_window=8,
    max_position_embeddings=64,
)


def write_tokenizer(folder: Path, **changes: Any) -> Path:
    """Control tokens 0 to 5, byte b at 6 + b, then one token a printable ASCII character and '▁ab' for ' ab'."""
    letters = ["▁", *(chr(code) for code in range(33, 127)), "\n", "ab", "▁ab"]
    names = [*CONTROL, *(f"<0x{byte:02X}>" for byte in range(256)), *letters]
    vocab = {name: i for i, name in enumerate(names)}
    merges = [("a", "b"), ("▁", "ab")]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in CONTROL])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<bos>", "eos_token": "<eos>", "chat_template": TEMPLATE, **changes}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def tokenizer_folder(tmp_path: Path) -> Callable[..., Path]:
    """`tokenizer_folder(**changes)` writes the hand-made tokenizer with other fields in tokenizer_config.json."""
    return lambda **changes: write_tokenizer(tmp_path, **changes)


@pytest.fixture
def chat(tmp_path: Path) -> ChatTokenizer:
    return ChatTokenizer.load(write_tokenizer(tmp_path))


@pytest.fixture(scope="session")
def tiny() -> tuple[Gemma2, dict[str, Any]]:
    """A two-layer model and random parameters, norms included."""
    model = Gemma2(TINY)
    ids = jnp.zeros((1, 1), jnp.int32)
    shapes = jax.eval_shape(lambda: model.init(jax.random.key(0), ids, ids, method="scores")["params"])
    leaves, tree = jax.tree.flatten(shapes)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    values = [0.3 * jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
    return model, jax.tree.unflatten(tree, values)


@pytest.fixture
def config_json() -> dict[str, Any]:
    """The config.json of `tiny`."""
    return {"model_type": "gemma2", **dataclasses.asdict(TINY)}


@pytest.fixture(scope="session")
def hub_server() -> Iterator[Hub]:
    with running_hub() as hub:
        yield hub


@pytest.fixture
def hub(hub_server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The stand-in with nothing wrong, as the hub of this process, and an empty cache."""
    hub_server.repos, hub_server.trouble = repositories(), None
    hub_server.asked.clear()
    hub_server.ranges.clear()
    monkeypatch.setattr(constants, "ENDPOINT", hub_server.url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub_server.url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    monkeypatch.setattr(time, "sleep", lambda _: None)  # the library's pause before it goes on
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path / "neuroscope"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return hub_server
