"""`labels pull`."""

import collections
from pathlib import Path

from neuroscope_jax import flags
from neuroscope_jax.config import NeuroscopeConfig, load_preset
from neuroscope_jax.features.label_details import LabelDetails, save_labels
from neuroscope_jax.features.labels import labels_path, read_fitting_details, read_labels
from neuroscope_jax.flag_groups import expanded
from neuroscope_jax.logs import LogLevel, log_to_stderr
from neuroscope_jax.pair_flags import SHOWN_DEFAULTS, PairFlags


@flags.command(**SHOWN_DEFAULTS)
@expanded
def pull(
    *,
    pair: PairFlags,
    refresh: bool = False,
    log_level: LogLevel = "info",
) -> str:
    """Fetch the labels that Neuronpedia publishes of an SAE, once; from then on they are there without a network.

    NEURONPEDIA_DATASETS names a mirror of its bucket.

    Args:
        refresh: fetch them again where they are there already
        log_level: how much is logged to stderr
    """
    log_to_stderr(log_level)
    from neuroscope_jax.features import neuronpedia
    from neuroscope_jax.features.width import width_of

    resolved = pair.resolved()
    if labels_path(resolved, "neuronpedia") == labels_path(load_preset("demo"), "neuronpedia"):
        return "The demo's labels are bundled with it; Neuronpedia has none of this pair, and nothing was fetched."
    path, width = labels_path(resolved, "neuronpedia"), width_of(resolved)
    if path.is_file() and not refresh:
        return _kept(path, resolved, width)
    details = neuronpedia.fetch(resolved, width)
    save_labels(path, details)
    return f"{_described(details)}\nwritten to {path}"


def _kept(path: Path, config: NeuroscopeConfig, width: int) -> str:
    """What is there already. Raises UserError where it belongs to another SAE."""
    details = read_fitting_details(path, config, width)
    texts = read_labels(path, width)
    described = _described(details) if details else f"labels of {len(texts):,} of {width:,} features, origin unknown"
    return f"{described}\nhere already, in {path}; --refresh fetches them again"


def _described(details: LabelDetails) -> str:
    """Whose labels, how many, made how and fetched when."""
    ids = f"{details.neuronpedia_model_id}/{details.neuronpedia_sae_id}"
    makers = collections.Counter((d.type_name or "by hand", d.model or "a person") for d in details.features.values())
    several = sum(detail.alternatives > 0 for detail in details.features.values())
    lines = [f"{ids}: labels of {len(details.features):,} of {details.width:,} features"]
    lines += [f"  {count:,} by {model} ({method})" for (method, model), count in makers.most_common()]
    lines += [f"  {several:,} features had several, of which one was taken"] if several else []
    if details.download:
        files = len(details.download.batches)
        lines.append(f"fetched {details.made} from {details.download.address}, {files:,} files")
    return "\n".join(lines)
