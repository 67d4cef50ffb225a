"""What is measured: a model's figures, the SAE on it, and the longest sequence."""

import dataclasses

from neuroscope_jax.models.gemma2 import Gemma2Config


@dataclasses.dataclass(frozen=True)
class Turn:
    """How many tokens a turn of a chat adds to the prompt and gets as its answer."""

    question: int
    answer: int


@dataclasses.dataclass(frozen=True)
class Shape:
    """A model and SAE of random weights."""

    name: str
    model: Gemma2Config
    layer: int  # tapped
    d_sae: int
    average_l0: int  # features active at a token, about
    prompts: tuple[int, ...]  # prompt lengths whose time to first token is measured
    first_token: tuple[int, ...]  # the same, where nothing else is
    turn: "Turn"  # of a chat
    positions: tuple[int, ...]  # where the decode step is timed in a whole context
    common_position: int  # one of them, timed in a short context too
    context_length: int = 4096
    short_context: int = 512


GEMMA_2_2B = Shape(
    name="gemma-2-2b",
    model=Gemma2Config(
        vocab_size=256_000,
        hidden_size=2304,
        intermediate_size=9216,
        num_hidden_layers=26,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
        query_pre_attn_scalar=256,
        sliding_window=4096,
        max_position_embeddings=8192,
    ),
    layer=20,
    d_sae=16_384,
    average_l0=71,
    prompts=(64, 256),
    first_token=(16, 256, 512, 1024, 4000),
    turn=Turn(question=47, answer=16),
    positions=(100, 300, 1000, 3900),
    common_position=300,
)

TINY = Shape(
    name="tiny",
    model=Gemma2Config(
        vocab_size=256,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=12,
        query_pre_attn_scalar=12,
        sliding_window=64,
        max_position_embeddings=1024,
    ),
    layer=1,
    d_sae=1040,  # a number that is no other dimension, so that it can be looked for in a program's text
    average_l0=20,
    prompts=(8, 100),
    first_token=(8, 100, 600),
    turn=Turn(question=15, answer=4),
    positions=(40, 300, 900),
    common_position=300,
    context_length=1024,
)

SHAPES = {shape.name: shape for shape in (GEMMA_2_2B, TINY)}
