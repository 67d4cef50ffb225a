"""What the pages say about a report as a whole: where its figures come from, and a summary of them."""

from collections.abc import Iterator
from typing import Any

from neuroscope_jax.features import neuronpedia
from neuroscope_jax.features.calibration import DENSE, HISTOGRAM_EDGES, RARE
from neuroscope_jax.features.label_details import LOW, Control, LabelDetails
from neuroscope_jax.pages.badges import FLAGS
from neuroscope_jax.pages.known import Known, Measured

HASH = 16  # hex digits of a hash that are shown


def facts(known: Known, measured: Measured, per_shard: int, stamp: str, shaded: bool) -> dict[str, Any]:
    """What the pages' scripts need besides the features; `shaded` where whole contexts are."""
    page, tried = neuronpedia.page(known.config, 0), control(known)
    return {
        "per_shard": per_shard,
        "stamp": stamp,
        "shaded": shaded,
        "tokens": measured.stats.tokens,
        "edges": HISTOGRAM_EDGES.tolist(),
        "flags": [{"name": name, "meaning": meaning} for name, meaning in FLAGS.items()],
        "low": LOW,
        "neuronpedia": page and page.removesuffix("0"),
        "control": tried and str(tried),
        "origin": list(origin(known, measured)),
    }


def control(known: Known) -> Control | None:
    """What labels score on features that are not theirs, where that was tried."""
    return next((found.control for found in known.details if found.control), None)


def origin(known: Known, measured: Measured) -> Iterator[tuple[str, str]]:
    """Names and values, for people."""
    made, pair = measured.provenance, measured.provenance.pair
    yield "model", f"{pair.model_id}{_revision(made.model_revision)}, sha256 {pair.model_sha256[:HASH]}…"
    yield "SAE", f"{pair.sae_id}{_revision(made.sae_revision)}, sha256 {pair.sae_sha256[:HASH]}…"
    yield "read after", f"layer {pair.layer}, weights in {made.dtype}, input norm {made.sae_input_norm}"
    yield "corpus", f"{made.corpus}: {made.corpus_documents:,} documents, sha256 {made.corpus_sha256[:HASH]}…"
    samples = f"{made.samples:,} samples of at most {made.sample_length} tokens, seed {made.seed}"
    yield "corpus pass", f"{measured.stats.tokens:,} tokens in {samples}; {made.made}, run {made.run}"
    yield "not counted", made.bos
    for found in known.details:
        yield f"labels ({_maker(found)})", _labels(found)
    if known.file:
        yield "labels from", str(known.file)


def _revision(commit: str | None) -> str:
    return f" at {commit[:HASH]}" if commit else ""


def _maker(found: LabelDetails) -> str:
    made_here = "Claude, made here" if found.labeler else "by hand"
    return "Neuronpedia" if found.source == "neuronpedia" else made_here


def _labels(found: LabelDetails) -> str:
    by = f" by {found.labeler}" if found.labeler else ""
    prompt = f", prompt {found.prompt_version}" if found.prompt_version else ""
    run = f", from run {found.run}" if found.run else ""
    return f"made{by} {found.made}{prompt}{run}, neuroscope {found.version}"


def score_notes(known: Known) -> Iterator[str]:
    """How to read the scores; nothing where there are none."""
    if any(detail.score for found in known.details for detail in found.features.values()):
        yield "Score: balanced accuracy; its bar is empty at 0.5, which is chance, and full at 1."
    if tried := control(known):
        yield f"Control: {tried}."


def summary(known: Known, measured: Measured, features: list[int]) -> Iterator[tuple[str, str]]:
    """Figures over the features of the report, with their names."""
    count, rate = measured.stats.count[features], measured.stats.firing_rate[features]
    labelled = sum(known.label(feature) is not None for feature in features)
    details = (known.detail(feature) for feature in features)
    scores = [d.score.balanced_accuracy for d in details if d and d.score and d.score.balanced_accuracy is not None]
    yield f"{len(features):,}", "features"
    yield f"{labelled:,}", "labelled"
    by_hand = sum(known.labels.source_of(feature) == "by hand" for feature in features)
    if by_hand:
        yield f"{by_hand:,}", "of them by hand"
    if scores:
        yield f"{sum(scores) / len(scores):.2f}", f"mean score of {len(scores):,}"
        yield f"{sum(score < LOW for score in scores):,}", f"scored below {LOW:.2f}"
    yield f"{int((count == 0).sum()):,}", "dead"
    yield f"{int(((count > 0) & (count < RARE)).sum()):,}", "rare"
    yield f"{int((rate > DENSE).sum()):,}", "dense"
    yield f"{measured.stats.tokens:,}", "tokens"
    yield f"{measured.stats.l0:.1f}", "features active per token"
