"""What a run will take, told before it starts."""

import re
from pathlib import Path

import pytest
from dchoices import warm_up
from dchoices.workflow import config, estimates, plan

ROOT = Path(__file__).parents[2]
PACE = 15e-9  # s of CPU time for an event


def planned(name):
    return config.make_plan(config.read(ROOT / "config" / f"{name}.yaml"))


def test_a_job_costs_its_events_its_samples_and_its_start():
    paths = {"N": [10**6], "d": [2], "lam": [0.5], "t_end": 4, "t_step": 1, "replicates": 10}
    simulated = PACE * (10 * 1e6 * 1.5 * 4 + 10 * (1 + 4) * 1000)
    assert estimates.estimated_seconds("trajectories", paths, PACE) == pytest.approx(estimates.START_UP + simulated)
    solved = estimates.START_UP + estimates.SOLVING["fluid"] * 2 * 3 * 11
    fluid = {"d": [1, 2], "lam": [0.3, 0.5, 0.7], "t_end": 10, "t_step": 1}
    assert estimates.estimated_seconds("fluid", fluid, PACE) == pytest.approx(solved)


def test_the_report_study_is_told_to_take_what_it_takes():
    """It takes 17 to 20 minutes of CPU time, 10 on two cores; an estimate is good to a factor of two."""
    jobs = planned("paper").jobs.values()
    cost = sum(estimates.estimated_seconds(job.study, job.parameters, PACE) for job in jobs)
    assert 17 * 60 / 2 < cost < 2 * 20 * 60


def test_the_longest_job_and_the_cores_set_the_wall_time():
    assert plan.wall_time([1, 1, 2], 2) == 2
    assert plan.wall_time([3, 3, 3], 2) == 6
    assert plan.wall_time([1, 2, 3], 1) == 6


@pytest.mark.parametrize(
    ("seconds", "shown"), [(7.4, "7 s"), (130, "2.2 min"), (5900, "98 min"), (9000, "2.5 h"), (10**6, "12 days")]
)
def test_times_are_told_in_a_unit_that_fits(seconds, shown):
    assert plan.duration(seconds) == shown


def test_the_table_has_a_line_for_each_job_and_what_they_take_together():
    example = planned("sweep-example")
    lines = plan.table(example, example.jobs.values(), PACE, 2).splitlines()
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["stationary", "d=2"], ["stationary", "d=3"], ["stationary", "d=5"], ["fixed_points", "all"],
    ]  # fmt: skip
    assert re.fullmatch(r"together +4 jobs +2\.1e\+09 +[0-9]+ s", lines[6])
    assert "-" in lines[5]
    assert lines[7].startswith("With 2 at a time: about ")
    assert "15 ns" in lines[9]


def test_the_command_measures_this_machine(capsys):
    assert plan.main([str(ROOT / "config" / "sweep-example.yaml")]) == 0
    assert "together" in capsys.readouterr().out
    assert 1e-9 < warm_up.pace() < 1e-6


def test_the_command_refuses_as_the_check_does(tmp_path, capsys):
    (tmp_path / "bad.yaml").write_text("profile: A")
    assert plan.main([str(tmp_path / "bad.yaml")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
