"""The claim about concentration: how often a path strays from the fluid path."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from dchoices.claims.engine import CLAIM, Cell, Data, claim, missing, where
from dchoices.statistics import student
from dchoices.tails import fit_tails

# The exponential's part of the fall is 1 for an exponential and 0 for a power of N, and its rate goes as ε²: both are
# met nearer than half way to the next whole number. What theory allows beside them stays within that. On a grid of
# times a tail has a factor N^(-1/2) in front (Bahadur and Rao, 1960). With s = -d log P/d log N, here 3 and more, it
# takes 1/(2s) from the part and twice that from the exponent of ε: 0.17 and 0.33. The next term of the rate, as in the
# Poisson law of mean λN, is -ε³/(6λ²) beside ε²/(2λ), and takes 0.1 more from that exponent.
HALF_WAY = 0.5
PART, SQUARE = 1.0, 2.0
# A power of N can be summed if its exponent exceeds this.
SUMMABLE = 1.0


def _scale(runs: xr.Dataset, model: str) -> float | None:
    """Return the perturbation of the load to look at: none for the claim, the smallest there is for the control."""
    found = sorted(scale for scale in runs.perturbation.values.tolist() if (scale == 0) == (model == CLAIM))
    return found[0] if found else None


@claim(
    id="P9",
    statement="Concentration: the probability that a path strays from the fluid path by more than ε falls "
    "exponentially in N, at a rate about proportional to ε², so that its sum over N is finite.",
    source="proof of the fluid limit (Azuma-Hoeffding, Borel-Cantelli), arXiv:1802.06566",
    quantity="s, where P falls as 1/N^s about the middle of the N, and the part of it that is an exponential's, not a "
    "power's, per d, λ and ε; exponent of ε in the rate of the exponential, per d and λ",
    tolerance_reason="a sum over N needs s > 1; the part is 1 for an exponential and 0 for a power law, the exponent "
    "is 2, and both are met nearer than half way to the next whole number; a factor N^(-1/2) before the exponential, "
    "which theory allows, takes up to 0.17 and 0.33 from them",
    controls={
        "perturbed": "λ with a Cauchy factor of size 1/√N in every replicate: P falls as a power of N, N^(-1/2) "
        "in the end"
    },
    dataset="concentration",
    figure="fig-concentration",
)
def concentration(data: Data, model: str) -> Iterator[Cell]:
    """All three for each pair of d and λ; the rate is that of an exponential alone."""
    runs = data["concentration"]
    scale = _scale(runs, model)
    if scale is None:
        yield missing("runs with " + ("the load as it is" if model == CLAIM else "perturbed loads"))
        return
    replicates, epsilon = int(runs.attrs["replicates"]), runs["ε"].values
    places = list(itertools.product(runs.d.values.tolist(), runs["λ"].values.tolist()))
    widening = student(math.inf, len(places) * (2 * epsilon.size + 1))
    for d, lam in places:
        at = where({"d": d, "λ": lam})
        tail = runs.tail_frequency.sel(perturbation=scale, d=d, λ=lam).transpose("ε", "N").sortby("N")
        exceeded, N = np.rint(tail.values * replicates).astype(np.int64), tail.N.values.astype(float)
        both, alone = (fit_tails(exceeded, replicates, N, power=power) for power in (True, False))
        if both is None or alone is None:
            yield missing(f"tail at {at}")
            continue
        for name, (values, errors), low, high in (
            ("s", both.local_exponent(), SUMMABLE, math.inf),
            ("part of the exponential", both.exponential_part(), PART - HALF_WAY, PART + HALF_WAY),
        ):
            for e, value, error in zip(epsilon.tolist(), values.tolist(), errors.tolist(), strict=True):
                yield Cell(f"{name}, {at}, ε = {e:g}", value, widening * error, low, high)
        exponent, error = 0.0, math.inf  # of a rate that is none
        if epsilon.size > 1 and (alone.rate > 0).all():
            exponent, error = alone.rate_exponent(epsilon)
        yield Cell(f"exponent of ε, {at}", exponent, widening * error, SQUARE - HALF_WAY, SQUARE + HALF_WAY)
