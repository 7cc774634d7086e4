"""The profiles are understood, and agree where they have to."""

import re
from pathlib import Path

import pytest
import yaml
from snakemake.cli import parse_args

ROOT = Path(__file__).parents[2]


def profile(name):
    return yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text("utf-8"))


def test_what_holds_on_one_machine_holds_on_a_cluster():
    """One profile is read in place of the other."""
    of_one_machine = {"cores", "default-resources"}
    shared = {key: value for key, value in profile("default").items() if key not in of_one_machine}
    assert shared.items() <= profile("slurm").items()


def test_snakemake_understands_the_profile_of_a_cluster(monkeypatch):
    monkeypatch.chdir(ROOT)
    _, given = parse_args(["--workflow-profile", "profiles/slurm"])
    assert (given.executor, given.slurm_status_command) == ("slurm", "squeue")
    assert given.retries > 0
    assert "slurm-array-jobs" not in profile("slurm")  # a failing sibling marks good ones failed


@pytest.mark.parametrize("page", ["README.md", "docs/cluster.md"])
@pytest.mark.parametrize("line", ["slurm_partition", "slurm_account", "runtime"])
def test_the_lines_to_change_are_there(page, line):
    assert f"`{line}`" in (ROOT / page).read_text("utf-8")
    text = (ROOT / "profiles/slurm/config.yaml").read_text("utf-8")
    assert len(re.findall(rf"^  (?:# )?{line}: ", text, re.MULTILINE)) == 1
