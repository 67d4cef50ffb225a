"""The README of the demo pair, written from what the making measured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuroscope_jax.demo import residuals, train_model
from neuroscope_jax.demo.batches import USER_WEIGHT
from neuroscope_jax.demo.subjects import FAMILIES

PAGE = """\
# The demo pair

A small chat model of Gemma 2's architecture and a JumpReLU SAE on its residual stream, both trained on text that
`text.py` writes from the facts in `subjects/`. They exist so that every part of Neuroscope runs offline, through the
same code and file formats as Gemma 2 and Gemma Scope. The model knows {subjects} subjects and is taught to say so when
asked about others; it is no general assistant. `make.py` writes this page from what it measured.

Make it again: `pip install -e '.[demo]' && python -m neuroscope_jax.demo.make --out OUT --work WORK`
(the stages took {minutes:.0f} minutes in all, on two shared CPU cores; a stage that is done is not repeated).

## Model (`pair/model`, Hugging Face layout, {model_mb:.1f} MB)

| | |
|---|---|
| layers, hidden size, MLP | {layers}, {hidden}, {mlp} |
| heads, key/value heads, head size, window | {heads}, {kv}, {head}, {window} |
| vocabulary | {vocab} |
| parameters | {parameters:,} |
| training tokens | {tokens:,.0f} |
| training loss, last pool of chats | {loss:.3f} nats a token (a user's token counts {user_weight} of a model's) |
| right answers to `held_out.json` (phrasings never trained on; greedy) | {right} of {questions} ({accuracy:.0%}) |

## SAE (`{sae}`, {sae_mb:.1f} MB)

Residual after block {layer} (0-indexed), width {width:,}, raw residuals in; trained on {sae_tokens:,} tokens, read by
the model with its released bfloat16 weights. Measured on {unseen:,} tokens of chats in held-out phrasings; BOS and the
marks around a message do not count.

| | |
|---|---|
| M, the L0 it was trained for | {target} |
| L0 measured, the mean number of active features a token | {l0:.1f} |
| fraction of variance unexplained | {fvu:.3f} |
| features that fire at least once | {alive:,} of {width:,} |

## Labels (`pair/labels.json`, `pair/top_examples.json`, {labels_mb:.1f} MB)

{labels:,} features fired on {label_tokens:,} tokens and have a label. `labels.py` picks for each the plainest
description (tokens, neighbours, subject, question or answer) that fits where the feature fires. Beside each label stand
the feature's strongest examples, the share of its strong activation that the description covers (mean {coverage:.0%}),
how often it fires where the description holds (mean {precision:.0%}) and how many of the saved examples it fits
(mean {fits:.0%}).

## Corpus and statistics (`pair/corpus.jsonl.gz`, `pair/stats.json`, {corpus_mb:.1f} MB)

{corpus_chats:,} chats of their own seed, read by `calibrate run --config demo`; over their {corpus_tokens:,} tokens L0
is {corpus_l0:.1f} and {corpus_dead:,} features never fire.

## Time

{stages}
"""


def size_mb(path: Path) -> float:
    """Megabytes in a file or in all files of a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def write(path: Path, pair: Path, figures: Mapping[str, Mapping[str, Any]]) -> None:
    """Fill the page with the figures of the stages and the sizes of the files in `pair`."""
    model, sae, labels, config = figures["model"], figures["sae"], figures["labels"], train_model.CONFIG
    sae_file = next(pair.glob("sae/*/*/*/params.npz"))
    page = PAGE.format(
        subjects=len({family.subject for family in FAMILIES}),
        minutes=sum(stage["minutes"] for stage in figures.values()),
        model_mb=size_mb(pair / "model"),
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv=config.num_key_value_heads,
        head=config.head_dim,
        mlp=config.intermediate_size,
        window=config.sliding_window,
        vocab=config.vocab_size,
        parameters=model["parameters"],
        tokens=model["tokens"],
        loss=model["loss"],
        user_weight=USER_WEIGHT,
        right=round(model["accuracy"] * model["questions"]),
        questions=model["questions"],
        accuracy=model["accuracy"],
        sae=sae_file.relative_to(pair.parent),
        sae_mb=size_mb(sae_file),
        layer=residuals.LAYER,
        width=sae["width"],
        sae_tokens=sae["training_tokens"],
        unseen=sae["tokens"],
        target=sae["target"],
        l0=sae["l0"],
        fvu=sae["fvu"],
        alive=sae["alive"],
        labels=labels["labels"],
        label_tokens=labels["tokens"],
        labels_mb=size_mb(pair / "labels.json") + size_mb(pair / "top_examples.json"),
        coverage=labels["coverage"],
        precision=labels["precision"],
        fits=labels["fits"],
        corpus_mb=size_mb(pair / "corpus.jsonl.gz") + size_mb(pair / "stats.json"),
        corpus_chats=figures["corpus"]["chats"],
        corpus_tokens=figures["statistics"]["tokens"],
        corpus_l0=figures["statistics"]["l0"],
        corpus_dead=figures["statistics"]["dead"],
        stages="\n".join(f"- {name}: {stage['minutes']:.1f} minutes" for name, stage in figures.items()),
    )
    path.write_text(page, encoding="utf-8")
