"""The template's vocabulary: what report.md may call, and the markdown each call leaves."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from dchoices import plots
from dchoices.report import licences, numbers, verdicts
from dchoices.report.study import Study, machine
from dchoices.report.verdicts import words
from dchoices.studies import STUDIES

TITLES = {name: name.replace("_", " ") for name in STUDIES}
# What draws and sets the report, beside what the datasets were made with.
TOOLS = ("bokeh", "holoviews", "matplotlib", "pypandoc_binary", "typst")


class Writer:
    """Fills the template; collects the panels that the page draws and the small pictures of keys and claims."""

    def __init__(self, study: Study, out: Path):
        self.study = study
        self.out = out
        self.figures = {figure.anchor: figure for figure in plots.make_figures(study.datasets)}
        self.panels: list[dict[str, Any]] = []
        self.pictures: dict[str, bytes] = {}
        self._claims = {claim["id"]: claim for claim in study.checked}

    def fill(self, template: str) -> str:
        """Return the template with every call answered."""
        # pandoc owns braces, brackets and percent signs.
        environment = jinja2.Environment(
            variable_start_string="<<", variable_end_string=">>", block_start_string="<%", block_end_string="%>",
            comment_start_string="<#", comment_end_string="#>", trim_blocks=True, undefined=jinja2.StrictUndefined,
            autoescape=False, keep_trailing_newline=True,
        )  # fmt: skip
        return environment.from_string(template).render(self._vocabulary())

    def _vocabulary(self) -> dict[str, Any]:
        study = self.study
        return {
            "profile": study.profile,
            "tally": verdicts.tally(study.checked),
            "claims_table": verdicts.table(study.checked),
            "unchecked": verdicts.unchecked(study.unchecked),
            "chances_table": verdicts.chances(study.checked),
            "concerns": verdicts.concerns(study.checked),
            "claim": lambda name: verdicts.mention(self._claims.get(name), name),
            "measured": lambda name: verdicts.value(self._claims[name]) if name in self._claims else numbers.DASH,
            "claim_sections": self.claim_sections,
            "figure": self.figure,
            "ref": self.reference,
            "figures": {name: figure.alt for name, figure in self.figures.items()},
            "facts": {name: figure.facts for name, figure in self.figures.items()},
            "num": numbers.plain,
            "estimate": lambda row: _response(row)[0],
            "interval": lambda row: " ".join(map(words, _response(row))),
            "record": self._claims.get,
            "listed": listed,
            "words": words,
            "policies_table": self.policies_table,
            "messages_table": self.messages_table,
            "runs_table": self.runs_table,
            "dataset_table": self.dataset_table,
            "times_table": self.times_table,
            "times": study.times,
            "total": lambda key: sum(row[key] for row in study.times),
            "costs": [study.cost(name) for name in study.datasets],
            "costs_table": self.costs_table,
            "elapsed": study.elapsed,
            "versions": self.versions,
            "licences_table": licences_table,
            "machine": machine(),
        }

    # ------------------------------------------------------------------------------------------------------ figures

    def number(self, anchor: str) -> int:
        """Return the number of a figure."""
        return list(self.figures).index(anchor) + 1

    def reference(self, anchor: str) -> str:
        """Return a link to a figure by its number."""
        return f"[Figure {self.number(anchor)}](#{anchor})"

    def figure(self, anchor: str, caller: Callable[[], str]) -> str:
        """Return a figure for page and print, with the caption between `call` and `endcall`."""
        figure = self.figures[anchor]
        caption = " ".join(caller().split())
        return "\n\n".join(
            [
                f"::::: {{.figure #{anchor}}}",
                _raw("html", self._page_figure(figure)),
                _raw("typst", self._print_figure(figure)),
                f"::: caption\n**Figure {self.number(anchor)}.** {caption}\n:::",
                f"::: source\n{self.source(figure.studies)}\n:::",
                ":::::",
            ]
        )

    def _page_figure(self, figure: plots.Figure) -> str:
        key = "".join(f"<li>{plots.swatch(entry)} {html.escape(entry.label)}</li>" for entry in figure.key)
        boxes = []
        for target, panel in figure.named_panels.items():
            self.panels.append(plots.bokeh_item(panel, target))
            boxes.append(f'<div class="panel" id="{target}"></div>')
        columns = f"columns-{min(figure.columns, len(figure.panels))}"
        return (
            f'<ul class="key">{key}</ul>\n{_controls(figure)}<div class="panels {columns}" role="group" '
            f'aria-label="{html.escape(figure.alt, quote=True)}">{"".join(boxes)}</div>'
        )

    def _print_figure(self, figure: plots.Figure) -> str:
        files = [f"{name}.svg" for name in figure.printed_panels]
        keys = []
        for k, entry in enumerate(figure.key):
            self.pictures[f"{figure.anchor}-key-{k}.svg"] = plots.swatch(entry).encode()
            keys.append(f"({_typst(f'{figure.anchor}-key-{k}.svg')}, {_typst(entry.label)})")
        return (
            f"#panels(columns: {min(figure.print_columns or figure.columns, len(files))}, alt: {_typst(figure.alt)}, "
            f"key: ({', '.join(keys)},), files: ({', '.join(map(_typst, files))},))"
        )

    def source(self, studies: Sequence[str]) -> str:
        """Return a figure's footer: notebook, commit, parameters, hash of each dataset it is made from."""
        return "\\\n".join(
            f"{self.notebook_links(name)} · commit {self.study.commit(name)} · {self._parameters(name)} · "
            f"data [{self.study.hash(name)}]{{.hash}}"
            for name in studies
        )

    def notebook_links(self, study: str) -> str:
        """Return links to the executed notebooks of a study."""
        files = self.study.notebooks(study)
        name = f"Notebook *{TITLES[study]}*"
        if not files:
            return name
        links = ", ".join(f"[{words(f.stem)}]({self._relative(f)})" for f in files)
        return f"{name}: {links}"

    def _relative(self, path: Path) -> str:
        return quote(Path(os.path.relpath(path, self.out)).as_posix())

    def _parameters(self, study: str) -> str:
        names = {"lam": "λ", "epsilon": "ε", "lam_points": "loads", "t_end": "t to", "t_step": "step"}
        names |= {"warm_up": "warm-up", "most_probes": "d to"}
        found = self.study.parameters(study)
        return "; ".join(f"{names.get(k, k)} {listed(v, k)}" for k, v in found.items()) or "parameters not recorded"

    def policies_table(self) -> str:
        """Return a table of the policies side by side: what each does, what it costs, what it brings."""
        rows = []
        for row in self.figures["fig-policies"].facts["rows"].values():
            shown, interval = _response(row)
            does = words(row["description"] or "registered in the notebook")
            messages = numbers.plain(row["messages_per_job"])
            rows.append([row["label"], messages, f"[{shown}]{{.value}} [{words(interval)}]{{.interval}}", does])
        head = ["Policy", "Messages per job", "Mean response time, 95\u00a0% interval", "What it does"]
        return verdicts.pipe_table(head, rows, (18, 14, 29, 39))

    def messages_table(self) -> str:
        """Return a table of what policies cost in messages and in memory, and the delay that they leave."""
        rows = []
        for policy, row in self.figures["fig-messages"].facts["rows"].items():
            value, half = row["delay"], row["delay_ci95"]
            shown, interval = numbers.estimate(value, (value - half, value + half))
            seen = f"[{shown}]{{.value}} [{words(interval)}]{{.interval}}"
            delay = seen if value > 0 else f"none seen, below {numbers.plain(row['unseen'], 1)}"
            rows.append([policy, numbers.plain(row["messages_per_job"]), numbers.plain(row["slots"]), delay])
        head = ["Policy", "Messages per job", "Memory slots of the dispatcher", "R − 1, 95\u00a0% interval"]
        return verdicts.pipe_table(head, rows, (20, 20, 24, 36))

    # ------------------------------------------------------------------------------------------------------- claims

    def claim_sections(self) -> str:
        """Return a subsection for each claim."""
        return "\n\n".join(self._claim_section(claim) for claim in self.study.checked)

    def _claim_section(self, claim: verdicts.Claim) -> str:
        picture = verdicts.strip(claim)
        self.pictures[f"{verdicts.anchor(claim)}.svg"] = picture.encode()
        items = {"Heuristic": words(claim["heuristic"])} if claim["heuristic"] else {}
        items |= {
            "Measured": f"{words(claim['quantity'])}: {verdicts.found(claim)}",
            "Tolerance": f"{verdicts.within(claim)}: {words(claim['tolerance_reason'])}",
            "Verdict": verdicts.verdict(claim),
            "Control": f"{words(claim['control'])}: {verdicts.found(claim, 'control_')}, tolerance "
            f"{verdicts.within(claim, 'control_')}",
            "Its verdict": verdicts.control_verdict(claim),
            "Source": words(claim["source"]),
            "Evidence": self._evidence(claim["evidence"]),
        }
        name = f"{claim['id']}: {words(verdicts.heading(claim))}{verdicts.mark(claim)}"
        title = f"### {name} {{#{verdicts.anchor(claim)}}}"
        said = f"::: statement\n{words(claim['statement'])}\n:::"
        statement = [said] if verdicts.heading(claim) != claim["statement"].rstrip(".") else []
        drawing = f'<div class="strip" aria-hidden="true">{picture}</div>'
        shown = [_raw("html", drawing), _raw("typst", f"#strip({_typst(f'{verdicts.anchor(claim)}.svg')})")]
        terms = "\n\n".join(f"{name}\n:   {text}" for name, text in items.items())
        return "\n\n".join([title, *statement, *shown, terms])

    def _evidence(self, evidence: Mapping[str, str]) -> str:
        parts = [self.reference(evidence["figure"])] if evidence["figure"] in self.figures else []
        study = Path(evidence["notebook"]).stem
        parts.append(self.notebook_links(study) if study in TITLES else words(evidence["notebook"]))
        parts.append(f"data {words(evidence['dataset'])} [{evidence['dataset_hash'][:12]}]{{.hash}}")
        return " · ".join(parts)

    # ----------------------------------------------------------------------------------------------------- colophon

    def runs_table(self) -> str:
        """Return a table of the studies: what each was run for, in how many events and how much time."""
        rows = []
        for name in self.study.datasets:
            cost = self.study.cost(name)
            events = numbers.plain(float(cost["events"]), 3) if cost["events"] else numbers.DASH
            rows.append([self.notebook_links(name), self._parameters(name), events, numbers.fixed(cost["cpu"], 0),
                         str(cost["memory"] or numbers.DASH)])  # fmt: skip
        head = ["Study", "Parameters", "Events", "CPU time, s", "Most memory, MB"]
        return verdicts.pipe_table(head, rows, (22, 44, 12, 11, 11))

    def dataset_table(self) -> str:
        """Return a table of the datasets: commit, seed, hash."""
        rows = []
        for name in self.study.datasets:
            seed = self.study.parameters(name).get("seed", [self.study.datasets[name].attrs.get("seed", "none")])
            sizes = ", ".join(f"{dim} {size}" for dim, size in self.study.datasets[name].sizes.items())
            rows.append([TITLES[name], words(sizes), listed(seed, "seed"), self.study.commit(name),
                         f"[{self.study.hash(name)}]{{.hash}}"])  # fmt: skip
        return verdicts.pipe_table(["Dataset", "Sizes", "Seed", "Commit", "Hash"], rows, (14, 38, 12, 20, 16))

    def costs_table(self) -> str:
        """Return a table of what each rule cost, that of the notebooks by study."""
        rows = []
        for name in self.study.datasets:
            cost = self.study.cost(name)
            pace = 1e9 * (cost["cpu"] - cost["start_up"]) / cost["events"] if cost["events"] else None
            events = numbers.plain(float(cost["events"]), 3) if cost["events"] else numbers.DASH
            rows.append([f"notebook {words(TITLES[name])}", str(cost["jobs"]), numbers.fixed(cost["wall"], 0),
                         numbers.fixed(cost["cpu"], 0), numbers.fixed(cost["start_up"], 0), events,
                         numbers.fixed(pace, 0), str(cost["memory"] or numbers.DASH)])  # fmt: skip
        for rule in dict.fromkeys(row["rule"] for row in self.study.times if row["rule"] != "notebook"):
            jobs = [row for row in self.study.times if row["rule"] == rule]
            wall, cpu = (numbers.fixed(sum(row[key] for row in jobs), 0) for key in ("wall", "cpu"))
            rows.append([rule, str(len(jobs)), wall, cpu, *[numbers.DASH] * 4])
        head = ["Rule", "Jobs", "Wall time, s", "CPU time, s", "of which start-up, s", "Events", "ns per event"]
        return verdicts.pipe_table([*head, "Most memory, MB"], rows, (26, 8, 11, 11, 12, 12, 10, 10))

    def times_table(self) -> str:
        """Return a table of what each job cost."""
        rows = [
            [words(f"{row['rule']} {row['job']}".strip()), *(numbers.fixed(row[key], 0) for key in ("wall", "cpu"))]
            for row in self.study.times
        ]
        return verdicts.pipe_table(["Job", "Wall time, s", "CPU time, s"], rows, (50, 25, 25))

    def versions(self) -> str:
        """Return the versions that the datasets record and those of the tools that set this report."""
        recorded: dict[str, set[str]] = {}
        for dataset in self.study.datasets.values():
            for name, version in json.loads(dataset.attrs.get("versions", "{}")).items():
                recorded.setdefault(name, set()).add(version)
        for name in TOOLS:
            recorded.setdefault(name, set()).add(metadata.version(name))
        return ", ".join(f"{words(name)} {' and '.join(sorted(found))}" for name, found in sorted(recorded.items()))


def licences_table() -> str:
    """Return a table of the packages that a run needs, by licence."""
    rows = [[words(name), words(", ".join(packages))] for name, packages in licences.by_licence().items()]
    return verdicts.pipe_table(["Licence", "Packages"], rows, (24, 76))


def _response(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the mean response time of a policy and its interval."""
    value, half = row["mean_response_time"], row["mean_response_time_ci95"]
    if half == 0:
        return numbers.plain(value), f"(no delayed job seen, R − 1 below {numbers.plain(row['unseen'], 1)})"
    return numbers.estimate(value, (value - half, value + half))


def listed(values: Sequence[Any], name: str = "") -> str:
    """Return values in a row, set as numbers unless they are names or seeds."""
    numeric = name != "seed"
    return ", ".join(numbers.plain(v) if numeric and isinstance(v, int | float) else words(str(v)) for v in values)


def _controls(figure: plots.Figure) -> str:
    """Return what the reader of the page chooses a figure's frame with."""
    choices = []
    for k, control in enumerate(figure.controls):
        name = f"{figure.anchor}-choice-{k}"
        values = html.escape(json.dumps(list(control.values), ensure_ascii=False), quote=True)
        common = f'id="{name}" data-values="{values}" autocomplete="off"'
        options = "".join(
            f'<option value="{n}"{" selected" * (n == control.first)}>{html.escape(value)}</option>'
            for n, value in enumerate(control.values)
        )
        field = (
            f'<input type="range" {common} min="0" max="{len(control.values) - 1}" value="{control.first}">'
            f'<output for="{name}"></output>'
            if control.slider
            else f"<select {common}>{options}</select>"
        )
        choices.append(f'<div><label for="{name}">{html.escape(control.label)}</label> {field}</div>')
    return f'<div class="controls">{"".join(choices)}</div>\n' if choices else ""


def _raw(target: str, text: str) -> str:
    return f"```{{={target}}}\n{text}\n```"


def _typst(text: str) -> str:
    """Return a typst string."""
    return json.dumps(text, ensure_ascii=False)
