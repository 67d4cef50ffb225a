"""`labels report` and `labels show`."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from neuroscope_jax import flags
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.selection import selected
from neuroscope_jax.flag_groups import expanded
from neuroscope_jax.logs import LogLevel, log_to_stderr
from neuroscope_jax.pair_flags import SHOWN_DEFAULTS, PassFlags

if TYPE_CHECKING:
    from neuroscope_jax.pages.known import Known, Measured
    from neuroscope_jax.pages.site import Sources


@flags.command(**SHOWN_DEFAULTS)
@expanded
def report(
    *,
    pair: PassFlags,
    out: str,
    features: str | None = None,
    labels: str | None = None,
    plain: bool = False,
    decoder_logits: bool = False,
    log_level: LogLevel = "info",
) -> str:
    """Write pages on the features of a finished corpus pass, to open in any browser: labels, scores, examples.

    Nothing in them needs a server or a network. To shade whole contexts, the model is run over them once more.

    Args:
        out: folder of the report, as in report/ (new, empty or holding an earlier one, which is replaced)
        features: only these, as in 1,2,5-9
        labels: a label file, instead of those in the cache folder
        plain: shade the firing token only, and do not run the model
        decoder_logits: also list the tokens that each feature makes likelier and unlikelier; reads the SAE's decoder
        log_level: how much is logged to stderr
    """
    log_to_stderr(log_level)
    from neuroscope_jax.pages import folder, site
    from neuroscope_jax.pages.known import known

    began, place = time.perf_counter(), Path(out).expanduser()
    folder.check(place)
    resolved = pair.resolved()
    measured = _pass_with_examples(resolved)
    found = known(resolved, measured, Path(labels).expanduser() if labels else None)
    chosen = sorted(selected(features, found.width)) if features is not None else list(range(found.width))
    with folder.replaced(place) as fresh:
        sources = _sources(found, measured, None if features is None else chosen, plain, decoder_logits)
        site.write(fresh, found, measured, chosen, sources)
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    seconds = time.perf_counter() - began
    return f"{len(chosen):,} features, {size / 1e6:,.1f} MB, {seconds:.0f} s\n{place / 'index.html'}"


@flags.command(**SHOWN_DEFAULTS)
@expanded
def show(
    *,
    pair: PassFlags,
    features: str,
    labels: str | None = None,
) -> str:
    """Preview features: label and where it comes from, score, firing rate, three examples with the token marked.

    Args:
        features: which, as in 0,5
        labels: a label file, instead of those in the cache folder
    """
    from neuroscope_jax.pages.known import known, read_pass
    from neuroscope_jax.pages.terminal import as_text, for_stdout

    resolved = pair.resolved()
    found = known(resolved, read_pass(resolved), Path(labels).expanduser() if labels else None)
    return for_stdout(as_text(found, selected(features, found.width)))


def _pass_with_examples(config: NeuroscopeConfig) -> "Measured":
    """Raises UserError where there is none."""
    from neuroscope_jax.features.calibration import stats_path
    from neuroscope_jax.pages.known import read_pass

    found = read_pass(config)
    if found is None or not found.files.examples.exists():
        raise UserError(
            f"no examples of {config.sae_id} on {config.model_id}: beside {stats_path(config)} there are none. Find "
            "them with `neuroscope_jax calibrate run` and the same flags, or name the statistics file of a finished "
            "pass with --calibration-path"
        )
    return found


def _sources(
    found: "Known", measured: "Measured", features: list[int] | None, plain: bool, decoder_logits: bool
) -> "Sources":
    """Of these features or all. Runs the model unless `plain`."""
    from neuroscope_jax.corpus import setup
    from neuroscope_jax.corpus.shading import shading
    from neuroscope_jax.features.logits import token_scores
    from neuroscope_jax.pages.contexts import Pieces
    from neuroscope_jax.pages.examples import Examples
    from neuroscope_jax.pages.site import Sources

    examples, shades, logits = Examples(measured.files.examples, measured.provenance), None, None
    if not plain or decoder_logits:
        pair = setup.find(found.config)
        if not plain:
            shades = shading(found.config, measured.files, features), Pieces(pair.tokenizer)
        if decoder_logits:
            wanted = range(found.width) if features is None else features
            logits = token_scores(pair.folder, pair.model, pair.sae_path, pair.tokenizer, wanted)
    return Sources(examples, shades, logits)
