"""A made-up dataset of `dchoices.finite_size`: each quantity is the power of N, or the exponential, it should be."""

import dchoices as dc
import numpy as np
import xarray as xr
from dchoices.regimes import REGIMES, point_label, regime_load
from dchoices.variables import describe

# d and N of each regime, and the exponents of y.
SYSTEMS = {
    "below": ([2, 3], [25, 50, 100, 150, 200]),
    "threshold": ([2, 3], [100, 1000, 10_000]),
    "above": ([1, 2, 3], [30, 100, 300, 1000]),
    "step-2": ([1, 2, 3], [100, 1000, 10_000]),
    "step-3": ([1, 2], [100, 300, 1000, 3000]),
}
ORDERS = {"below": 0.0, "threshold": -1 / 2, "above": -1.0, "step-2": -1 / 3, "step-3": -1 / 4}
OFFSETS = (-1, 0, 1)


def finite_size(systems=None, orders=None, width=0.01, decay=0.03, remainder=1.0):
    """Return the dataset: `orders` of y that are other than they should be, half-widths relative to the values.

    The difference of R falls exponentially at rate `decay` below the threshold, and what y leaves of it at later steps
    as N to the power of -`remainder` Q/(Q+1).
    """
    systems, orders = SYSTEMS if systems is None else systems, ORDERS | (orders or {})
    points = [(name, x) for name in systems for x in (OFFSETS if name == "threshold" else (0,))]
    ds, sizes = (sorted({value for given in systems.values() for value in given[axis]}) for axis in (0, 1))
    names = ("lowest_share", "response_excess", "response_remainder", "missed_zero", "load", "horizon")
    values = {name: np.zeros((len(points), len(sizes), len(ds))) for name in names}
    for a, (regime, offset) in enumerate(points):
        level = REGIMES[regime]
        for d in systems[regime][0]:
            for N in systems[regime][1]:
                lam, y = regime_load(regime, d, N, offset), 0.5 * N ** orders[regime]
                left = 0.2 * N ** (-remainder * level / (level + 1))
                excess = {"below": np.exp(-decay * N), "threshold": y, "above": y}.get(regime, left - y / lam)
                missed = 0.3 if regime == "above" else d * y * np.exp(offset)
                found = (y, excess, excess + y / lam, missed, lam, 100.0)
                for name, value in zip(names, found, strict=True):
                    values[name][a, sizes.index(N), ds.index(d)] = value
    dims = ("point", "N", "d")
    variables = {name: (dims, value) for name, value in values.items()}
    variables |= {f"{name}_ci95": (dims, width * np.abs(values[name])) for name in names[:4]}
    there = values["horizon"] > 0
    variables |= {"warm_up": (dims, 20.0 * there), "warm_up_z": (dims, 0.5 * there)}
    variables |= {"warm_up_ok": (dims, there.astype(np.int8)), "offset": ("point", [float(x) for _, x in points])}
    coords = {"point": [point_label(*point) for point in points], "N": sizes, "d": ds}
    runs = describe(xr.Dataset(variables, coords, {"replicates": 20}))
    near = dc.step_response([0, 2, 3], ds, 10.0 ** np.arange(-8, 0))
    return xr.merge([runs, near], join="exact", combine_attrs="override")
