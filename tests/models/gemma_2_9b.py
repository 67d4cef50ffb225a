"""The figures of a model that a 16 GB chip cannot hold."""

from neuroscope_jax.models.gemma2 import Gemma2Config

# config.json of google/gemma-2-9b-it
GEMMA_2_9B = Gemma2Config(
    vocab_size=256_000,
    hidden_size=3584,
    intermediate_size=14_336,
    num_hidden_layers=42,
    num_attention_heads=16,
    num_key_value_heads=8,
    head_dim=256,
    query_pre_attn_scalar=256,
    sliding_window=4096,
    max_position_embeddings=8192,
)
