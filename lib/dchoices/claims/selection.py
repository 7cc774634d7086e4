"""Which cells can show a claim about N → ∞, and sources that several claims quote."""

from __future__ import annotations

from dchoices.theory.closed_forms import queue_bound

# Limits are read off runs with at least this many servers; with fewer, a claim about N -> ∞ is inconclusive.
ENOUGH_SERVERS = 10_000
# Closer to a step of the bound, in units of 1-λ, the class that the step opens or closes holds so few servers that
# fluctuations at N = 10^5 empty or fill it: corrections for finite N die out slower than the ladder can show.
AWAY_FROM_SWITCH = 0.1
# Part of the distance to the control within which a value must lie, under half so that no value can satisfy both.
NEARER_THAN_CONTROL = 0.4
REVIEW = "abstract of arXiv:1802.06566"


def far(lam: float, d: int, service: str = "exponential") -> bool:
    """Tell whether λ is far enough from every step of the bound for finite N to show the limit."""
    room = AWAY_FROM_SWITCH * (1 - lam)
    below = queue_bound(lam - room, d, service) if lam > room else 1
    return below == queue_bound(lam + room, d, service)
