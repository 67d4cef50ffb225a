"""Gemma 2 in flax.linen, with Hugging Face's parameter names and layouts.

Read from the bottom up: `Gemma2` is embed → blocks → `logits`; each `Block` sows the residual stream it leaves behind.
Sources: google-deepmind/gemma, and transformers' modeling_gemma2.py (eager, float32) as the reference behaviour.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import msgspec
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from neuroscope_jax.errors import UserError
from neuroscope_jax.models.attention import View, attend
from neuroscope_jax.models.cache import KVCache, slots_of, write
from neuroscope_jax.models.layers import Embedding, Linear, RMSNorm, Turns, gelu_times, rotary, soft_cap

TANH_GELU = "gelu_pytorch_tanh"

OTHERWISE = ("rope_type", "rope_scaling", "quantization_config", "attention_bias")  # change what is computed

Slots = tuple[Float[Array, "B S K H"], Float[Array, "B S K H"]]  # keys and values of one layer


@dataclasses.dataclass(frozen=True)
class Gemma2Config:
    """The figures of one checkpoint, under the names of its config.json."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    query_pre_attn_scalar: float
    sliding_window: int
    max_position_embeddings: int
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-6
    attn_logit_softcapping: float | None = 50.0
    final_logit_softcapping: float | None = 30.0

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> "Gemma2Config":
        """Read config.json. Raises UserError naming the fields that are missing or ask for another architecture."""
        newer = config.get("rope_parameters")  # where transformers 5 writes rope_theta
        found = {**(newer if isinstance(newer, Mapping) else {}), **config}
        fields = dataclasses.fields(cls)
        missing = [f.name for f in fields if f.default is dataclasses.MISSING and found.get(f.name) is None]
        if missing:
            raise UserError(f"config.json: missing {', '.join(missing)}; a Gemma 2 checkpoint states them all")
        try:
            read = msgspec.convert({f.name: found[f.name] for f in fields if f.name in found}, cls)
        except msgspec.ValidationError as error:
            raise UserError(f"config.json: {error}") from error
        if (activation := found.get("hidden_activation") or TANH_GELU) != TANH_GELU:
            raise UserError(f"config.json: hidden_activation is {activation!r}; Gemma 2 uses {TANH_GELU!r}")
        if asked := [f"{name} {found[name]!r}" for name in OTHERWISE if not _usual(found.get(name))]:
            raise UserError(f"config.json: asks for {', '.join(asked)}, which Gemma 2 has not as it was released")
        kinds = ["full_attention" if window is None else "sliding_attention" for window in read.windows]
        if (found.get("layer_types") or kinds) != kinds:
            raise UserError("config.json: layer_types are not Gemma 2's, sliding and full attention in turns")
        return read

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None and not 0 < value < 2**31:
                raise UserError(f"config.json: {field.name} is {value}; expected a positive number")
        if self.num_attention_heads % self.num_key_value_heads or self.head_dim % 2:
            raise UserError(
                f"config.json: {self.num_attention_heads} heads and {self.num_key_value_heads} key/value heads of size "
                f"{self.head_dim}; the first must be a multiple of the second, the size even"
            )

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How far back each layer sees: even ones a sliding window, odd ones everything."""
        return tuple(None if layer % 2 else self.sliding_window for layer in range(self.num_hidden_layers))


def _usual(value: Any) -> bool:
    """Whether a field of OTHERWISE, or its absence, leaves the arithmetic as it is here."""
    kind = value.get("rope_type", value.get("type")) if isinstance(value, Mapping) else value
    return not value or kind == "default"


class Attention(nn.Module):
    """Grouped-query self-attention of one layer."""

    config: Gemma2Config
    dtype: DTypeLike

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        turns: Turns,
        view: View,
        slots: Slots | None,
    ) -> tuple[Float[Array, "B T D"], Slots]:
        c = self.config

        def project(name: str, heads: int) -> Float[Array, "B T heads H"]:
            flat = Linear(heads * c.head_dim, self.dtype, name=name)(x)
            return flat.reshape(*x.shape[:2], heads, c.head_dim)

        with jax.named_scope("qkv"):
            query = rotary(project("q_proj", c.num_attention_heads), turns)
            key = rotary(project("k_proj", c.num_key_value_heads), turns)
            value = project("v_proj", c.num_key_value_heads)
        if slots is not None:
            assert view.start is not None, "what is seen is a cache"
            old_key, old_value = slots
            key, value = write(old_key, key, view.start, view.window), write(old_value, value, view.start, view.window)
        with jax.named_scope("attend"):
            mixed = attend(query, key, value, view, c.query_pre_attn_scalar**-0.5, c.attn_logit_softcapping)
        out = Linear(c.hidden_size, self.dtype, name="o_proj")(mixed.reshape(*x.shape[:2], -1))
        return out, (key, value)


class GatedMLP(nn.Module):
    """GeGLU feed-forward: down(gelu_tanh(gate x) * up x)."""

    config: Gemma2Config
    dtype: DTypeLike

    @nn.compact
    def __call__(self, x: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        gate, up = (
            Linear(self.config.intermediate_size, self.dtype, jnp.float32, name=name)(x)
            for name in ("gate_proj", "up_proj")
        )
        return Linear(self.config.hidden_size, self.dtype, name="down_proj")(gelu_times(gate, up, self.dtype))


@nn.jit
class Block(nn.Module):
    """One layer; what it returns is resid_post, TransformerLens `blocks.i.hook_resid_post`.

    A jit of its own is traced once for all layers alike, not for each of 26 (a third of a warm start); XLA inlines it.
    """

    config: Gemma2Config
    dtype: DTypeLike

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        turns: Turns,
        view: View,
        slots: Slots | None,
    ) -> tuple[Float[Array, "B T D"], Slots]:
        def norm(name: str) -> RMSNorm:
            return RMSNorm(self.config.rms_norm_eps, self.dtype, name=name)

        mixed, slots = Attention(self.config, self.dtype, name="self_attn")(
            norm("input_layernorm")(x), turns, view, slots
        )
        x = x + norm("post_attention_layernorm")(mixed)
        with jax.named_scope("mlp"):
            fed = GatedMLP(self.config, self.dtype, name="mlp")(norm("pre_feedforward_layernorm")(x))
        x = x + norm("post_feedforward_layernorm")(fed)
        self.sow("intermediates", "resid_post", x)
        return x, slots


class Gemma2(nn.Module):
    """The decoder. `__call__` gives the last residual stream, `logits` turns it into next-token scores."""

    config: Gemma2Config
    dtype: DTypeLike = jnp.float32
    UNEMBEDDING: ClassVar = ("embed_tokens", "weight")  # the parameter that `logits` multiplies by

    def setup(self) -> None:
        c = self.config
        self.embed_tokens = Embedding(c.vocab_size, c.hidden_size, self.dtype)
        self.layers = [Block(c, self.dtype) for _ in range(c.num_hidden_layers)]
        self.norm = RMSNorm(c.rms_norm_eps, self.dtype)

    def __call__(
        self, ids: Int[Array, "B T"], positions: Int[Array, "B T"], cache: KVCache | None = None
    ) -> tuple[Float[Array, "B T D"], KVCache | None]:
        """Run T tokens at consecutive `positions`, the same in every row where a cache is given.

        Returns the residual after the last block (before the final norm) and the cache with the new entries, or None
        where no cache was given: then the T tokens see each other only.
        """

        def view(window: int | None) -> View:
            if cache is None:
                return View.of_each_other(positions, window)
            return View.of_cache(positions, slots_of(window, cache.length), window)

        views = {window: view(window) for window in dict.fromkeys(self.config.windows)}
        turns = Turns.of(positions, self.config.head_dim, self.config.rope_theta)
        x, slots = self.embed_tokens(ids), []
        for i, block in enumerate(self.layers):
            mine = None if cache is None else (cache.keys[i], cache.values[i])
            x, written = block(x, turns, views[self.config.windows[i]], mine)
            slots.append(written)
        if cache is None:
            return x, None
        return x, cache.replace(keys=tuple(k for k, _ in slots), values=tuple(v for _, v in slots))

    def logits(self, x: Float[Array, "B T D"]) -> Float[Array, "B T V"]:
        """Final norm, tied unembedding and soft-cap; float32 whatever the dtype."""
        with jax.named_scope("unembed"):
            return soft_cap(self.embed_tokens.attend(self.norm(x)), self.config.final_logit_softcapping)

    @staticmethod
    def final_gain(params: Mapping[str, Any]) -> Float[Array, " D"]:
        """What the final norm multiplies by, float32; of `params` only that norm is looked at."""
        gain: Array = 1.0 + params["norm"]["weight"].astype(jnp.float32)
        return gain

    def scores(self, ids: Int[Array, "B T"], positions: Int[Array, "B T"]) -> Float[Array, "B T V"]:
        """Logits at every position, without a cache. Touches every parameter, so `init` goes through it."""
        return self.logits(self(ids, positions)[0])

    def empty_cache(self, batch: int, length: int) -> KVCache:
        """A cache for `length` positions of this model."""
        c = self.config
        return KVCache.empty(c.windows, batch, length, c.num_key_value_heads, c.head_dim, self.dtype)
