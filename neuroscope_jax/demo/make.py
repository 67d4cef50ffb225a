"""Make the demo pair again: `python -m neuroscope_jax.demo.make`. Stages already done are not repeated."""

import argparse
import dataclasses
import gzip
import json
import logging
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer

from neuroscope_jax.config import load_preset
from neuroscope_jax.demo import examples, export, readme, residuals, tokenizer, train_model, train_sae
from neuroscope_jax.demo.batches import pool
from neuroscope_jax.demo.evidence import describe, firings
from neuroscope_jax.demo.held_out import QUESTIONS, accuracy
from neuroscope_jax.demo.labels import Labeller
from neuroscope_jax.demo.measure import measure
from neuroscope_jax.demo.text import chats, render
from neuroscope_jax.features.calibration import read_stats, save_stats
from neuroscope_jax.flags import flag
from neuroscope_jax.models import hub
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.models.weights import Params, load_weights

logger = logging.getLogger(__name__)

TOKENIZER_SEED, TOKENIZER_CHATS = 1, 40_000
MODEL_POOLS = 24
SAE_SEED, SAE_POOLS, SAE_STEPS, SAE_TUNING_STEPS = 500_000, 5, 2000, 500
HELD_OUT_SEED, HELD_OUT_CHATS = 900_000, 9_000
LABEL_SEED, LABEL_CHATS = 700_000, 10_000
CORPUS_SEED, CORPUS_CHATS = 800_000, 5_000


@dataclasses.dataclass
class Workshop:
    """Where things are put: `out` for the pair, `work` for what only the making needs; and the figures found so far."""

    out: Path
    work: Path
    figures: dict[str, Any]

    @property
    def pair(self) -> Path:
        """The folder of the pair."""
        return self.out / "pair"

    @property
    def model(self) -> Path:
        """The Hugging Face folder."""
        return self.pair / "model"

    @property
    def sae(self) -> Path:
        """The Gemma Scope file."""
        return self.pair / f"sae/layer_{residuals.LAYER}/width_2k/average_l0_{train_sae.TARGET_L0}/params.npz"

    def load(self) -> tuple[Gemma2, Params, Tokenizer]:
        """The released model: bfloat16 weights, computed in float32."""
        model = Gemma2(train_model.CONFIG, jnp.float32)
        words = Tokenizer.from_file(str(self.model / "tokenizer.json"))
        return model, load_weights(self.model, model, jnp.float32), words


def make_tokenizer(shop: Workshop) -> dict[str, Any]:
    """Learn the vocabulary from chats of its own seed."""
    texts = (render(chat) for chat in islice(chats(TOKENIZER_SEED), TOKENIZER_CHATS))
    shop.model.mkdir(parents=True, exist_ok=True)
    config = train_model.CONFIG
    tokenizer.save(tokenizer.train(texts, config.vocab_size), shop.model, config.max_position_embeddings)
    return {"vocabulary": config.vocab_size}


def make_model(shop: Workshop) -> dict[str, Any]:
    """Train the model, write it, ask it the held-out questions."""
    words = Tokenizer.from_file(str(shop.model / "tokenizer.json"))
    params, figures = train_model.train(words, MODEL_POOLS, shop.work)
    export.write_model(shop.model, train_model.CONFIG, params)
    share, wrong = accuracy(*shop.load())
    for question, answer in wrong:
        logger.info("held-out question answered wrongly: %s / %s", question, answer)
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    minutes = figures.pop("seconds") / 60  # of all runs that it took
    return {**figures, "parameters": count, "questions": len(QUESTIONS), "accuracy": share, "minutes": minutes}


def make_sae(shop: Workshop) -> dict[str, Any]:
    """Train the SAE on chats of its own seeds, measure it on held-out phrasings."""
    model, params, words = shop.load()
    text = [row for number in range(SAE_POOLS) for row in pool(words, SAE_SEED + number)]
    known = residuals.collect(model, params, text)
    arrays = train_sae.train(known.x, SAE_STEPS, SAE_TUNING_STEPS)
    shutil.rmtree(shop.pair / "sae", ignore_errors=True)
    export.write_sae(shop.sae.parent, arrays)
    unseen = residuals.collect(model, params, pool(words, HELD_OUT_SEED, HELD_OUT_CHATS, held_out=True))
    measured = dataclasses.asdict(measure(arrays, unseen.x))
    return {"training_tokens": len(known.x), "target": train_sae.TARGET_L0, "width": train_sae.WIDTH, **measured}


def make_labels(shop: Workshop) -> dict[str, Any]:
    """Label every feature that fires from where it fires, and save the strongest examples with each label."""
    model, params, words = shop.load()
    found = residuals.collect(model, params, pool(words, LABEL_SEED, LABEL_CHATS))
    sae, tokens = dict(np.load(shop.sae)), describe(found)
    labeller = Labeller(tokens, words)
    entries: dict[int, dict[str, Any]] = {}
    for firing in firings(sae, found.x):
        top = np.array(examples.strongest(firing, found))
        best = labeller.best(firing, top)
        strength = dict(zip(firing.at.tolist(), firing.values.tolist(), strict=True))
        entries[firing.feature] = {
            "label": labeller.words(best),
            "coverage": round(best.coverage, 2),
            "precision": round(best.precision, 2),
            "fits": int(best.holds(tokens, top).sum()),
            "frequency": round(len(firing.at) / len(found.x), 6),
            "examples": [examples.example(at, strength[at], found, words) for at in top.tolist()],
        }
    examples.save(shop.pair / "top_examples.json", entries)
    export.write_json(shop.pair / "labels.json", {str(i): entry["label"] for i, entry in sorted(entries.items())})
    scores = [(e["coverage"], e["precision"], e["fits"] / len(e["examples"])) for e in entries.values()]
    coverage, precision, fits = np.mean(scores, axis=0)
    return {"labels": len(entries), "tokens": len(found.x), "coverage": coverage, "precision": precision, "fits": fits}


def make_corpus(shop: Workshop) -> dict[str, Any]:
    """Write the chats that `calibrate run --config demo` reads."""
    lines = (json.dumps({"text": render(chat)}) + "\n" for chat in islice(chats(CORPUS_SEED), CORPUS_CHATS))
    packed = gzip.compress("".join(lines).encode(), mtime=0)
    (shop.pair / "corpus.jsonl.gz").write_bytes(packed)
    return {"chats": CORPUS_CHATS, "bytes": len(packed)}


def make_statistics(shop: Workshop) -> dict[str, Any]:
    """Calibrate over the whole corpus, with the command that anybody has."""
    here = {"model": shop.model, "sae_local_path": shop.sae, "corpus_path": shop.pair / "corpus.jsonl.gz"}
    stats = shop.work / "stats.json"
    given = {**here, "config": "demo", "samples": 100 * CORPUS_CHATS, "output": stats, "platform": "cpu"}
    flags = [word for name, value in given.items() for word in (flag(name), str(value))]
    subprocess.run([sys.executable, "-m", "neuroscope_jax", "calibrate", "run", *flags], check=True)
    found, provenance = read_stats(stats)
    pair = dataclasses.replace(provenance.pair, model_id=hub.DEMO, sae_id=load_preset(hub.DEMO).sae_id)
    named = dataclasses.replace(provenance, pair=pair, corpus=hub.DEMO)
    save_stats(shop.pair / "stats.json", found, named)
    return {"tokens": found.tokens, "samples": named.samples, "l0": found.l0, "dead": int((found.count == 0).sum())}


STAGES: dict[str, Callable[[Workshop], dict[str, Any]]] = {
    "tokenizer": make_tokenizer,
    "model": make_model,
    "sae": make_sae,
    "labels": make_labels,
    "corpus": make_corpus,
    "statistics": make_statistics,
}


def main() -> None:
    """Run the stages that are not done yet, then write the README."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=here, help="folder of pair/ and README.md")
    parser.add_argument("--work", type=Path, default=Path("demo-work"), help="folder of checkpoints and figures")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    options.work.mkdir(parents=True, exist_ok=True)
    kept = options.work / "figures.json"
    shop = Workshop(options.out, options.work, json.loads(kept.read_text()) if kept.exists() else {})
    for name, stage in STAGES.items():
        if name not in shop.figures:
            started = time.monotonic()
            found = stage(shop)
            shop.figures[name] = {"minutes": (time.monotonic() - started) / 60, **found}
            export.write_json(kept, shop.figures)
    readme.write(options.out / "README.md", shop.pair, shop.figures)


if __name__ == "__main__":
    main()
