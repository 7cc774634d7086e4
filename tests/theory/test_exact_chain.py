"""The solved finite chain against closed forms and published values."""

import dchoices as dc
import pytest


def test_one_server_is_m_m_1():
    point = dc.exact_stationary(1, 1, 0.5, 40, policy="sq")
    assert point.occupancy.values[:5] == pytest.approx([0.5 * 0.5**i for i in range(5)], abs=1e-10)
    assert point.mean_response_time.item() == pytest.approx(2, abs=1e-9)


def test_published_values_two_servers():
    """N = 2, d = 1, λ = 0.5, from an independent sparse solve with truncation below 1e-6."""
    point = dc.exact_stationary(2, 1, 0.5, 20)
    assert point.truncated_mass.item() < 1e-6
    assert point.occupancy.values[:3] == pytest.approx([0.500001, 0.291262, 0.143461], abs=2e-6)
    assert point.dispatch_to_idle.item() == pytest.approx(0.582523, abs=2e-6)
    assert point.mean_queue_length.item() == pytest.approx(0.797743, abs=2e-5)


def test_published_values_three_servers():
    """N = 3, d = 2, λ = 0.7, from an independent sparse solve with truncation below 2e-4."""
    point = dc.exact_stationary(3, 2, 0.7, 10)
    assert point.truncated_mass.item() < 2e-4
    assert point.occupancy.values[:3] == pytest.approx([0.30003, 0.33607, 0.22089], abs=5e-5)
    assert point.dispatch_to_idle.item() == pytest.approx(0.48010, abs=1e-4)
    assert point.mean_queue_length.item() == pytest.approx(1.2836, abs=1e-3)


def test_work_is_conserved():
    point = dc.exact_stationary(2, 2, 0.6, 16)
    assert point.occupancy.sum().item() == pytest.approx(1)
    assert 1 - point.occupancy.values[0] == pytest.approx(0.6, abs=1e-4)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"N": 0}, "N"), ({"N": 6}, "N"), ({"buffer": 0}, "buffer"), ({"policy": "best"}, "policy")],
)
def test_bad_arguments_are_named(change, name):
    with pytest.raises(ValueError, match=f"{name} = "):
        dc.exact_stationary(**{"N": 2, "d": 1, "lam": 0.5, "buffer": 4, **change})
