"""Exponents from estimates with intervals, and from exact values."""

import numpy as np
import pytest
from dchoices.exponents import Ladder, exponent_at_zero

SIZES = np.array([100.0, 300.0, 1000.0, 3000.0, 10_000.0])


def ladder(value, relative=0.01, N=SIZES):
    return Ladder(N, value(N), relative * np.abs(value(N)))


@pytest.mark.parametrize("sign", [1, -1])
def test_powers_and_exponentials_are_what_they_are(sign):
    power = ladder(lambda N: sign * 3 * N**-0.5)
    assert power.exponent()[0] == pytest.approx(-0.5)
    assert power.local_exponent()[0] == pytest.approx(-0.5)
    small = np.array([25.0, 50.0, 100.0, 200.0])
    assert ladder(lambda N: sign * 2 * N**-1.5, N=small).exponential_part()[0] == pytest.approx(0, abs=1e-9)
    assert ladder(lambda N: sign * 2 * np.exp(-0.03 * N), N=small).exponential_part()[0] == pytest.approx(1)
    assert ladder(lambda N: sign * np.exp(-0.03 * N), N=small).local_exponent()[0] == pytest.approx(-3 / np.log(2))
    constant, _ = ladder(lambda N: sign * (0.7 / np.sqrt(N) + 0.2 / N)).root_constant()
    assert constant == pytest.approx(sign * 0.7)


@pytest.mark.parametrize("method", ["exponent", "local_exponent", "exponential_part", "root_constant"])
def test_half_widths_are_those_of_the_noise(method):
    """Against the scatter of the estimate itself: 2000 samples know it to two per cent."""
    rng = np.random.default_rng(3)
    N = np.array([25.0, 50.0, 100.0, 200.0])
    value, half_width = np.exp(-0.01 * N) / N, np.array([2, 1, 1, 3]) * 1e-3 * np.exp(-0.01 * N) / N
    noisy = value + half_width * rng.normal(size=(2000, 4))
    found = [getattr(Ladder(N, sample, half_width), method)()[0] for sample in noisy]
    assert getattr(Ladder(N, value, half_width), method)()[1] == pytest.approx(np.std(found), rel=0.08)


def test_what_is_not_resolved():
    assert ladder(lambda N: N**-0.5).resolved
    assert ladder(lambda N: -(N**-0.5)).resolved
    assert not ladder(lambda N: N**-0.5, relative=0.7).resolved
    assert not ladder(lambda N: N**-0.5, relative=np.inf).resolved
    assert not ladder(lambda N: N**-0.5, N=SIZES[:2]).resolved
    assert not ladder(lambda N: 0.01 - N**-0.5).resolved
    assert not Ladder(*np.empty((3, 0))).resolved


def test_the_exponent_at_zero_holds_its_limit():
    x = 10.0 ** np.arange(-8, -2)
    value, error = exponent_at_zero(x, x**0.5 * (1 + x**0.5), 0.0)
    assert abs(value - 0.5) < error < 1e-3
    value, error = exponent_at_zero(x, x ** (1 / 3) * (1 + x ** (1 / 3)), 0.0)
    assert abs(value - 1 / 3) < error < 1e-2
    assert exponent_at_zero(x, x, 1e-9)[1] > 0.05
