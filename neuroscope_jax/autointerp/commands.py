"""`labels generate` and `labels score`."""

from pathlib import Path

from neuroscope_jax import flags
from neuroscope_jax.autointerp.ask_flags import MODEL, AskFlags
from neuroscope_jax.flag_groups import expanded
from neuroscope_jax.logs import log_to_stderr
from neuroscope_jax.pair_flags import SHOWN_DEFAULTS, PassFlags, WorkFlags

MOST_EXAMPLES = 20  # as many as a pass keeps of the strongest
MOST_SAMPLES, MOST_SEED = 2**24 - 1, 2**32 - 1


@flags.command(**SHOWN_DEFAULTS, samples=50_000, seed=0)
@expanded
def generate(
    *,
    pair: PassFlags,
    ask: AskFlags,
    work: WorkFlags,
    corpus_path: str | None = None,
    samples: int | None = None,
    seed: int | None = None,
    examples_per_feature: int = MOST_EXAMPLES,
    labeler: str = MODEL,
    score: bool = False,
    decoder_logits: bool = False,
    output: str | None = None,
) -> str:
    """Have Claude label features from the texts that activate them most, and write the labels where `serve` looks.

    Needs ANTHROPIC_API_KEY. A finished corpus pass of the pair is reused, unless the flags ask for another one; else
    one is run first. Every answer is kept: killed at any moment, the same command goes on and pays for none twice.

    Args:
        corpus_path: file or folder of .txt, .jsonl(.gz) or .parquet; without it the config's sources (WikiText-103)
        samples: stretches of at most 127 tokens to read, spread over the documents
        seed: of the choice of stretches and of the random examples
        examples_per_feature: of the strongest, shown to Claude beside 5 random ones; at most 20
        labeler: Claude model that writes the labels and, with --score, judges them
        score: also score each label on texts the labeler has not seen, 7 calls more a label
        decoder_logits: also show which tokens a feature makes likelier; reads the SAE's decoder
        output: label file to write, its details go beside it; without it where `serve` looks for them
    """
    log_to_stderr(ask.log_level)
    _check(samples, seed, examples_per_feature)
    _check_together(pair.calibration_path, (corpus_path, samples, seed), ask.replace_flagged, score)
    asking = ask.asking(labeler)  # the key is missed before anything is loaded
    config = pair.resolved(**vars(work))
    from neuroscope_jax import platforms

    platforms.choose(config.platform)
    # Only now: these touch JAX, and must find the platform chosen.
    from neuroscope_jax.autointerp import generate as command
    from neuroscope_jax.autointerp.reuse import SAMPLES, Wanted
    from neuroscope_jax.autointerp.target import Target

    same = vars(pair) | vars(work)
    same |= {"calibration_path": None, "corpus_path": corpus_path, "samples": samples or SAMPLES, "seed": seed}
    options = command.Options(
        wanted=Wanted(corpus_path, samples, seed),
        calibrate=f"neuroscope_jax calibrate run {flags.typed(same)}" if ask.dry_run else None,
        features=ask.features,
        examples=examples_per_feature,
        decoder_logits=decoder_logits,
        score=score,
        replace_flagged=ask.replace_flagged,
        output=Path(output).expanduser() if output else None,
    )
    return command.generate(Target.find(config), asking, options)


@flags.command(**SHOWN_DEFAULTS)
@expanded
def score(*, pair: PassFlags, ask: AskFlags, labels: str, judge: str = MODEL) -> str:
    """Score labels: can Claude, told a label, tell texts that activate the feature from others?

    Needs ANTHROPIC_API_KEY, and a finished corpus pass of the pair. Scores are written beside the labels.

    Args:
        labels: file of labels, as in labels.json: JSON from feature index to label, whoever wrote it
        judge: Claude model that is asked
    """
    log_to_stderr(ask.log_level)
    asking = ask.asking(judge)  # the key is missed before anything is loaded
    config = pair.resolved(platform="cpu")  # the model does not run
    from neuroscope_jax import platforms

    platforms.choose(config.platform)
    from neuroscope_jax.autointerp import label_file
    from neuroscope_jax.autointerp import score as command
    from neuroscope_jax.autointerp.target import Target
    from neuroscope_jax.features.labels import labels_path

    path, generated = Path(labels).expanduser(), labels_path(config, "autointerp")
    if ask.replace_flagged and path.resolve() != generated.resolve():
        raise flags.UsageError(
            f"--replace-flagged takes labels out of the file that `labels generate` writes only ({generated}); {path} "
            "stays as it is. Leave the flag out: what scores low is flagged in the details beside the file"
        )
    label_file.check(path, config, ask.dry_run)
    return command.score(Target.find(config), asking, path, ask.features, ask.replace_flagged)


def _check_together(calibration_path: str | None, wanted: tuple[object, ...], replaces: bool, scores: bool) -> None:
    """Flags that mean nothing beside, or without, one another."""
    if replaces and not scores:
        raise flags.UsageError("--replace-flagged goes by the scores: give --score too, or use `labels score`")
    if calibration_path and any(flag is not None for flag in wanted):
        raise flags.UsageError(
            "--calibration-path names a finished pass; --corpus-path, --samples and --seed ask for one"
        )


def _check(samples: int | None, seed: int | None, examples: int) -> None:
    for name, value, least, most in (
        ("samples", samples, 1, MOST_SAMPLES),
        ("seed", seed, 0, MOST_SEED),
        ("examples_per_feature", examples, 1, MOST_EXAMPLES),
    ):
        if value is not None and not least <= value <= most:
            raise flags.UsageError(f"{flags.flag(name)} {value}: expected from {least} to {most:,}")
