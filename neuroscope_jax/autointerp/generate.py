"""`labels generate`: a corpus pass, labels from its examples, scores if wanted, and the files that keep them.

pass ─▶ evidence ─▶ estimate ─▶ ask for labels ─▶ files ─▶ ask for scores ─▶ files ─▶ summary
                      └─ over the budget: the end
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from neuroscope_jax.autointerp import expected, label_file, reuse, summary
from neuroscope_jax.autointerp.asking import Asking
from neuroscope_jax.autointerp.evidence import Evidence
from neuroscope_jax.autointerp.label_journal import LabelJournal
from neuroscope_jax.autointerp.labelling import Labelling
from neuroscope_jax.autointerp.merging import by_hand, kept, merged
from neuroscope_jax.autointerp.prompts import PROMPT_VERSION
from neuroscope_jax.autointerp.rounds import Rounds
from neuroscope_jax.autointerp.scoring import Scoring, with_scores
from neuroscope_jax.autointerp.target import Target
from neuroscope_jax.features.label_details import LabelDetail, LabelDetails, details_path, save_labels
from neuroscope_jax.features.logits import TokenScores, token_scores


@dataclasses.dataclass(frozen=True)
class Options:
    """What a user may say beside the pair and how Claude is asked."""

    wanted: reuse.Wanted
    calibrate: str | None  # command that makes the pass, where it is not to be run here
    features: str | None  # all where None
    examples: int  # of the strongest, in a prompt
    decoder_logits: bool
    score: bool
    replace_flagged: bool
    output: Path | None  # None: where the loader looks


def generate(target: Target, asking: Asking, options: Options) -> str:
    """Label features and write the files; returns the summary, or what a dry run has to show.

    Raises UserError for what does not fit together, and where the run has to end; answers so far are kept.
    """
    features = target.features(options.features)
    path = options.output or target.labels_path
    label_file.check_place(path, asking.dry_run)
    label_file.before(path, target.config, target.identity)  # is refused now, not after hours
    files = reuse.pass_of(target.pair, target.identity, options.wanted, options.calibrate)
    evidence = Evidence(files, target.tokenizer)
    logits = _logits(target, evidence, features) if options.decoder_logits else {}
    model = asking.settings.model
    with LabelJournal(target.journal_path, asking.retry_failed, read_only=asking.dry_run) as journal:
        mine = by_hand(label_file.before(path, target.config, target.identity))
        labelling = Labelling(evidence, [f for f in features if f not in mine], options.examples, model, logits)
        rounds = Rounds(asking, journal, target.tokenizer)
        cost, likely = expected.of_labels(rounds, labelling)
        score_cost = expected.of_scores(rounds, evidence, likely, model) if options.score else expected.NOTHING
        if asking.dry_run:
            return summary.dry_run(cost + score_cost, next(iter(labelling.questions()), None), labelling.found)
        rounds.check(cost + score_cost)
        rounds.ask("labels", labelling, cost)
        made, whole = _details(target, evidence, model, labelling.found), options.features is None
        before = label_file.before(path, target.config, target.identity)  # somebody may have changed it meanwhile
        details = merged(made, before, whole)
        save_labels(path, details)
        lines = [*summary.labels(labelling.found, len(kept(labelling.found, before)))]
        lines += summary.by_hand(len(by_hand(before).keys() & set(features)))
        unanswered = "labels" if labelling.reached is False else None
        if options.score:
            scoring = Scoring(evidence, _labels(labelling.found), model)
            rounds.ask("scores", scoring, score_cost)
            details = label_file.read(path, target.config, target.identity)
            details = with_scores(details, scoring, options.replace_flagged, whole)
            save_labels(path, details)
            unanswered = unanswered or ("scores" if scoring.reached is False else None)
            lines += summary.scores(details, scoring, hint=not options.replace_flagged)
        lines += [*summary.spent(rounds), *summary.written((path, details_path(path)))]
        return summary.told(lines, unanswered)


def _details(target: Target, evidence: Evidence, model: str, found: dict[int, LabelDetail]) -> LabelDetails:
    """All that is to be kept of the labels just made."""
    return dataclasses.replace(
        label_file.new(target.config, target.identity),
        labeler=model,
        prompt_version=PROMPT_VERSION,
        run=evidence.provenance.run,
        features=found,
    )


def _labels(found: Mapping[int, LabelDetail]) -> dict[int, str]:
    return {feature: detail.label for feature, detail in found.items() if detail.label}


def _logits(target: Target, evidence: Evidence, features: list[int]) -> dict[int, TokenScores]:
    """Of the features that have examples; the SAE's decoder is read for them."""
    pair, wanted = target.pair, sorted(set(features) & set(evidence.features()))
    return dict(token_scores(pair.folder, pair.model, pair.sae_path, pair.tokenizer, wanted))
