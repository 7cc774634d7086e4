"""The verdict of a run."""

import json

import pytest
from dchoices.workflow import verdict


def claim(name, outcome="pass", control="fail", tolerance=(None, 0.1)):
    return {
        "id": name, "verdict": outcome, "measured": 0.05, "ci95": [0.04, 0.06], "tolerance": list(tolerance),
        "at": "N = 1000, d = 2",
        "control": "d + 1 probes", "control_verdict": control,
        "control_measured": 0.5, "control_ci95": [0.4, 0.6],
    }  # fmt: skip


def test_green_when_claims_hold_and_controls_fail():
    assert verdict.problems([claim("P1"), claim("P2", "inconclusive")]) == []


def test_failing_claim_is_named():
    assert verdict.problems([claim("P1"), claim("P2", "fail")]) == [
        "P2: fails: measured 0.05 [0.04, 0.06], tolerance [-, 0.1] at N = 1000, d = 2"
    ]


def test_undecided_claims_make_no_run_red():
    undecided = claim("P1", "inconclusive", "inconclusive")
    undecided |= {"measured": None, "ci95": [None, None]}
    assert verdict.problems([undecided]) == []


def test_control_that_passes_is_red_even_if_the_claim_is_undecided():
    (line,) = verdict.problems([claim("P1", "inconclusive", "pass")])
    assert "its control (d + 1 probes) must fail, but is pass" in line


@pytest.mark.parametrize("control", ["pass", "inconclusive"])
def test_control_that_does_not_fail_is_named(control):
    (line,) = verdict.problems([claim("P3", control=control, tolerance=(0, None))])
    assert line.startswith(f"P3: its control (d + 1 probes) must fail, but is {control}: measured 0.5 [0.4, 0.6]")
    assert line.endswith("tolerance [0, -]")


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([], "no claim"),
        ([claim("P1"), claim("P1")], "P1: claim comes twice"),
        ([claim("P1", "passed")], "P1: verdict = 'passed': must be one of pass, fail, inconclusive"),
    ],
)
def test_malformed_claims_are_refused(claims, message):
    with pytest.raises(ValueError, match=message):
        verdict.problems(claims)


@pytest.mark.parametrize(("outcome", "code"), [("pass", 0), ("inconclusive", 0), ("fail", 1)])
def test_command(tmp_path, capsys, outcome, code):
    (tmp_path / "claims.json").write_text(json.dumps([claim("P1", outcome)]))
    assert verdict.main([str(tmp_path / "claims.json"), str(tmp_path / "verdict.txt")]) == code
    out, err = capsys.readouterr()
    assert ("P1: fails" in err) == (code == 1)
    assert (tmp_path / "verdict.txt").read_text() == out + err
