"""Numbers that went wrong are noticed, and do not depend on compilation."""

import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from dchoices import datasets
from dchoices.claims import catalogue, engine
from made_up_limits import study
from whole_runs import ROOT

pytestmark = pytest.mark.trust

# What a run may do, at sizes that take seconds without compilation. Seeds are fixed by default.
CALLS = """
import pickle, sys
import dchoices as dc
from dchoices import registry

t = [0.0, 0.5, 2.0]
made = {
    name: dc.simulate(name, 40, 2 if registry.get(name).takes_d else 0, 0.8, t, replicates=2)
    for name in dc.policies()
}
made["overloaded"] = dc.simulate("sq-memory", 40, 2, 0.9, t, replicates=2, start=dc.overloaded(3))
made["stationary"] = dc.stationary(["sq-memory", "sq"], 30, 2, 0.7, warm_up=2.0, horizon=5.0, replicates=2)
made["deterministic"] = dc.stationary(
    "sq-memory", 30, 2, 0.7, warm_up=2.0, horizon=5.0, replicates=2, service="deterministic"
)
made["tails"] = dc.tail_frequencies(20, 2, 0.4, t, 0.1, replicates=5)
made["gap"] = dc.replacement_gap("sq-memory", 8, 2, 0.7, t_end=20.0, warm_up=5.0, replicates=2)
made["fluctuations"] = dc.fluctuations(20, 2, 0.3, t_end=20.0, warm_up=5.0, replicates=2)
made["exact"] = dc.exact_stationary(2, 2, 0.7, 8)
made["fluid"] = dc.fluid_path(0.9, 2, t, start="stale-2")
with open(sys.argv[1], "wb") as out:
    pickle.dump(made, out)
"""
# Sums of times and solutions of equations may round otherwise in compiled code; counts may not.
RELATIVE, ABSOLUTE = 1e-11, 1e-12


def poisoned(dataset, name, value, everywhere, rng):
    """Return a dataset with one variable that holds a value at one place, or everywhere."""
    values = dataset[name].values.copy()
    if everywhere:
        values[...] = value
    else:
        values.ravel()[rng.choice(np.flatnonzero(np.isfinite(values.ravel())))] = value
    return dataset.assign({name: (dataset[name].dims, values)})


def floats(dataset):
    return [name for name, array in dataset.data_vars.items() if array.dtype.kind == "f"]


@pytest.fixture(scope="module")
def right():
    return study()


class Reads(dict):
    """Datasets that remember which of them were asked for."""

    def __init__(self, content):
        super().__init__(content)
        self.asked = set()

    def __getitem__(self, name):
        self.asked.add(name)
        return super().__getitem__(name)


@pytest.mark.parametrize("entry", catalogue.CLAIMS, ids=lambda entry: entry.id)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # nan and infinity in every operation
def test_no_claim_passes_on_what_is_no_number(entry, right):
    """A variable of nothing but NaN: the claim does not pass, unless it never looks at that variable."""
    asked = Reads(right)
    cells = list(entry.check(asked, engine.CLAIM))
    assert engine.verdict(cells) == "pass"
    used = 0
    for dataset in asked.asked:
        for name in floats(right[dataset]):
            wrong = {**right, dataset: poisoned(right[dataset], name, math.nan, True, None)}
            try:
                found = list(entry.check(wrong, engine.CLAIM))
            except (ValueError, IndexError, ZeroDivisionError, np.linalg.LinAlgError):
                used += 1
                continue
            if found != cells:
                used += 1
                assert engine.verdict(found) != "pass", (dataset, name)
    assert used


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["ladder", "constant_d", "service", "fluctuations"])
def test_no_dataset_holds_what_is_no_number(name, value, right, tmp_path):
    """Neither written nor read nor merged: the file, its own hash right, and the variable are named."""
    rng = np.random.default_rng(1)
    for variable in floats(right[name]):
        wrong = poisoned(right[name], variable, value, False, rng)
        path = tmp_path / "wrong.nc"
        with pytest.raises(datasets.DatasetError, match=f"{path}: '{variable}' holds NaN or infinity"):
            datasets.write(wrong, path)
        assert not path.exists()
        wrong.assign_attrs(content_hash=datasets.content_hash(wrong)).to_netcdf(path, engine="h5netcdf")
        for attempt in (lambda path=path: datasets.read(path), lambda path=path: datasets.merge([path, path])):
            with pytest.raises(datasets.DatasetError, match=f"wrong.nc: '{variable}' holds NaN or infinity"):
                attempt()
        path.unlink()


def results(path, **environment):
    """Run the calls in a process of their own."""
    command = [
        sys.executable,
        "-W",
        "error",
        "-W",
        "ignore:overflow encountered:RuntimeWarning",
        "-c",
        CALLS,
        str(path),
    ]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(ROOT / "lib")} | environment)
    return pickle.loads(path.read_bytes())


def test_compiled_and_not_compiled_are_the_same(tmp_path):
    compiled = results(tmp_path / "compiled")
    plain = results(tmp_path / "plain", NUMBA_DISABLE_JIT="1")
    for name, dataset in compiled.items():
        assert set(dataset.variables) == set(plain[name].variables)
        for variable, array in dataset.variables.items():
            other = plain[name][variable].variable
            if array.dtype.kind == "f":
                np.testing.assert_allclose(other, array, rtol=RELATIVE, atol=ABSOLUTE, err_msg=f"{name}.{variable}")
            else:
                xr.testing.assert_identical(other, array)
    counts = [compiled[name].occupancy.values * 40 for name in ("sq", "sq-memory", "jsq")]
    assert all((values == values.round()).all() for values in counts)
