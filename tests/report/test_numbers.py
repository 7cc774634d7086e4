import math

import pytest
from dchoices.report import numbers


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (math.nan, "–"),
        (0.0, "0"),
        (-0.25, "−0.25"),
        (0.123456, "0.1235"),
        (1000, "1000"),
        (1_000_000, "1\u202f000\u202f000"),
        (1.3e-7, "1.3 × 10⁻⁷"),
        (2e6, "2 × 10⁶"),
    ],
)
def test_plain(value, shown):
    assert numbers.plain(value) == shown


@pytest.mark.parametrize(
    ("value", "interval", "most", "shown"),
    [
        (-0.49873, (-0.5077, -0.4897), None, ("−0.4987", "[−0.5077, −0.4897]")),
        (-0.49873, (-0.5077, -0.4897), 3, ("−0.499", "[−0.508, −0.490]")),
        (1.3e-7, (0.9e-7, 1.7e-7), 3, ("1.30 × 10⁻⁷", "[0.90, 1.70] × 10⁻⁷")),
        (-2e-6, (-3.1e-4, 3.0e-4), 3, ("0", "[−3.1, 3.0] × 10⁻⁴")),
        (1.0, (0.999997, 1.000003), 3, ("1.00", "± less than 0.01")),
        (1.0, (0.999997, 1.000003), None, ("1.0000000", "[0.9999970, 1.0000030]")),
        (123.4, (100, 150), None, ("123", "[100, 150]")),
        (0.0001, (-0.01, 0.01), None, ("0.000", "[−0.010, 0.010]")),
        (-0.0001, (-0.02, 0.02), None, ("0.000", "[−0.020, 0.020]")),
        (5.0, (5.0, 5.0), 3, ("5", "computed")),
        (5.0, (None, None), 3, ("5", "no finite interval")),
        (5.0, (-math.inf, 7.0), 3, ("5", "no finite interval")),
        (None, (None, None), 3, ("–", "not measured")),
        (math.nan, (0.0, 1.0), 3, ("–", "not measured")),
    ],
)
def test_digits_follow_the_interval(value, interval, most, shown):
    assert numbers.estimate(value, interval, most) == shown


@pytest.mark.parametrize(
    ("bounds", "shown"),
    [
        ((None, None), "–"),
        ((None, 1e-3), "≤ 0.001"),
        ((0.9, None), "≥ 0.9"),
        ((-0.6, -0.4), "[−0.6, −0.4]"),
        ((0, 0), "exactly 0"),
        ((0.99, math.nextafter(1, 0)), "[0.99, 1]"),
    ],
)
def test_tolerance(bounds, shown):
    assert numbers.tolerance(bounds) == shown
