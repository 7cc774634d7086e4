"""A run is a function of its arguments and its seed alone, for every policy."""

import hashlib
import os
import subprocess
import sys

import dchoices as dc
import numpy as np
import pytest
from dchoices import registry, simulation

BUILT_IN = [policy.name for policy in registry._BUILT_IN]
COUNTS = ("occupancy", "sent_by_queue", "sent_by_observation")

DIGEST = """
import hashlib, sys
import dchoices as dc
from dchoices import registry
for name in sys.argv[1:]:
    d = 2 if registry.get(name).takes_d else 0
    ds = dc.simulate(name, 60, d, 0.9, [0.0, 2.0, 30.0], replicates=2, seed=7)
    counts = b"".join(ds[v].values.tobytes() for v in ("occupancy", "sent_by_queue", "sent_by_observation"))
    print(name, hashlib.sha256(counts).hexdigest())
"""


def a_d(policy):
    return 2 if registry.get(policy).takes_d else 0


def digest(policy):
    ds = dc.simulate(policy, 60, a_d(policy), 0.9, [0.0, 2.0, 30.0], replicates=2, seed=7)
    return hashlib.sha256(b"".join(ds[name].values.tobytes() for name in COUNTS)).hexdigest()


def test_runs_are_the_same_in_other_processes_at_once_and_in_another_order():
    ours = {policy: digest(policy) for policy in BUILT_IN}
    assert len(set(ours.values())) == len(ours), "two policies share a stream"
    order = BUILT_IN[::-1]
    others = [
        subprocess.Popen(
            [sys.executable, "-c", DIGEST, *part],
            env=os.environ | {"NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            stdout=subprocess.PIPE, text=True,
        )
        for part, threads in ((order[:5], "1"), (order[5:], "2"))
    ]  # fmt: skip
    printed = "".join(other.communicate(timeout=300)[0] for other in others)
    assert dict(line.split() for line in printed.splitlines()) == ours


@pytest.mark.parametrize("policy", BUILT_IN)
def test_simulations_do_not_depend_on_their_neighbours(policy):
    t = [0.0, 1.0, 3.0]
    d = a_d(policy)
    alone = dc.simulate(policy, 50, d, 0.9, t, replicates=1, seed=9)
    among = dc.simulate(policy, [200, 50], [3, d] if d else 0, [0.3, 0.9], t, replicates=3, seed=9)
    same = among.sel(N=[50], d=[d], λ=[0.9], replicate=[0])
    for name in COUNTS:
        values = same[name].values
        assert (values[..., : alone.sizes["queue_length"]] == alone[name].values).all()
        assert not values[..., alone.sizes["queue_length"] :].any()


@pytest.mark.parametrize("policy", BUILT_IN)
def test_stationary_estimates_do_not_depend_on_their_neighbours(policy):
    d = a_d(policy)
    alike = [name for name in BUILT_IN if a_d(name) == d]
    settings = {"warm_up": 2.0, "horizon": 6.0, "replicates": 2, "seed": 3}
    alone = dc.stationary(policy, 60, d, 0.7, **settings)
    among = dc.stationary(alike[::-1], [90, 60], [d, 1] if d else 0, [0.7, 0.4], **settings)
    same = among.sel(policy=[policy], N=[60], d=[d], λ=[0.7])
    for name in alone.data_vars:
        ours, theirs = same[name].values, alone[name].values
        assert (ours[..., : theirs.shape[-1]] == theirs).all(), name
        assert not ours[..., theirs.shape[-1] :].any(), name


def test_a_grid_of_times_does_not_change_what_replicates_share():
    """Another number of replicates leaves the first as they are; another seed does not."""
    few = dc.simulate("sq-memory", 50, 2, 0.9, [2.0], replicates=1, seed=1)
    many = dc.simulate("sq-memory", 50, 2, 0.9, [2.0], replicates=4, seed=1)
    other = dc.simulate("sq-memory", 50, 2, 0.9, [2.0], replicates=1, seed=2)
    levels = few.sizes["queue_length"]
    assert (many.occupancy.values[:1, ..., :levels] == few.occupancy.values).all()
    assert many.sent_by_queue.sum(["t", "queue_length"]).values.ravel().tolist() != [few.sent_by_queue.sum().item()] * 4
    assert other.occupancy.values.tobytes() != few.occupancy.values.tobytes()


@pytest.mark.parametrize(
    "change",
    [{"seed": 2}, {"policy": "sq"}, {"N": 101}, {"d": 3}, {"lam": 0.90000001}, {"start": "stale-1"}, {"replicate": 2}],
)
def test_every_part_of_the_key_changes_the_stream(change):
    key = {"seed": 1, "policy": "sq-memory", "N": 100, "d": 2, "lam": 0.9, "start": "empty", "replicate": 0}
    one = simulation.stream(**key).generate_state(4)
    other = simulation.stream(**{**key, **change}).generate_state(4)
    assert (one != other).any()
    assert (one == simulation.stream(**key).generate_state(4)).all()


def test_the_clock_and_the_kernel_have_streams_of_their_own():
    """Else the number of events and the events would be dependent."""
    from comparisons import chain

    one = chain("sq", 10, 2, 0.5, seed=3)
    kernel = np.random.SFC64(np.random.SeedSequence(3)).state["state"]["state"]
    assert (one._rng != kernel).any()
    assert one._clock.random() != np.random.Generator(np.random.PCG64(np.random.SeedSequence(3))).random()
