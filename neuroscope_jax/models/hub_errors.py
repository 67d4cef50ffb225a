"""Why the hub did not deliver, in three lines: what, why, what to do."""

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from neuroscope_jax.errors import UserError

FOR_A_MODEL = "or give a local folder, or try the bundled model: --config demo"


def explain(repo: str, absent: list[str], error: Exception, otherwise: str = FOR_A_MODEL) -> UserError:
    """The message for an error of huggingface_hub; `absent` are the files that were to be had."""
    return failure(repo, *_why_and_remedy(repo, absent, error), otherwise)


def failure(repo: str, why: str, remedy: str, otherwise: str = FOR_A_MODEL) -> UserError:
    """The three lines; `otherwise` is what helps whatever the reason."""
    return UserError(f"Cannot get {repo} from {constants.ENDPOINT}.\nWhy: {why}.\nDo: {remedy}; {otherwise}.")


def _why_and_remedy(repo: str, absent: list[str], error: Exception) -> tuple[str, str]:
    page = f"{constants.ENDPOINT}/{repo}"
    match error:
        case GatedRepoError():
            return _gated(page, error.response.status_code)
        case RepositoryNotFoundError():
            why = f"there is no such repository, or it is private (HTTP {error.response.status_code})"
            return why, "check the name, or set HF_TOKEN if it is private"
        case HFValidationError():
            return "this is neither an existing folder nor a hub id (owner/name)", "check the name"
        case OfflineModeIsEnabled() | LocalEntryNotFoundError() if constants.is_offline_mode():
            why = f"HF_HUB_OFFLINE is set, and the cache lacks {', '.join(absent)}"
            return why, "run once without HF_HUB_OFFLINE"
        case EntryNotFoundError() if not isinstance(error, LocalEntryNotFoundError):
            return f"it holds no {', '.join(absent)}", f"look at the files on {page}/tree/main"
        case HfHubHTTPError() if error.response.status_code == 401:
            return "the hub does not accept your token (401)", f"renew HF_TOKEN at {_tokens_page()}"
        case HfHubHTTPError():
            return f"the hub answered HTTP {error.response.status_code}", "try again later"
        case OSError() if error.errno is not None:
            return f"{error.strerror} ({constants.HF_HUB_CACHE})", "make room, or set HF_HOME to another disk"
    told = str(error).partition("\n")[0]
    why = f"no connection to {constants.ENDPOINT} ({type(error).__name__}: {told})"
    return why, "check the network, HTTPS_PROXY and HF_ENDPOINT"


def _gated(page: str, status: int) -> tuple[str, str]:
    if status == 403:
        return "it is gated, and your token's account has not been granted access (403)", f"accept the terms at {page}"
    if huggingface_hub.get_token() is not None:
        return "it is gated, and the hub does not accept your token (401)", f"renew HF_TOKEN at {_tokens_page()}"
    remedy = f"accept the terms at {page}, create a token at {_tokens_page()} and set HF_TOKEN"
    return "it is gated, and no token was given (401)", remedy


def _tokens_page() -> str:
    return f"{constants.ENDPOINT}/settings/tokens"
