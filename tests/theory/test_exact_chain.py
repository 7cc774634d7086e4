"""The solved finite chain against closed forms and published values."""

import dchoices as dc
import pytest
from reference_values import reference


def test_one_server_is_m_m_1():
    point = dc.exact_stationary(1, 1, 0.5, 40, policy="sq")
    assert point.occupancy.values[:5] == pytest.approx([0.5 * 0.5**i for i in range(5)], abs=1e-10)
    assert point.mean_response_time.item() == pytest.approx(2, abs=1e-9)


@pytest.mark.parametrize(("row", "buffer"), zip(reference("exact_chain"), (20, 10), strict=True))
def test_published_values(row, buffer):
    point = dc.exact_stationary(int(row["N"]), int(row["d"]), float(row["lam"]), buffer)
    truncation = float(row["truncation"])
    assert point.truncated_mass.item() < truncation
    expected = [float(row[f"p_{i}"]) for i in range(3)]
    assert point.occupancy.values[:3] == pytest.approx(expected, abs=2 * truncation)
    assert point.dispatch_to_idle.item() == pytest.approx(float(row["dispatch_to_idle"]), abs=2 * truncation)
    assert point.mean_queue_length.item() == pytest.approx(float(row["mean_queue_length"]), abs=20 * truncation)


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
