"""`labels score`: the labels of any file scored on a finished pass, the scores written to the file's details."""

import logging
from pathlib import Path

from neuroscope_jax.autointerp import expected, label_file, summary
from neuroscope_jax.autointerp.asking import Asking
from neuroscope_jax.autointerp.evidence import Evidence
from neuroscope_jax.autointerp.label_journal import LabelJournal
from neuroscope_jax.autointerp.reuse import files_of
from neuroscope_jax.autointerp.rounds import Rounds
from neuroscope_jax.autointerp.scoring import Scoring, with_scores
from neuroscope_jax.autointerp.target import Target
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import load_stats
from neuroscope_jax.features.label_details import LabelDetails

logger = logging.getLogger(__name__)


def score(target: Target, asking: Asking, path: Path, features: str | None, replace_flagged: bool) -> str:
    """Score labels and write the details; returns the summary, or what a dry run has to show.

    Raises UserError for what does not fit together, and where the run has to end; answers so far are kept.
    """
    evidence, judge = _evidence(target), asking.settings.model
    with LabelJournal(target.journal_path, asking.retry_failed, read_only=asking.dry_run) as journal:
        details = label_file.read(path, target.config, target.identity)
        labels = _labels(details, target.features(features), path)
        _warn_of_seen_examples(details, evidence, path)
        rounds = Rounds(asking, journal, target.tokenizer)
        cost = expected.of_scores(rounds, evidence, labels, judge)
        scoring = Scoring(evidence, labels, judge)
        if asking.dry_run:
            return summary.dry_run(cost, next(iter(scoring.questions()), None))
        rounds.check(cost)
        rounds.ask("scores", scoring, cost)
        details = label_file.read(path, target.config, target.identity)  # somebody may have changed it meanwhile
        details = with_scores(details, scoring, replace_flagged, whole=features is None)
        written = label_file.save_scores(path, details)
    hint = not replace_flagged and path.resolve() == target.labels_path.resolve()
    lines = [*summary.scores(details, scoring, hint), *summary.spent(rounds), *summary.written(written)]
    return summary.told(lines, "scores" if scoring.reached is False else None)


def _warn_of_seen_examples(details: LabelDetails, evidence: Evidence, path: Path) -> None:
    run = evidence.provenance.run
    if details.run not in (None, run):
        words = "%s: made from pass %s, scored on pass %s, in which the labeler may have seen some of the texts"
        logger.warning(words, path, details.run, run)


def _evidence(target: Target) -> Evidence:
    """Of the pair's finished pass. Raises UserError where there is none."""
    files = files_of(target.config)
    if not files.stats.exists():
        raise UserError(
            f"no corpus pass of {target.config.sae_id} to score labels on: {files.stats} does not exist. Make it with "
            "`neuroscope_jax calibrate run` and the same flags, or name one with --calibration-path"
        )
    load_stats(files.stats, target.identity)
    return Evidence(files, target.tokenizer)


def _labels(details: LabelDetails, features: list[int], path: Path) -> dict[int, str]:
    """The labels to score. Raises UserError where there are none."""
    wanted = set(features)
    labels = {f: d.label for f, d in details.features.items() if d.label and d.shown and f in wanted}
    if not labels:
        raise UserError(f"{path}: holds no label of the features asked for; nothing to score")
    return labels
