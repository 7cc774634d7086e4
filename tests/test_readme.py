"""What the README and the pages of docs/ show runs, and names files that exist; the workflow's part is in test_own."""

import re

import dchoices as dc
import numpy as np
import pytest
import xarray as xr
from dchoices import datasets, registry, starts, tables
from pages import ROOT, blocks

README = (ROOT / "README.md").read_text()
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


def test_the_summary_is_that_of_the_committed_table():
    summary, *_ = (ROOT / "report" / "claims.md").read_text("utf-8").splitlines()
    assert summary in README, f"README.md must say: {summary}"


def test_the_picture_tells_which_data_it_shows():
    picture = (ROOT / "report" / "main-figure.svg").read_text("utf-8")
    assert "](report/main-figure.svg)" in README
    assert re.search(r"<dc:source>stationary [0-9a-f]{12}, fixed_points [0-9a-f]{12}</dc:source>", picture)


def test_python_examples_run():
    (example,) = [block for block in blocks("README.md") if "import dchoices" in block]
    names = {}
    for line in example.splitlines():
        statement, _, shown = line.partition("#")
        if not statement.strip().startswith("dc."):
            exec(statement, names)
            continue
        result = eval(statement, names)
        if "queue_bound" in statement:
            assert result == int(shown)
        if "queue_length_pmf" in statement:
            assert result.values == pytest.approx([float(x) for x in shown.split(",")], abs=5e-6)


@pytest.fixture
def own_registry(monkeypatch):
    """A registry that a test may add to."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


@pytest.mark.usefixtures("own_registry")
def test_the_example_of_a_policy_runs():
    definition, uses, _ = blocks("docs/policy.md")
    names = {}
    exec(definition, names)
    side_by_side, alone = (eval(line, names) for line in uses.strip().splitlines())
    assert side_by_side.messages_per_job.sel(policy="threshold").values.ravel().tolist() == [2, 2]
    response = side_by_side.mean_response_time.sel(N=1000, λ=0.5)
    assert response.sel(policy="sq") < response.sel(policy="threshold") < response.sel(policy="random")
    assert alone.d.values.tolist() == [1, 2, 3]


def test_the_examples_of_reading_a_dataset_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = [block for block in blocks("README.md") if "open_dataset" in block]
    coords = {"N": [100, 1000], "d": [2], "λ": [0.5, 0.9], "t": [0.0, 1.0], "queue_length": [0, 1, 2]}
    occupancy = (tuple(coords), np.random.default_rng(1).random((2, 1, 2, 2, 3)))
    ds = xr.Dataset({"occupancy": occupancy, "sup_distance": (("N", "d", "λ"), np.ones((2, 1, 2)))}, coords)
    datasets.write(ds, "data/paper/trajectories.nc")
    *opening, last = example.strip().splitlines()
    names = {}
    exec("\n".join(opening), names)
    np.testing.assert_array_equal(eval(last, names), ds.occupancy.values[1, 0, 1])
    (arguments,) = re.findall(r"-m dchoices.tables ([^`]*)`", README)
    assert tables.main(arguments.split()) == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + ds.occupancy.size


def test_every_policy_is_listed_with_its_messages():
    table = README[README.index("| policy |") : README.index("A query, its reply")]
    rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    listed = {name: cost for names, _, cost in rows for name in re.findall(r"`([a-z-]+)`", names)}
    assert sorted(listed) == dc.policies()
    counts = {"0": 0, "2d": 2 * 7, "2N": 2 * 1000, "1 if it is idle, else 0": 0.25}
    for name, cost in listed.items():
        assert registry.get(name).messages_per_job(1000, 7, 0.25) == counts[cost], name


def test_every_start_is_listed_with_its_matrix():
    table = README[README.index("| start |") : README.index("## Policies")]
    rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    for name, _, *matrix in rows[:-1]:
        named = eval(matrix[0].strip("`"), {"dc": dc, "m": 3})
        assert starts.label(named) == name.strip("`").replace("-m", "-3")
    assert [name for name, *_ in rows] == ["`empty`", "`overloaded-m`", "`stale-m`", "`random-m`", "`fixed-point`"]


@pytest.mark.parametrize("page", PAGES)
def test_links_and_names_lead_to_files(page):
    text = (ROOT / page).read_text("utf-8")
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (ROOT / page).parent.joinpath(link).exists(), link
    for file in re.findall(r"`((?:config|docs|lib|notebooks|report|tests)/[\w./-]+)`", text):
        made = f"# {file}\n" in text or file.startswith("report/build/")
        assert made or (ROOT / file).exists(), file


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_make_targets(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = re.findall(r"(?:`|^)make ([a-z]+)\b(?!=)", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert set(commands) <= targets
