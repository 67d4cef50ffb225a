"""Why the hub did not deliver, in three lines: what, why, what to do."""

import errno
import re

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import (
    EntryNotFoundError,
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from neuroscope_jax.errors import UserError

UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
FOR_A_MODEL = "or give a local folder, or try the bundled model: --config demo"


def explain(
    repo: str, absent: list[str], error: Exception, otherwise: str = FOR_A_MODEL, revision: str = "main"
) -> UserError:
    """The message for an error of huggingface_hub; `absent` are the files that were to be had."""
    if isinstance(error, RevisionNotFoundError):
        remedy = f"look for its branches and tags on {_endpoint()}/{repo}/tree/main, and correct --revision"
        return failure(repo, f"it has no revision {revision}", remedy, otherwise)
    return failure(repo, *_why_and_remedy(repo, absent, error), otherwise)


def offline(repo: str, absent: list[str]) -> UserError:
    """The message where the network may not be asked and the cache lacks something."""
    return failure(repo, *_offline(absent))


def failure(repo: str, why: str, remedy: str, otherwise: str = FOR_A_MODEL) -> UserError:
    """The three lines; `otherwise` is what helps whatever the reason."""
    return UserError(f"Cannot get {repo} from {_endpoint()}.\nWhy: {why}.\nDo: {remedy}; {otherwise}.")


def _why_and_remedy(repo: str, absent: list[str], error: Exception) -> tuple[str, str]:
    page = f"{_endpoint()}/{repo}"
    match error:
        case GatedRepoError():
            return _gated(page, error.response.status_code)
        case RepositoryNotFoundError():
            why = f"there is no such repository, or it is private (HTTP {error.response.status_code})"
            return why, "check the name, or set HF_TOKEN if it is private"
        case UnicodeEncodeError():
            return "HF_TOKEN holds characters that no token has", f"copy it again from {_tokens_page()}"
        case HFValidationError():
            return "this is neither an existing folder nor a hub id (owner/name)", "check the name"
        case OfflineModeIsEnabled() | LocalEntryNotFoundError() if constants.HF_HUB_OFFLINE:
            return _offline(absent)
        case FileMetadataError():
            why = "the answer is not a hub's: it names no commit (a login page, a proxy, another server?)"
            return why, "check HF_ENDPOINT and HTTPS_PROXY, and whether this network wants a login first"
        case EntryNotFoundError() if not isinstance(error, LocalEntryNotFoundError):
            listed = (
                f", or list them: `neuroscope_jax sae list --remote {repo}`" if "".join(absent).endswith(".npz") else ""
            )
            return f"it holds no {', '.join(absent)}", f"look at the files on {page}/tree/main{listed}"
        case HfHubHTTPError() if error.response.status_code == 401:
            return "the hub does not accept your token (401)", f"renew HF_TOKEN at {_tokens_page()}"
        case HfHubHTTPError():
            return f"the hub answered HTTP {error.response.status_code}", "try again later"
        case OSError() if error.errno in UNWRITABLE:
            remedy = f"let this user write to {constants.HF_HUB_CACHE}, or set HF_HOME to a folder that may be written"
            return f"{error.strerror} ({error.filename or constants.HF_HUB_CACHE})", remedy
        case OSError() if error.errno is not None:
            return f"{error.strerror} ({constants.HF_HUB_CACHE})", "make room, or set HF_HOME to another disk"
    if "Consistency check" in str(error) or type(error).__name__ == "RemoteProtocolError":
        return (
            f"the connection to {_endpoint()} ended before the file did",
            "run the same command again: it goes on from there",
        )
    return _no_connection(error)


def _offline(absent: list[str]) -> tuple[str, str]:
    return f"HF_HUB_OFFLINE is set, and the cache lacks {', '.join(absent)}", "run once without HF_HUB_OFFLINE"


def _no_connection(error: Exception) -> tuple[str, str]:
    told = _without_secrets(str(error).partition("\n")[0])
    why = f"no connection to {_endpoint()} ({type(error).__name__}: {told})"
    certificate = ", and SSL_CERT_FILE where this network signs with certificates of its own"
    certificate = certificate if "CERTIFICATE" in told else ""
    return why, f"check the network, HTTPS_PROXY and HF_ENDPOINT{certificate}"


def _gated(page: str, status: int) -> tuple[str, str]:
    if status == 403:
        return "it is gated, and your token's account has not been granted access (403)", f"accept the terms at {page}"
    if huggingface_hub.get_token() is not None:
        return "it is gated, and the hub does not accept your token (401)", f"renew HF_TOKEN at {_tokens_page()}"
    remedy = f"accept the terms at {page}, create a token at {_tokens_page()} and set HF_TOKEN"
    return "it is gated, and no token was given (401)", remedy


def _tokens_page() -> str:
    return f"{_endpoint()}/settings/tokens"


def _endpoint() -> str:
    return _without_secrets(constants.ENDPOINT)


def _without_secrets(text: str) -> str:
    """Without the token and without the passwords of addresses, which some libraries quote in their messages."""
    text = re.sub(r"(?<=://)[^/\s@]*@", "", text)
    token = huggingface_hub.get_token()
    for secret in (token, repr(token)[1:-1], repr((token or "").encode())[2:-1]) if token else ():
        text = text.replace(secret, "HF_TOKEN")
    return text
