import functools
import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pypdf
import pytest
from dchoices import plots
from dchoices.report import __main__ as report
from dchoices.report.study import Study
from made_up_study import claims, study, write, write_report

OUTPUTS = {"report.html", "report.pdf", "claims.md", "main-figure.svg"}


class Page(HTMLParser):
    """Collects ids, links and whatever could make a browser ask for something."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.fetched = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" and "href" in given else []
        if tag in ("script", "img", "iframe", "link", "source", "object"):
            sources = [given[key] for key in ("src", "href", "data") if key in given]
            self.fetched += [source for source in sources if not source.startswith("data:")]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write(tmp_path_factory.mktemp("written") / "smoke", study(n_loads=20), claims())


@pytest.fixture
def data(written, tmp_path):
    """A made-up run of its own, for where the figures do not matter."""
    return Path(shutil.copytree(written, tmp_path / "smoke"))


@pytest.fixture(scope="module")
def drawn():
    """Panels drawn as blanks: test_plots and the browser look at pictures."""
    blank = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "svg", lambda panel: blank)
        patch.setattr(plots, "bokeh_item", lambda panel, target: {"target_id": target})
        yield


@pytest.fixture(scope="module")
def built(drawn, template, tmp_path_factory):
    """The report of a made-up study in which every claim passes."""
    return write_report(tmp_path_factory.mktemp("project"), template)


def build(data, template, out):
    """Run the command; return its exit status."""
    return report.main(["--data", str(data), "--template", str(template), "--out", str(out)])


@functools.cache
def printed(out):
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(out / "report.pdf").pages)


def test_all_outputs_and_nothing_else(built):
    assert {path.name for path in built.iterdir()} == OUTPUTS


def test_the_page_is_whole(built):
    text = (built / "report.html").read_text("utf-8")
    page = Page(text)
    assert page.fetched == []
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert {f"claim-{record['id']}" for record in claims()} <= set(page.ids)
    assert len(text) < 6e6
    body = text[text.index("<main") : text.index("</main>")]
    assert "&lt;&lt;" not in body
    assert "<math" in body


def test_links_to_notebooks_lead_somewhere(built):
    links = {link for link in Page((built / "report.html").read_text("utf-8")).links if link.endswith(".ipynb")}
    assert links
    for link in links:
        assert (built / link.replace("%3D", "=")).is_file()


def test_page_and_print_show_the_same_table(built):
    page = (built / "report.html").read_text("utf-8")
    paper = printed(built)
    for record in claims():
        assert f'href="#claim-{record["id"]}"' in page
        assert record["id"] in paper
    assert page.count("✓ pass") >= len(claims())
    assert paper.count("✓ pass") >= len(claims())
    assert "[−0.5077, −0.4897]" in page
    assert "[−0.5077, −0.4897]" in paper


def test_the_policies_are_in_a_table(built):
    page = (built / "report.html").read_text("utf-8")
    section = page[page.index('id="policies"') : page.index('id="one-by-one"')]
    paper = printed(built)
    for name in ("random", "my-policy(2)", "sq(2)", "sq-memory(2)", "jiq", "jsq"):
        assert f"<td>{name}</td>" in section
        assert name in paper
    assert "<td>20\u202f000</td>" in section
    assert "registered in the notebook" in section
    assert "policies random, my-policy(2), sq(2)," in section


def test_parameters_are_shown_as_given_and_those_of_split_jobs_joined(data):
    for part, lam in (("a", [0.9, 0.3]), ("b", [0.4, 0.3])):
        file = data / "parameters" / "ladder" / f"{part}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{{N: [100, 1000, 10], replicates: [5, 5, 3], lam: {lam}, output: x.nc}}")
    shown = Study.read(data).parameters("ladder")
    assert shown == {"N": [100, 1000, 10], "replicates": [5, 5, 3], "lam": [0.3, 0.4, 0.9]}


def test_the_page_has_controls_and_print_has_their_frames(built):
    page = (built / "report.html").read_text("utf-8")
    figure = page[page.index('<figure id="fig-portrait">') : page.index('id="paths"')]
    ids = Page(figure).ids
    assert ids == ["fig-portrait", "fig-portrait-choice-0", "fig-portrait-choice-1", "fig-portrait-0", "fig-portrait-1"]
    assert '<option value="1" selected>2</option>' in figure
    assert 'max="3" value="2"' in figure
    assert all(f'<label for="fig-portrait-choice-{k}">' in figure for k in range(2))
    assert "any of 8 pairs" in figure
    assert "any of 8 pairs" in " ".join(printed(built).split())


def test_the_colophon_shows_times_seeds_and_hashes(built):
    page = (built / "report.html").read_text("utf-8")
    colophon = page[page.index('id="colophon"') :]
    assert "<td>notebook stationary/d=2</td>" in colophon
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in colophon.split("<tr")]
    assert ["notebook stationary", "1", "13", "12", "3", "5 × 10⁸", "18", "321"] in rows  # 9 s of work, 12 s in all
    assert ["claims", "1", "13", "12", "–", "–", "–", "–"] in rows
    assert re.search(r"Of the CPU time 2\d\s% went into starting notebooks", colophon)
    assert "The run took" in colophon
    assert "0123456789ab" in colophon


def test_the_time_of_a_run_is_told_only_where_it_did_all_jobs(data):
    assert 0 <= Study.read(data).elapsed < 60
    os.utime(data / "times" / "claims.time", (1e9, 1e9))  # done by an earlier run
    assert Study.read(data).elapsed is None


@pytest.mark.usefixtures("drawn")
def test_a_report_of_failures_is_written_and_says_so(data, template, tmp_path):
    records = claims()
    records[0] |= {"verdict": "fail", "measured": -0.1, "ci95": [-0.12, -0.08]}
    records[1] |= {"verdict": "inconclusive", "measured": None, "ci95": [None, None], "tolerance": [None, None]}
    records[1] |= {"at": "no data", "cells": 0}
    records[2] |= {"control_verdict": "pass", "ci95": [None, None]}
    out = tmp_path / "out"
    (data / "claims.json").write_text(json.dumps(records), "utf-8")
    assert build(data, template, out) == 0
    text = (out / "report.html").read_text("utf-8")
    lead = text[text.index("<main") : text.index('id="claims"')]
    assert all(f'href="#claim-{name}"' in lead for name in ("P1", "P2", "P3"))
    assert "✗ fail" in lead
    assert "✗ fail" in printed(out)
    n = len(records)
    counts = f"{n - 2} of {n} claims pass, 1 fail, 1 are inconclusive; {n - 1} of {n} controls fail"
    assert counts in (out / "claims.md").read_text()


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("studies", [("stationary", "fixed_points"), ("fluid",)], ids=lambda names: names[0])
def test_a_run_of_a_few_studies_has_a_short_report(data, template, tmp_path, studies):
    records = claims()
    lacking = [record for record in records if record["id"] not in ("P2", "P5") or len(studies) == 1]
    for record in lacking:
        record |= {"verdict": "inconclusive", "control_verdict": "inconclusive", "at": "no data: the study ladder"}
    lacking[-1]["at"] = "no data"
    (data / "claims.json").write_text(json.dumps(records), "utf-8")
    for path in data.glob("*.nc"):
        if path.stem not in studies:
            path.unlink()
    out, short = tmp_path / "out", template.with_name("short.md")
    assert report.main([f"--data={data}", f"--template={short}", f"--out={out}", "--studies", *studies]) == 0
    assert {path.name for path in out.iterdir()} == OUTPUTS - {"main-figure.svg"}
    text, table, paper = (out / "report.html").read_text("utf-8"), (out / "claims.md").read_text("utf-8"), printed(out)
    left_out = f"the study ladder; {lacking[-1]['id']}: runs of the kind that it is about"
    assert all(left_out in " ".join(where.split()) for where in (text, table, paper))
    checked = len(records) - len(lacking)
    assert f"{checked} of {checked} claims pass" in table
    assert ("no data here that a claim could be checked on" in paper) == (checked == 0)
    assert len(re.findall(r'id="claim-', text)) == checked
    figures = ["fig-idle", "fig-fixed-points", "fig-memory", "fig-lookup"] if checked else []
    assert re.findall(r'<figure id="([^"]*)"', text) == figures
    page = Page(text)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert page.fetched == []


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_many_claims_fill_several_pages_of_table(data, template, tmp_path):
    records = [{**record, "id": f"{record['id']}-{k}"} for k in range(8) for record in claims()]
    out = tmp_path / "out"
    (data / "claims.json").write_text(json.dumps(records), "utf-8")
    assert build(data, template, out) == 0
    text = printed(out)
    assert text.count("Control’s") >= 2  # the head of the table is repeated
    assert all(record["id"] in text for record in records)


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_a_run_without_benchmarks_and_notebooks_is_reported(data, template, tmp_path):
    shutil.rmtree(data / "times")
    shutil.rmtree(data / "logs")
    assert build(data, template, tmp_path / "out") == 0
    assert "No times were measured" in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_a_run_that_is_not_there_is_named_in_one_line(tmp_path, template, capsys):
    assert build(tmp_path / "none", template, tmp_path / "out") == 1
    error = capsys.readouterr().err
    assert "none" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
