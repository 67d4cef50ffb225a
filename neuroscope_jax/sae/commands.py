"""`sae list` and `sae pull`."""

from typing import TYPE_CHECKING

import msgspec

from neuroscope_jax import flags
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.logs import LogLevel, log_to_stderr

if TYPE_CHECKING:
    from neuroscope_jax.sae.releases import LocalSae, PublishedSae


@flags.command()
def list_saes(*, remote: str | None = None, revision: str | None = None, json: bool = False) -> str:
    """What --sae and --sae-path can name: the SAEs on this machine, or those that a release on the hub holds.

    Args:
        remote: hub id of a release, such as google/gemma-scope-2b-pt-res; lists what can be pulled from it
        revision: branch, tag or commit of that release
        json: as a JSON array, one object an SAE
    """
    log_to_stderr("info")
    if revision and not remote:
        raise flags.UsageError("--revision belongs to --remote; the cache is listed with all its revisions")
    from neuroscope_jax.sae import releases  # brings JAX in

    if remote:
        commit, found = releases.published(remote, revision)
        return _as_json(found) if json else _published(remote, commit, found)
    local = releases.on_this_machine()
    return _as_json(local) if json else _local(local)


@flags.command()
def pull(
    repo: str,
    *,
    path: str = NeuroscopeConfig.sae_path,
    revision: str | None = None,
    offline: bool = False,
    log_level: LogLevel = "info",
) -> str:
    """Download one SAE of a release into the Hugging Face cache, and print its file.

    What was interrupted goes on where it stopped; a damaged file is fetched anew. HF_HOME, HF_ENDPOINT, HF_TOKEN,
    HF_HUB_OFFLINE and the proxy variables hold.

    Args:
        repo: hub id of the release, such as google/gemma-scope-2b-pt-res
        path: file within the release; `sae list --remote REPO` shows which there are
        revision: branch, tag or commit to stay at, recorded for every later command; main follows the hub again
        offline: ask no network: only say whether the cache has it
        log_level: how much is logged to stderr
    """
    log_to_stderr(log_level)
    from neuroscope_jax.models import hub

    if offline:
        hub.go_offline()
    return str(hub.pull_sae(repo, path, revision))


def _as_json(found: object) -> str:
    return msgspec.json.format(msgspec.json.encode(found)).decode()


def _published(repo: str, commit: str, found: "list[PublishedSae]") -> str:
    from neuroscope_jax.models.hub_download import SHOWN, size_text
    from neuroscope_jax.sae.releases import by_variant
    from neuroscope_jax.tables import table

    placed = [sae for sae in found if sae.place.layer is not None]
    others = [sae for sae in found if sae.place.layer is None]
    rows = [
        [str(place.layer), str(place.width), _span([sae.size_bytes for sae in saes]), _l0s(saes)]
        for place, saes in by_variant(placed)
    ]
    total = size_text(sum(sae.size_bytes for sae in found))
    return "\n".join(
        [
            f"{repo} at {commit[:SHOWN]}: {len(found):,} SAEs, {total}; * is in the cache",
            *([table(["LAYER", "WIDTH", "SIZE OF EACH", "AVERAGE L0"], rows)] if rows else []),
            *([f"elsewhere: {sae.path} ({size_text(sae.size_bytes)})" for sae in others]),
            "Each is layer_LAYER/width_WIDTH/average_l0_L0/params.npz: --sae-path of serve, --path of sae pull.",
        ]
    )


def _span(sizes: list[int]) -> str:
    from neuroscope_jax.models.hub_download import size_text

    least, most = size_text(min(sizes)), size_text(max(sizes))
    return least if least == most else f"{least} to {most}"


def _l0s(saes: "list[PublishedSae]") -> str:
    return "  ".join(f"{sae.place.average_l0}{'*' if sae.here else ''}" for sae in saes)


def _local(found: "list[LocalSae]") -> str:
    from neuroscope_jax.models.hub_download import SHOWN, size_text
    from neuroscope_jax.tables import table

    rows = [
        [
            sae.repo,
            sae.path,
            f"{sae.features:,}" if sae.features else "?",
            size_text(sae.size_bytes),
            sae.revision[:SHOWN] if sae.revision else "bundled",
            sae.problem or ("ok" if sae.in_use else "ok, but --sae means another revision"),
        ]
        for sae in found
    ]
    return table(["SAE", "PATH", "FEATURES", "SIZE", "REVISION", "STATE"], rows)
