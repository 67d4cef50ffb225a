"""The figures of a load run, what must hold of them, and the report."""

import msgspec

MEMORY_SPREAD = 0.05  # of the mean, either way
EXIT_SECONDS = 5.0


class Figures(msgspec.Struct):
    """What was seen."""

    clients: int
    readers: int
    seconds: float
    requests: dict[str, int]  # by kind; WRONG … did not go as it should
    stream: dict[str, int]  # LOST … did not
    rss: list[int] = []  # bytes, after the warm-up
    tokens: float = 0
    events: float = 0
    first_token_seconds: list[float] = []  # rising; waiting in the queue included
    exit_code: int = 0
    exit_seconds: float = 0

    @property
    def spread(self) -> float:
        """The largest distance of memory from its mean, as a share of the mean."""
        mean = sum(self.rss) / len(self.rss)
        return max(abs(size - mean) for size in self.rss) / mean


def failures(figures: Figures) -> list[str]:
    """What did not hold."""
    wrong = [f"{name}: {count}" for name, count in figures.requests.items() if name.startswith("WRONG")]
    wrong += [f"{name}: {count}" for name, count in figures.stream.items() if name.startswith("LOST")]
    if figures.stream["answers without an end"]:
        wrong.append(f"answers without an end: {figures.stream['answers without an end']}")
    if figures.spread > MEMORY_SPREAD:
        wrong.append(f"memory moved by {figures.spread:.1%}")
    if figures.exit_code or figures.exit_seconds > EXIT_SECONDS:
        wrong.append(f"exit status {figures.exit_code} after {figures.exit_seconds:.1f} s")
    return wrong


def markdown(figures: Figures) -> str:
    """The report."""
    rows = {
        "clients, readers, seconds": f"{figures.clients}, {figures.readers}, {figures.seconds:.0f}",
        **{f"requests: {name}": str(count) for name, count in sorted(figures.requests.items())},
        **{f"stream: {name}": str(count) for name, count in sorted(figures.stream.items())},
        "tokens a second": f"{figures.tokens / figures.seconds:.0f}",
        "events published": f"{figures.events:.0f}",
        "first token, median / 95 %": f"{_quantile(figures, 0.5)} / {_quantile(figures, 0.95)}",
        "memory after warm-up": f"{min(figures.rss) / 2**20:.0f} to {max(figures.rss) / 2**20:.0f} MiB",
        "memory's distance from its mean": f"{figures.spread:.1%}",
        "exit status after SIGTERM": f"{figures.exit_code}, in {figures.exit_seconds:.1f} s",
    }
    lines = ["| under load | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    return "\n".join(lines) + "\n"


def _quantile(figures: Figures, share: float) -> str:
    found = figures.first_token_seconds
    return f"{found[min(int(share * len(found)), len(found) - 1)]:.1f} s" if found else "none"
