"""Progress bars: on a terminal only."""

from tqdm import tqdm


def progress(what: str, total: int, unit: str, done: int = 0) -> "tqdm[None]":
    """A bar that counts `total` units from `done` up; silent where stderr is not a terminal."""
    return tqdm(total=total, initial=done, desc=what, unit=f" {unit}", disable=None, dynamic_ncols=True, leave=False)
