"""Notebooks as committed: short, stripped, with a parameters cell of literals; and what they write."""

import ast
from pathlib import Path

import dchoices as dc
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from dchoices import datasets, registry
from dchoices.studies import STUDIES

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
EXPLORE = "explore"  # live, for people only: it writes no dataset, and no workflow runs it


def test_every_notebook_is_a_study_but_one():
    assert [path.stem for path in NOTEBOOKS] == sorted([*STUDIES, EXPLORE])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_is_short_and_stripped(self, path):
        notebook = nbformat.read(path, as_version=4)
        assert len(notebook.cells) <= 10
        for cell in notebook.cells:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None
        assert notebook.metadata.kernelspec == {"display_name": "Python 3", "language": "python", "name": "python3"}

    def test_parameters_are_literals(self, path):
        notebook = nbformat.read(path, as_version=4)
        (cell,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
        for statement in ast.parse(cell.source).body:
            assert isinstance(statement, ast.Assign)
            ast.literal_eval(statement.value)

    def test_defines_no_functions(self, path):
        """But policies that it registers: they are what such a notebook is about."""
        notebook = nbformat.read(path, as_version=4)
        tree = ast.parse("\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code"))
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        registered = {call.args[1].id for call in calls if ast.unparse(call.func) == "dc.register_policy"}
        assert defined == registered

    def test_runs_as_committed(self, path, tmp_path, monkeypatch):
        monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
        output = run(path, tmp_path / "result.nc")
        if path.stem == EXPLORE:
            return  # it writes nothing; test_lab.py looks at it
        written = datasets.read(output)
        assert written.attrs["notebook"] == f"notebooks/{path.stem}.ipynb"
        assert written.data_vars


def run(path, output):
    """Run the cells of a notebook with the parameters they hold, and let it write its dataset."""
    plt.switch_backend("agg")
    names = {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, path.name, "exec"), names)
        if "parameters" in cell.metadata.get("tags", []):
            names["output"] = str(output)
    plt.close("all")
    return output


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory):
    """The dataset of the notebook of policies, whose own policy stays registered during these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
        yield datasets.read(run(NOTEBOOKS[0].with_name("policies.ipynb"), tmp_path_factory.mktemp("policies") / "p.nc"))


def test_policies_side_by_side(side_by_side):
    ds = side_by_side
    assert dict(zip(ds.policy.values, ds.probes.values, strict=True)) == {
        "random": 0, "sq-half": 2, "sq": 2, "sq-memory": 2, "sq-log": 0, "jiq": 0, "jsq": 0
    }  # fmt: skip
    for name in ("mean_response_time", "response_time_tail", "occupancy_tail", "messages_per_job", "dispatch_to_idle"):
        assert ds[name].dims[:3] == ds[f"{name}_ci95"].dims[:3] == ("policy", "N", "λ")
    for name in ("max_queue", "warm_up", "warm_up_z", "warm_up_ok"):
        assert ds[name].dims == ("policy", "N", "λ")
    messages = ds.messages_per_job.sel(N=1000, λ=0.9)
    assert messages.sel(policy=["random", "sq-half", "sq", "sq-memory", "jsq"]).values.tolist() == [0, 2, 4, 4, 2000]
    # Each policy above the next one, at every load where they differ.
    order = ["random", "sq-half", "sq", "sq-memory"]
    assert (ds.mean_response_time.sel(N=1000, policy=order).diff("policy") < 0).all()


def test_ladder_has_its_own_replicates_at_each_n(tmp_path):
    ds = datasets.read(run(NOTEBOOKS[0].with_name("ladder.ipynb"), tmp_path / "ladder.nc"))
    assert ds.start.values.tolist() == ["empty", "overloaded-3", "stale-2", "random-3"]
    assert (ds.sup_distance.notnull().sum("replicate").transpose("N", ...).values == [[[[8]]], [[[8]]], [[[3]]]]).all()
    np.testing.assert_allclose(ds.occupancy.sum("queue_length"), 1)
    alone = dc.simulate("sq-memory", 10_000, 2, 0.9, ds.t.values, replicates=3, seed=1, start=dc.random_start(3))
    for name, d in (("sup_distance", 2), ("sup_distance_control", 3)):
        expected = dc.sup_distance(alone, dc.fluid_paths(0.9, d, ds.t.values, start="random-3"))
        place = {"start": "random-3", "N": [10_000], "d": [2], "λ": [0.9], "replicate": [0, 1, 2]}
        np.testing.assert_array_equal(ds[name].sel(place), expected)


@pytest.mark.usefixtures("side_by_side")
def test_the_policy_of_the_notebook_meets_its_limit():
    """In the limit the share s_i of servers with i jobs or more satisfies s_(i+1) = λ (s_i² + s_i) / 2."""
    ds = dc.compare({"sq-half": 2}, 20_000, 0.7, warm_up=40.0, horizon=40.0, replicates=4, seed=3).squeeze()
    limit = [1.0]
    while len(limit) < 6:
        limit.append(0.7 * (limit[-1] ** 2 + limit[-1]) / 2)
    np.testing.assert_allclose(ds.occupancy_tail[:6], limit, atol=3e-3)
    assert float(ds.messages_per_job) == 2
