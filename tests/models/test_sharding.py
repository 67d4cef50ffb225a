"""Where parameters lie when a model is split, checked on meshes of devices that need not be there."""

import dataclasses
import math

import pytest
from jax.sharding import AbstractMesh, PartitionSpec

from neuroscope_jax.errors import UserError
from neuroscope_jax.models import sharding
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.models.weights import expected_shapes, tree_path
from tests.models.gemma_2_9b import GEMMA_2_9B

ROWS, COLUMNS, WHOLE = PartitionSpec("model"), PartitionSpec(None, "model"), PartitionSpec()
LAYOUT = {
    "model.embed_tokens.weight": ROWS,
    "model.layers.5.self_attn.q_proj.weight": ROWS,
    "model.layers.5.self_attn.k_proj.weight": ROWS,
    "model.layers.5.self_attn.v_proj.weight": ROWS,
    "model.layers.5.self_attn.o_proj.weight": COLUMNS,
    "model.layers.5.mlp.gate_proj.weight": ROWS,
    "model.layers.5.mlp.up_proj.weight": ROWS,
    "model.layers.5.mlp.down_proj.weight": COLUMNS,
    "model.layers.5.input_layernorm.weight": WHOLE,
    "model.norm.weight": WHOLE,
}


def mesh_of_size(count: int) -> AbstractMesh:
    return AbstractMesh((count,), (sharding.AXIS,))


@pytest.fixture(scope="module")
def shapes() -> dict[str, tuple[int, ...]]:
    return expected_shapes(Gemma2(GEMMA_2_9B))


def bytes_a_device(shapes: dict[str, tuple[int, ...]], count: int) -> int:
    """Of the weights of a model in bfloat16."""
    place = sharding.parameters(mesh_of_size(count))
    return sum(2 * math.prod(place(tree_path(key), shape).shard_shape(shape)) for key, shape in shapes.items())


@pytest.mark.parametrize("key", LAYOUT)
def test_the_layout(shapes: dict[str, tuple[int, ...]], key: str) -> None:
    assert sharding.parameters(mesh_of_size(2))(tree_path(key), shapes[key]).spec == LAYOUT[key]


@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_9b_is_divided_but_for_its_norms(shapes: dict[str, tuple[int, ...]], count: int) -> None:
    whole = bytes_a_device(shapes, 1)
    assert whole / count < bytes_a_device(shapes, count) < 1.001 * whole / count


def test_half_of_the_9b_leaves_room_on_a_16_gb_chip(shapes: dict[str, tuple[int, ...]]) -> None:
    assert bytes_a_device(shapes, 1) > 16e9 > 1.5 * bytes_a_device(shapes, 2)


def test_what_does_not_divide_evenly_is_whole_everywhere() -> None:
    odd = dataclasses.replace(GEMMA_2_9B, vocab_size=256_001, num_hidden_layers=1)
    place, shapes = sharding.parameters(mesh_of_size(2)), expected_shapes(Gemma2(odd))
    found = {key: place(tree_path(key), shape).spec for key, shape in shapes.items()}
    assert found["model.embed_tokens.weight"] == WHOLE
    assert found["model.layers.0.mlp.up_proj.weight"] == ROWS


def test_an_sae_is_split_by_features() -> None:
    place = sharding.features(mesh_of_size(2))
    assert place(("encoder_rows",), (64, 10)).spec == place(("b_enc",), (64,)).spec == ROWS
    assert place(("encoder_rows",), (65, 10)).spec == place(("input_scale",), ()).spec == WHOLE


def test_more_devices_than_there_are() -> None:
    said = r"--model-parallel 99: devices found here: (\d+) of platform cpu; expected at most \1"
    with pytest.raises(UserError, match=said):
        sharding.model_mesh(99)


def test_heads_that_cannot_be_dealt_out() -> None:
    sharding.check_heads("it", 8, 4)
    with pytest.raises(UserError, match=r"--model-parallel 3: it has 8 key/value heads.*one of 1, 2, 4, 8"):
        sharding.check_heads("it", 8, 3)
