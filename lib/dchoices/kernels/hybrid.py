"""Integration of the fluid model with memory inside a mode, up to the next switch.

The method is the linearly implicit Euler scheme with extrapolation (P. Deuflhard; Hairer and Wanner, Solving Ordinary
Differential Equations II, IV.9): high order without tables of coefficients, and stable where class k empties and its
rate θ = λR_k/y_k grows without bound. Each Euler step solves (s - J) z = r, and J has a shape that makes this as cheap
as the drift itself:

    J = T + e w₀ᵀ + v w₁ᵀ + u w₂ᵀ.

T is triangular in the right order. What is not has rank three: jobs that come to (k,k), which is e, out of that order;
the change of the flow to class k, whose dispatch is v; and the change of its y_k, where u is v without its part at
(k,k); see `functional`. With θ -> ∞ the third tends to nothing, so that no large numbers cancel.
"""

import numpy as np

from dchoices.kernels.drift import dispatch, held, memory_drift, waiting_jobs
from dchoices.kernels.jit import kernel

# "y_k > 0" means y_k above this; k goes down only when S_k exceeds 1 by as much, so that rounding cannot make the mode
# chatter where S_k -> 1, as it does at an integer argument of the bound.
NEGLIGIBLE = 1e-12
# A class that begins to fill is thin below this: all of it is at (k,k) but for terms of order y_k².
THIN = 1e-10
# Number of Euler schemes that are extrapolated, with 1, 2, … substeps. At an error of 1e-11 paths took 1.3 ms with 5,
# 0.7 with 6, 0.5 with 7 and 0.35 with 8 and 9, while 9 magnifies rounding eight times as much as 7.
ORDER = 7
SAFETY, SHRINK, GROW = 0.9, 0.1, 4.0  # of the step size
FIRST_STEP = 1e-4
SHORTEST_STEP = 1e-15
# A longer step may have more error in proportion, below the rounding of its derivative, times the extrapolation's
# weights: a total of tolerance·t/10, which at the tolerance of `fluid_memory` is that of the path at t = 10^5.
LONG_STEP = 10.0
MAX_STEPS = 20_000  # in one mode and besides one per output time; some hundred are what a path needs
LEAST_DIP = 1e-6  # steps shorter than this are not searched for two switches in one
LOCATE = 200  # halvings that find a switch, at most

ENDED, RISE, FALL, STALLED = 0, 1, -1, 2  # how the integration of a mode ends
FILLED = 3  # a thin class holds enough, inside a mode


@kernel
def solve_triangular(r, k, delta, theta, s, z):
    """Fill z with the solution of (s - T) z = r: down from the highest observation, class k before class k+1.

    T has service, sampling above k, and dispatch at the rate θ of now of servers with i < k; for each of these one at
    (k,k) is spared, as the flow is given.
    """
    levels = r.shape[0]
    z[:, :] = 0.0
    for step in range(levels - k):
        # levels-1, …, k+2, then k, which only gives, then k+1, which receives from k
        j = levels - 1 - step if step < levels - k - 2 else (k if step == levels - k - 2 else k + 1)
        for i in range(j, -1, -1):
            value, rate = r[i, j], s + 1.0 * (i >= 1)
            if i < j:
                value += z[i + 1, j]
                rate += delta + theta * (j == k)
            elif j > k:
                for found in range(j + 1, levels):
                    value += delta * z[j, found]
            if j == k + 1:
                if 0 < i < j:
                    value += theta * z[i - 1, k]
                elif i == j:
                    value -= theta * (held(z, k) - z[k, k])
            z[i, j] = value / rate


@kernel
def functional(m, z, k, d, lam, theta):
    """Return w_mᵀz.

    w₀: what comes to (k,k), the servers with k jobs or less that sampling brings there and those that are spared.
    w₁: the change of λR_k with x. w₂: the change of y_k, which lowers the rate θ.
    """
    if m == 1:
        return -lam * d * waiting_jobs(z, k)
    mass = held(z, k)
    if m == 2:
        return -theta * mass
    found = 0.0
    for j in range(k, z.shape[0]):
        for i in range(k + 1):
            found += z[i, j]
    return lam * d * (found - z[k, k]) + theta * (mass - z[k, k])


@kernel
def correct(z, known, columns, scale, k, d, lam, theta):
    """Add to z what the first `known` terms of rank one change in it (Sherman and Morrison, one after the other)."""
    for m in range(known):
        factor = functional(m, z, k, d, lam, theta) / scale[m]
        for j in range(k, z.shape[0]):
            for i in range(j + 1):
                z[i, j] += factor * columns[m, i, j]


@kernel
def euler_steps(x, k, d, lam, thin, h, n, arrays, increment):
    """Fill `increment` with what n linearly implicit Euler steps of size h/n change in x."""
    drift, z, at, columns = arrays[0], arrays[1], arrays[2], arrays[3:6]
    share, unused, scale = np.empty(x.shape[0]), np.empty(x.shape[0]), np.empty(3)
    delta, s = lam * d, n / h
    _, theta = dispatch(x, k, d, lam, thin, share)
    for m in range(3):
        at[:, :] = 0.0
        if m == 0:
            at[k, k] = 1.0  # e
        else:
            for i in range(k + 1):  # v, and u without its largest part
                at[i, k] -= share[i] - (m == 2) * (i == k)
                at[i + 1, k + 1] += share[i] - (m == 2) * (i == k)
        solve_triangular(at, k, delta, theta, s, columns[m])
        correct(columns[m], m, columns, scale, k, d, lam, theta)
        scale[m] = 1.0 - functional(m, columns[m], k, d, lam, theta)
    increment[:, :] = 0.0
    at[:, :] = x
    for _ in range(n):
        memory_drift(at, k, d, lam, thin, unused, drift)
        solve_triangular(drift, k, delta, theta, s, z)
        correct(z, 3, columns, scale, k, d, lam, theta)
        for j in range(k, x.shape[0]):
            for i in range(j + 1):
                increment[i, j] += z[i, j]
                at[i, j] = x[i, j] + increment[i, j]


@kernel
def extrapolated_step(x, k, d, lam, thin, h, arrays, table, after):
    """Fill `after` with x a time h later and return the estimated error, the largest over its entries.

    `table` holds a row of the Aitken-Neville scheme T_{n,m} = T_{n,m-1} + (T_{n,m-1} - T_{n-1,m-1})/(n/(n-m+1) - 1) of
    increments: of small numbers, so that extrapolation does not magnify the rounding of x.
    """
    increment = arrays[6]
    for n in range(1, ORDER + 1):
        euler_steps(x, k, d, lam, thin, h, n, arrays, increment)
        for i in range(x.shape[0]):
            for j in range(i, x.shape[0]):
                value = increment[i, j]
                for m in range(n - 1):
                    before, table[m, i, j] = table[m, i, j], value
                    value += (value - before) / (n / (n - 1 - m) - 1.0)
                table[n - 1, i, j] = value
    error, total = 0.0, 0.0
    for i in range(x.shape[0]):
        for j in range(i, x.shape[0]):
            after[i, j] = x[i, j] + table[ORDER - 1, i, j]
            total += after[i, j]
            change = abs(table[ORDER - 1, i, j] - table[ORDER - 2, i, j])
            if not change <= error:  # so that a NaN stays
                error = change
    after /= total  # every increment sums to zero but for rounding, which a long step magnifies
    return error


@kernel
def room(x, k, d, thin):
    """Return how far x is from leaving mode k, zero or less where it does, and how: RISE, FALL or FILLED.

    Class k is given up when it is empty and its inflow λS_{k+1} does not exceed λ; it is joined by class k-1 when S_k
    exceeds 1.
    """
    way, least = RISE, max(held(x, k) - NEGLIGIBLE, d * waiting_jobs(x, k + 1) - 1.0)
    if k > 0 and 1.0 + NEGLIGIBLE - d * waiting_jobs(x, k) < least:
        way, least = FALL, 1.0 + NEGLIGIBLE - d * waiting_jobs(x, k)
    if thin and THIN - held(x, k) < least:
        way, least = FILLED, THIN - held(x, k)
    return least, way


@kernel
def dips(before, slope_before, after, slope_after, h):
    """Tell whether the cubic through two positive ends goes below zero between them."""
    if not slope_before < 0.0 < slope_after:
        return False
    u = slope_before / (slope_before - slope_after)
    v = 1.0 - u
    return (
        v * v * (1.0 + 2.0 * u) * before
        + u * u * (1.0 + 2.0 * v) * after
        + h * u * v * (v * slope_before - u * slope_after)
        < 0.0
    )


@kernel
def misses_switch(x, after, k, d, lam, thin, h, arrays):
    """Tell whether class k emptied, or S_k exceeded 1, inside a step that shows it at neither end."""
    if thin or h < LEAST_DIP:
        return False
    slope, slope_after, share = arrays[0], arrays[1], np.empty(x.shape[0])
    memory_drift(x, k, d, lam, thin, share, slope)
    memory_drift(after, k, d, lam, thin, share, slope_after)
    return dips(held(x, k), held(slope, k), held(after, k), held(slope_after, k), h) or dips(
        1.0 - d * waiting_jobs(x, k),
        -d * waiting_jobs(slope, k),
        1.0 - d * waiting_jobs(after, k),
        -d * waiting_jobs(slope_after, k),
        h,
    )


@kernel
def locate(x, k, d, lam, thin, h, arrays, table, after):
    """Return the step, at most h, that ends at the switch, with x there in `after` (regula falsi, Illinois)."""
    low, high = 0.0, h
    at_low, at_high = room(x, k, d, thin)[0], room(after, k, d, thin)[0]
    for _ in range(LOCATE):
        if high - low <= 1e-14 * h or abs(at_high) <= 1e-15:
            break
        middle = high - at_high * (high - low) / (at_high - at_low)
        if not low < middle < high:
            middle = 0.5 * (low + high)
        extrapolated_step(x, k, d, lam, thin, middle, arrays, table, after)
        value = room(after, k, d, thin)[0]
        if value <= 0.0:
            high, at_high, at_low = middle, value, 0.5 * at_low
        else:
            low, at_low, at_high = middle, value, 0.5 * at_high
    extrapolated_step(x, k, d, lam, thin, high, arrays, table, after)
    return high


@kernel
def integrate_mode(x, k, d, lam, begin, times, tolerance, states):
    """Integrate from `begin` in mode k to the next switch or to the last of `times`.

    Changes x to where that is, fills `states` with x at the times that were reached, and returns
    (RISE, FALL, ENDED or STALLED, time there, times reached, steps). `tolerance` is the error allowed in a step.
    """
    arrays, table, after = np.zeros((7, *x.shape)), np.zeros((ORDER, *x.shape)), np.zeros_like(x)
    thin = k > 0 and held(x, k) < THIN
    now, wanted, reached, steps = begin, FIRST_STEP, 0, 0
    while reached < times.size and steps < MAX_STEPS + times.size:
        if times[reached] <= now:
            states[reached] = x
            reached += 1
            continue
        h = min(wanted, times[reached] - now)
        steps += 1
        error = extrapolated_step(x, k, d, lam, thin, h, arrays, table, after) / (tolerance * max(1.0, h / LONG_STEP))
        if not error <= 1.0:
            wanted = h * (max(SHRINK, SAFETY * error ** (-1.0 / ORDER)) if error < np.inf else SHRINK)
            if wanted < SHORTEST_STEP:
                break
            continue
        least, way = room(after, k, d, thin)
        if least > 0.0 and misses_switch(x, after, k, d, lam, thin, h, arrays):
            wanted = 0.5 * h
            continue
        grown = h * min(GROW, SAFETY * max(error, 1e-12) ** (-1.0 / ORDER))
        wanted = grown if h == wanted else max(wanted, grown)  # a step cut short for an output time says little
        if least <= 0.0:
            h = locate(x, k, d, lam, thin, h, arrays, table, after)
            least, way = room(after, k, d, thin)
            x[:, :] = after
            now += h
            if way != FILLED:
                return way, now, reached, steps
            thin = False
            continue
        x[:, :] = after
        now = times[reached] if h == times[reached] - now else now + h
    return (ENDED if reached == times.size else STALLED), now, reached, steps


@kernel
def dispatch_fractions(x, k, d, lam, by_observation, by_queue):
    """Fill the fractions of jobs by the observation of their server, R_j, and by its true queue, in mode k."""
    share = np.empty(x.shape[0])
    flow, _ = dispatch(x, k, d, lam, held(x, k) < THIN, share)
    by_observation[:] = 0.0
    for j in range(k):
        by_observation[j] = d * (waiting_jobs(x, j + 1) - waiting_jobs(x, j))
    by_queue[:] = by_observation  # below k the observation is fresh
    by_observation[k] = flow / lam
    for i in range(k + 1):
        by_queue[i] += flow / lam * share[i]
