"""All claims: those of the paper (J. Anselmi, F. Dufour, arXiv:1802.06566) by their numbers, then those beyond it.

A claim is one function, in the module of its subject: a check that yields the cells of the claim itself, or of a
control under the same tolerances.
"""

from __future__ import annotations

from dchoices.claims import (  # noqa: F401  registers the claims
    concentration,
    critical,
    dispatch,
    fluctuations,
    fluid,
    heavy_traffic,
    messages,
    relaxation,
    replacement,
    service,
    stationary,
)
from dchoices.claims.engine import REGISTRY, Claim

CLAIMS: list[Claim] = sorted(REGISTRY.values(), key=lambda entry: entry.order)
