import xml.etree.ElementTree as ElementTree

import pytest
from dchoices.report import verdicts


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("λ < 1 - 1/d", r"λ \< 1 − 1/d"),
        ("√N(1-1/d-λ) >= 2", "√N(1−1/d−λ) ≥ 2"),
        ("slope -1/2 of N^(-1/2)", "slope −1/2 of N^−1/2^"),
        ("1 - λ^d to p_1/λ", "1 − λ^d^ to p~1~/λ"),
        ("λ^((d^i-1)/(d-1))", "λ${}^{(d^i-1)/(d-1)}$"),
        ("start overloaded-3, sq-memory, dispatch_to_idle", r"start overloaded-3, sq-memory, dispatch\_to\_idle"),
        ("R_j - R_(j-1) = d (p_j - y_j)", "R~j~ − R~j−1~ = d (p~j~ − y~j~)"),
        ("costs $2d$ messages *or* [more]", r"costs $2d$ messages \*or\* \[more\]"),
    ],
)
def test_words_are_set_as_mathematics_and_never_as_markup(text, markdown):
    assert verdicts.words(text) == markdown


def test_every_claim_and_verdict_is_in_the_table(records):
    table = verdicts.table(records)
    assert all(f"(#claim-{record['id']})" in table for record in records)
    assert table.count("✓ pass") == len(records)
    assert table.count("✓ fails, as it must") == len(records)


def test_claims_beyond_the_paper_are_marked(records):
    assert verdicts.table(records).count("[new]{.new}") == verdicts.tally(records)["new"] == 1
    assert "| N1 (new) |" in verdicts.as_text(records)


def test_all_is_well(records):
    assert verdicts.concerns(records) == []
    assert verdicts.tally(records)["passed"] == len(records)
    assert verdicts.tally(records)["changed_at_once"] == []


def test_a_verdict_that_would_change_with_wider_intervals_is_told(records):
    records[1]["verdict_at_once"] = "inconclusive"
    assert verdicts.tally(records)["changed_at_once"] == ["P2"]


def test_the_table_of_chances_tells_drawn_from_known(records):
    known = {"rate": 0.0, "ci95": [0.0, 0.0], "repetitions": 0}
    records[0]["false_pass_rate"], records[0]["pass_rate"] = known | {"sampled": records[1]["false_pass_rate"]}, None
    records[2]["pass_rate"] = known | {"rate": 1.0, "ci95": [1.0, 1.0]}
    table = verdicts.chances(records)
    assert table.count("none, by construction; simulated cells alone: [0.000]{.value}") == 1
    assert table.count("all, by construction") == 1
    assert "[98.00]{.value} [\\[97.70, 98.30\\]]{.interval}" in table
    assert all(f"(#claim-{record['id']})" in table for record in records)
    assert verdicts.tally(records)["repetitions"] == 10_000


@pytest.mark.parametrize("verdict", ["fail", "inconclusive"])
def test_what_does_not_pass_is_a_concern(records, verdict):
    records[2]["verdict"] = verdict
    (line,) = verdicts.concerns(records)
    assert "P3" in line
    assert verdict in line
    assert verdicts.tally(records)["passed"] == len(records) - 1


@pytest.mark.parametrize("verdict", ["pass", "inconclusive"])
def test_a_control_that_does_not_fail_is_a_concern(records, verdict):
    records[0]["control_verdict"] = verdict
    (line,) = verdicts.concerns(records)
    assert "P1" in line
    assert records[0]["control"].split()[0] in line
    assert verdicts.tally(records)["controls_failed"] == len(records) - 1


def test_a_title_is_preferred_to_the_statement(records):
    assert verdicts.heading(records[0]) == "Fluid limit"
    assert verdicts.heading({**records[0], "title": "Convergence"}) == "Convergence"
    assert verdicts.heading(records[2]).startswith("Only if: above")


def test_text_holds_rounded_values_and_no_provenance(records):
    text = verdicts.as_text(records)
    assert "−0.499 | [−0.508, −0.490]" in text
    assert "deadbeef" not in text
    assert ".ipynb" not in text
    assert text.count("\n") == len(records) + 4


def test_text_is_the_same_for_values_that_differ_beyond_their_interval(records):
    text = verdicts.as_text(records)
    for record in records:
        record["measured"] *= 1 + 1e-9
        record["evidence"]["dataset_hash"] = "another"
    assert verdicts.as_text(records) == text


def test_the_strip_shows_tolerance_measurement_and_control(records):
    for record in records:
        drawing = ElementTree.fromstring(verdicts.strip(record))
        kinds = [element.tag.split("}")[1] for element in drawing]
        assert kinds.count("rect") == 1
        assert kinds.count("circle") == 1
        assert kinds.count("path") == 4  # axis, two intervals, diamond


@pytest.mark.parametrize(
    "change",
    [
        {"measured": None, "ci95": [None, None]},
        {"ci95": [None, None]},
        {"measured": None, "ci95": [None, None], "tolerance": [None, None], "control_measured": None},
    ],
)
def test_the_strip_leaves_out_what_is_not_there(records, change):
    ElementTree.fromstring(verdicts.strip({**records[0], **change}))
