"""What a file really is, where it is not what its name says: the usual accidents of downloads and clones."""

from pathlib import Path


def what_it_is(path: Path) -> str:
    """A few words for a message: an empty file, a Git LFS pointer, an HTML page, or a damaged file and its size."""
    with path.open("rb") as file:
        start = file.read(64).lstrip()
    if not start:
        return "an empty file"
    if start.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file itself (cloned without `git lfs pull`)"
    if start.startswith(b"<"):
        return "an HTML or XML page (a login or error page saved in its place)"
    return f"damaged or not complete ({path.stat().st_size:,} bytes; an interrupted download?)"
