"""Progress in events, and how many events this process has simulated."""

from __future__ import annotations

from tqdm import tqdm

_simulated = 0


class EventBar(tqdm):
    """A progress bar in events, which are counted for the colophon too."""

    def update(self, n: float | None = 1) -> bool | None:
        """Add simulated events."""
        global _simulated
        _simulated += int(n or 0)
        return super().update(n)


def progress_bar(expected: float, label: str) -> EventBar:
    """Return a progress bar in events, quiet for short work."""
    return EventBar(total=round(expected), desc=label, unit="event", unit_scale=True, mininterval=2, delay=2)


def events_simulated() -> int:
    """Return the number of events simulated in this process."""
    return _simulated
