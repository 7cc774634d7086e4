"""What the README shows runs, and names files that exist."""

import re
from pathlib import Path

import dchoices as dc
import pytest
from dchoices import registry, starts

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_summary_is_that_of_the_committed_table():
    summary, *_ = (ROOT / "report" / "claims.md").read_text("utf-8").splitlines()
    assert summary in README, f"README.md must say: {summary}"


def test_the_picture_tells_which_data_it_shows():
    picture = (ROOT / "report" / "main-figure.svg").read_text("utf-8")
    assert "](report/main-figure.svg)" in README
    assert re.search(r"<dc:source>stationary [0-9a-f]{12}, fixed_points [0-9a-f]{12}</dc:source>", picture)


def test_python_examples_run():
    (example,) = [block for block in BLOCKS if "import dchoices" in block]
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
    (example,) = [block for block in BLOCKS if "register_policy" in block]
    *definition, last = example.strip().splitlines()
    names = {"dc": dc}
    exec("\n".join(definition), names)
    ds = eval(last, names)
    assert ds.messages_per_job.sel(policy="threshold").values.ravel().tolist() == [2, 2]
    response = ds.mean_response_time.sel(N=1000, λ=0.5)
    assert response.sel(policy="sq") < response.sel(policy="threshold") < response.sel(policy="random")


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


def test_links_lead_to_files():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_commands_are_make_targets():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in re.findall(r"`?make ([a-z]+)`?", README):
        if command in ("test", "smoke", "verify", "lab", "lock", "claims", "clean"):
            assert command in targets
