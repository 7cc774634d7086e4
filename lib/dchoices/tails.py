"""How tail frequencies fall with the number of servers: an exponential and a power of N, fitted side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# A distance that is exceeded more often than not is no tail: its frequency bends, as it cannot be more than 1.
TAIL = 0.5
# Numbers of servers with a tail, and some replicates in it, that an exponential and a power of N side by side need.
FEWEST_SIZES = 3
MOST_STEPS, CONVERGED = 100, 1e-9  # of Newton's method; the last relative change of the frequencies


@dataclass(frozen=True)
class TailFit:
    """log P = intercept - rate·N - power·log N for each ε, with one power for all.

    Attributes
    ----------
    intercept, rate : float64[E]
        For each ε; the rate per server.
    power : float
        0 if it was not fitted.
    covariance : float64[E + 1, E + 1]
        Of the rates and the power.
    N : float64[E]
        Geometric mean of the numbers of servers that were fitted, for each ε.
    """

    intercept: np.ndarray
    rate: np.ndarray
    power: float
    covariance: np.ndarray
    N: np.ndarray

    def frequency(self, N: np.ndarray) -> np.ndarray:
        """Return P at each ε and N, float64[E, S]."""
        return np.exp(self.intercept[:, None] - np.outer(self.rate, N) - self.power * np.log(N))

    def local_exponent(self) -> tuple[np.ndarray, np.ndarray]:
        """Return s = -d log P/d log N = rate·N + power at `N`, and its standard error; float64[E] each."""
        gradient = np.column_stack([np.diag(self.N), np.ones_like(self.N)])
        return self.rate * self.N + self.power, self._error(gradient)

    def exponential_part(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which part of the local exponent is the exponential's, and its standard error; float64[E] each.

        The part rate·N/s is also d log s/d log N: 1 where P falls exponentially, 0 where it falls as a power of N.
        """
        exponential, (total, _) = self.rate * self.N, self.local_exponent()
        gradient = np.column_stack([np.diag(self.N * self.power / total**2), -exponential / total**2])
        return exponential / total, self._error(gradient)

    def _error(self, gradient: np.ndarray) -> np.ndarray:
        return np.sqrt(np.diag(gradient @ self.covariance @ gradient.T))

    def rate_exponent(self, epsilon: np.ndarray) -> tuple[float, float]:
        """Return the slope of log rate against log ε (generalised least squares) and its standard error; rates > 0."""
        design = np.column_stack([np.ones_like(epsilon), np.log(epsilon)])
        precision = np.linalg.inv(self.covariance[:-1, :-1] / np.outer(self.rate, self.rate))
        covariance = np.linalg.inv(design.T @ precision @ design)
        slope = (covariance @ design.T @ precision @ np.log(self.rate))[1]
        return float(slope), float(np.sqrt(covariance[1, 1]))


def fit_tails(
    exceeded: np.ndarray, replicates: int, N: np.ndarray, exponential: bool = True, power: bool = True
) -> TailFit | None:
    """Fit how tail frequencies fall with N by maximum likelihood, where they are at most `TAIL`.

    The likelihood is Poisson's, as if the counts were independent. At one N they are not, as the same replicates are
    counted for each ε; the covariance of the estimates is the sandwich with that of nested binomial counts.

    Parameters
    ----------
    exceeded : int64[E, S]
        How many of `replicates` exceed each ε at each number of servers.
    N : float64[S]
        Numbers of servers.
    exponential, power : bool
        Whether to fit each of the two; else its rate or power is 0.

    Returns
    -------
    TailFit or None
        None if some ε has a tail at fewer than `FEWEST_SIZES` numbers of servers, or the likelihood has no maximum.
    """
    tail = exceeded <= TAIL * replicates
    if ((tail & (exceeded > 0)).sum(axis=1) < FEWEST_SIZES).any():
        return None
    distances = len(exceeded)
    epsilon, size = np.nonzero(tail)
    each = np.eye(distances)[epsilon]
    used = np.repeat([True, exponential, power], [distances, distances, 1])
    design = np.hstack([each, -each * N[size, None], -np.log(N[size, None])])[:, used]
    fitted = _maximum_likelihood(design, exceeded[tail], replicates)
    if fitted is None:
        return None
    coefficients, covariance = np.zeros(used.size), np.zeros((used.size, used.size))
    coefficients[used], chance = fitted
    nested = (size[:, None] == size) * (np.minimum.outer(chance, chance) - np.outer(chance, chance)) / replicates
    score = np.linalg.solve(design.T @ (design * chance[:, None]), design.T)
    covariance[np.ix_(used, used)] = score @ nested @ score.T
    intercept, rate, (slope,) = np.split(coefficients, [distances, 2 * distances])
    middle = np.exp([np.log(N[row]).mean() for row in tail])
    return TailFit(intercept, rate, float(slope), covariance[distances:, distances:], middle)


def _maximum_likelihood(
    design: np.ndarray, counts: np.ndarray, replicates: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the coefficients of log P in a Poisson regression, and P; None if Newton's method finds no maximum."""
    log_chance = np.log((counts + 0.5) / replicates)
    for _ in range(MOST_STEPS):
        chance = np.exp(log_chance)
        target = log_chance + (counts / replicates - chance) / chance
        coefficients = np.linalg.solve(design.T @ (design * chance[:, None]), design.T @ (chance * target))
        change = design @ coefficients - log_chance
        log_chance = log_chance + change
        if np.abs(change).max() < CONVERGED:
            return coefficients, np.exp(log_chance)
    return None
