"""What quantisation does to a pair on a text, in figures."""

import dataclasses
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus import setup
from neuroscope_jax.corpus.documents import open_corpus
from neuroscope_jax.errors import UserError
from neuroscope_jax.models.build import model_for
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.explained import explained
from neuroscope_jax.models.quantized_cache import served_weights
from neuroscope_jax.models.weights import load_weights, may_be_compact
from neuroscope_jax.pytree import tree_map
from neuroscope_jax.quantization.compare import Sums, compare_step
from neuroscope_jax.sae.formats import load_sae

logger = logging.getLogger(__name__)

WINDOW = 128  # tokens that see each other, the first of them BOS; a multiple of compare.ROWS
PASSAGES = Path(__file__).with_name("passages.txt")
DOCUMENTS = 1000  # of a preset's own corpus that are looked at for enough tokens


class Report(msgspec.Struct, frozen=True):
    """The quantised model beside the plain one, in the same dtype on the same tokens."""

    model: str
    sae: str
    layer: int
    quantization: str
    dtype: str
    text: str
    tokens: int  # that count: BOS and control tokens do not
    next_token_agreement: float  # share of tokens after which both find the same one most likely
    kl_nats: float  # mean divergence of the quantised next-token distribution from the plain one
    top_k: int
    top_overlap: float  # mean share of the top_k features that both show
    activation_error: float  # sum of |differences| / sum of the plain activations
    plain_l0: float  # features active at a token
    quantized_l0: float
    residual_error: float  # mean of |difference| / |plain residual| at the tapped layer
    plain_bytes: int
    quantized_bytes: int


def make(config: NeuroscopeConfig, text: str | None, tokens: int) -> Report:
    """Compare `config.quantization` with none on at most `tokens` tokens of a text.

    The text is a path as in `calibrate run`; without one it is the preset's corpus where that is on this machine, else
    the passages that come with the program. Raises UserError for what cannot be read or holds no text.
    """
    pair = _as_served(setup.find(config))
    name, documents = _text(config, text)
    windows = [(ids, counts) for ids, counts in _windows(documents, pair.tokenizer, tokens) if counts.any()]
    if not windows:
        raise UserError(f"{name}: no text of a token or more; name another with --text")
    with explained(pair.folder, "--dtype bfloat16"):
        plain = load_weights(pair.folder, pair.model, pair.model.dtype, compact=may_be_compact(pair.folder))
        quantised = served_weights(pair.folder, pair.model, config.quantization)
        sae = load_sae(pair.sae_path, pair.model.config.hidden_size, config.sae_input_norm)
        found = [
            compare_step(
                pair.model, plain, quantised, sae, ids, counts, config.target_layer, min(config.top_k, sae.d_sae)
            )
            for ids, counts in windows
        ]
        sums: Sums = tree_map(lambda *each: float(np.sum(jax.device_get(each), dtype=np.float64)), *found)
    return Report(
        model=config.model_id,
        sae=config.sae_id,
        layer=config.target_layer,
        quantization=config.quantization,
        dtype=pair.dtype,
        text=name,
        tokens=int(sums.tokens),
        next_token_agreement=float(sums.agreeing / sums.tokens),
        kl_nats=float(sums.kl / sums.tokens),
        top_k=config.top_k,
        top_overlap=_share(float(sums.overlap), float(sums.with_features)),
        activation_error=_share(float(sums.activation_error), float(sums.activation)),
        plain_l0=float(sums.plain_active / sums.tokens),
        quantized_l0=float(sums.active / sums.tokens),
        residual_error=float(sums.residual_error / sums.tokens),
        plain_bytes=_bytes(plain),
        quantized_bytes=_bytes(quantised),
    )


def as_text(report: Report) -> str:
    """One figure a line, what it means behind it."""
    smaller = report.plain_bytes / report.quantized_bytes
    rows = [
        ("pair", f"{report.model}, {report.sae} after layer {report.layer}"),
        ("compared", f"{report.quantization} with unquantised weights, both in {report.dtype}"),
        ("text", f"{report.tokens:,} tokens of {report.text}"),
        (
            "weights",
            f"{report.quantized_bytes / 1e9:.3g} GB instead of {report.plain_bytes / 1e9:.3g}, {smaller:.2f} x smaller",
        ),
        ("next token", f"{report.next_token_agreement:.1%} the same, KL {report.kl_nats:.4f} nats"),
        (f"top {report.top_k}", f"{report.top_overlap:.1%} of the features are in both lists"),
        ("activations", f"{report.activation_error:.1%} off, over the features active in either"),
        ("L0", f"{report.quantized_l0:.2f}, unquantised {report.plain_l0:.2f}"),
        ("residual", f"{report.residual_error:.2%} off at the tapped layer"),
    ]
    return "\n".join(f"{name:<13}{value}" for name, value in rows)


def _as_served(pair: setup.Pair) -> setup.Pair:
    """In the dtype that `serve` would choose: a corpus pass, which never quantises, may need another."""
    model, dtype = model_for(pair.folder, pair.config.dtype, may_be_compact(pair.folder), pair.config.quantization)
    return dataclasses.replace(pair, model=model, dtype=dtype)


def _text(config: NeuroscopeConfig, path: str | None) -> tuple[str, Iterable[str]]:
    if path is None and not all(source.path for source in config.corpus):
        return "the passages that come with the program", PASSAGES.read_text(encoding="utf-8").split("\n\n")
    corpus = open_corpus(config, path, DOCUMENTS)
    return corpus.name, (document.text for document in corpus)


def _windows(documents: Iterable[str], tokenizer: ChatTokenizer, most: int) -> Iterator[tuple[jax.Array, jax.Array]]:
    """Ids [1, WINDOW] and which of them count, of each stretch of a document until there are `most` tokens."""
    control = np.array(sorted(tokenizer.control_ids))
    for text in documents:
        (ids,) = tokenizer.encode_documents([text])
        for at in range(0, len(ids), WINDOW - 1):
            stretch = ids[at : at + min(WINDOW - 1, most)]
            row = np.array([tokenizer.bos_id, *stretch])
            counts = ~np.isin(row, control)
            padding = (0, WINDOW - len(row))
            most -= int(counts.sum())
            yield jnp.array(np.pad(row, padding)[None], jnp.int32), jnp.array(np.pad(counts, padding))
            if most <= 0:
                return


def _share(part: float, whole: float) -> float:
    """NaN of a text at which no feature is active: neither right nor wrong."""
    return float(part / whole) if whole else float("nan")


def _bytes(tree: object) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
