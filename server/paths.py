"""Where a request is meant to go: base URLs are typed with slashes too many and with or without /v1.

Nothing is redirected, which would lose the body of a POST.
"""

PREFIX = "/v1"
OUTSIDE = ("/", "/health", "/metrics")


def canonical(path: str) -> str:
    """The path as the routes spell it: one slash at a time, none at the end, /v1 in front."""
    if not path.startswith("/") and "://" in path:  # as a proxy is asked
        path = path.partition("://")[2].partition("/")[2]
    path = "/" + "/".join(part for part in path.split("/") if part)
    inside = path == PREFIX or path.startswith(PREFIX + "/")
    return path if inside or path in OUTSIDE else PREFIX + path


def hint(path: str) -> str:
    """What may have gone wrong with a path that leads nowhere; empty where nothing comes to mind."""
    if path.startswith(f"{PREFIX}{PREFIX}/"):
        return " The base URL has /v1 twice; end it in one."
    return ""
