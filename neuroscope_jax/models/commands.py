"""`models list` and `models pull`."""

import msgspec

from neuroscope_jax import flags
from neuroscope_jax.logs import LogLevel, log_to_stderr


@flags.command()
def list_models(*, json: bool = False) -> str:
    """What --model can name without a download: the bundled model and the checkpoints of the Hugging Face cache.

    Args:
        json: as a JSON array, one object a revision, with what is wrong with those that cannot be served
    """
    log_to_stderr("info")
    from neuroscope_jax.models.checkpoints import checkpoints  # brings JAX in
    from neuroscope_jax.models.hub_download import SHOWN, size_text
    from neuroscope_jax.tables import table

    found = checkpoints()
    if json:
        return msgspec.json.format(msgspec.json.encode(found)).decode()
    rows = []
    for c in found:
        names = [*c.refs, *([f"pinned to {c.pinned}"] if c.pinned else [])]
        revision = f"{c.revision[:SHOWN]} ({', '.join(names) or 'no name'})" if c.revision else "bundled"
        state = c.problem or ("ok" if c.in_use else "ok, but --model means another revision")
        rows.append([c.id, revision, c.model_type or "?", ", ".join(c.dtypes), size_text(c.size_bytes), state])
    return table(["MODEL", "REVISION", "TYPE", "DTYPE", "SIZE", "STATE"], rows)


@flags.command()
def pull(model_id: str, *, revision: str | None = None, offline: bool = False, log_level: LogLevel = "info") -> str:
    """Download a checkpoint, or what is missing of it, into the Hugging Face cache, and print its folder.

    What was interrupted goes on where it stopped; damaged files are fetched anew. HF_HOME, HF_ENDPOINT, HF_TOKEN,
    HF_HUB_OFFLINE and the proxy variables hold.

    Args:
        model_id: hub id, such as google/gemma-2-2b-it
        revision: branch, tag or commit to stay at, recorded for every later command; main follows the hub again
        offline: ask no network: only say whether the cache has it all
        log_level: how much is logged to stderr
    """
    log_to_stderr(log_level)
    from neuroscope_jax.models import hub

    if offline:
        hub.go_offline()
    return str(hub.pull(model_id, revision))
