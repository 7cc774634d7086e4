"""Claims as text: the table, the section of each claim, the picture of its interval, and claims.md."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dchoices.report import numbers

Claim = Mapping[str, Any]

VERDICTS = ("pass", "fail", "inconclusive")
SYMBOLS = {"pass": "✓", "fail": "✗", "inconclusive": "?"}
# A control has to fail: what its verdict says about the check.
CONTROLS = {"fail": ("pass", "fails, as it must"), "pass": ("fail", "passes: no check")}
CONTROLS["inconclusive"] = ("inconclusive", "inconclusive")
# Most significant digits in claims.md, which two runs on different machines must agree on.
TEXT_DIGITS = 4
# Lengths of a statement's head that make a heading of it.
HEADING = range(10, 70)
# Most significant digits on the page.
PAGE_DIGITS = 5

_MATH = re.compile(r"(\$[^$]+\$)")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#^~|@$])")
_ALONE = r"[A-Za-z](?![^\W_])"  # a symbol, maybe with an index
_MINUS = re.compile(
    rf"(?:(?<=[\dλ)])|(?<=\b[A-Za-z]))-(?=[\dλ(]|{_ALONE})"  # between two terms
    rf"|(?<=[ (⌈])-(?=[ \dλ]|log|{_ALONE})"  # between spaces, or in front of a term
)
_POWER = re.compile(r"\\\^(?:([A-Za-z0-9]+)|\(([^()^]*)\))")
_TOWER = re.compile(r"\^\(((?:[^()$]|\([^()]*\))*\([^()]*\)(?:[^()$]|\([^()]*\))*)\)")
_INDEX = re.compile(r"(?<![\w])([A-Za-z])\\_(?:([A-Za-z0-9])(?!\w)|\(([^() ]*)\))")


def words(text: str) -> str:
    """Return plain text as pandoc's markdown.

    $…$ stays mathematics; outside it minus signs, ≤ and ≥, powers and indices (λ^d, N^(-1/2), p_1, R_(j-1)) are set.
    """
    parts = _MATH.split(_TOWER.sub(r"${}^{\1}$", text))
    for k in range(0, len(parts), 2):
        part = _MINUS.sub(numbers.MINUS, parts[k]).replace("<=", "≤").replace(">=", "≥")
        part = _POWER.sub(lambda m: f"^{m[1] or m[2]}^", _SPECIAL.sub(r"\\\1", part))
        parts[k] = _INDEX.sub(lambda m: f"{m[1]}~{m[2] or m[3]}~", part)
    return "".join(parts)


def anchor(claim: Claim) -> str:
    """Return the id of a claim's section."""
    return f"claim-{claim['id']}"


def heading(claim: Claim) -> str:
    """Return a claim's title; without one, the head of its statement up to a colon, else the statement."""
    statement = str(claim["statement"]).rstrip(".")
    head = statement.split(":")[0]
    return str(claim.get("title") or (head if len(head) in HEADING else statement))


def mark(claim: Claim) -> str:
    """Return what sets a claim beyond the paper apart: the word "new"."""
    return " [new]{.new}" if claim["heuristic"] else ""


def span(kind: str, text: str) -> str:
    """Return a verdict as a word with symbol and colour."""
    return f"[{SYMBOLS[kind]} {text}]{{.verdict .{kind}}}"


def verdict(claim: Claim) -> str:
    """Return the verdict of a claim."""
    return span(claim["verdict"], claim["verdict"])


def control_verdict(claim: Claim) -> str:
    """Return what the control of a claim says about the check."""
    return span(*CONTROLS[claim["control_verdict"]])


def measured(claim: Claim, prefix: str = "", most: int = PAGE_DIGITS) -> tuple[str, str]:
    """Return value and interval of a claim, or with `prefix` "control_" of its control."""
    return numbers.estimate(claim.get(f"{prefix}measured"), claim.get(f"{prefix}ci95"), most)


def value(claim: Claim, prefix: str = "") -> str:
    value, interval = measured(claim, prefix)
    return f"[{value}]{{.value}} [{words(interval)}]{{.interval}}"


def place(claim: Claim, prefix: str = "") -> str:
    """Return the cell that is shown."""
    if prefix and claim[f"{prefix}at"] == claim["at"]:
        return "the same cell"
    return words(claim[f"{prefix}at"])


def within(claim: Claim, prefix: str = "") -> str:
    """Return the tolerance of the cell that is shown."""
    return words(numbers.tolerance(claim[f"{prefix}tolerance"]))


def table(claims: Sequence[Claim]) -> str:
    """Return the table of all claims: what was measured in which cell against which tolerance, and the control's."""
    head = ["Claim", "Measured, 95\u00a0% interval", "Tolerance", "Verdict", "Control", "Control's verdict"]
    rows = [
        [
            f"[**{claim['id']}**](#{anchor(claim)}) {words(heading(claim))}{mark(claim)}",
            f"{value(claim)} [{place(claim)}]{{.cell}}",
            f"[{within(claim)}]{{.value}}",
            verdict(claim),
            f"{words(claim['control'])}: {value(claim, 'control_')}, tolerance [{within(claim, 'control_')}]{{.value}} "
            f"[{place(claim, 'control_')}]{{.cell}}",
            control_verdict(claim),
        ]
        for claim in claims
    ]
    return pipe_table(head, rows, (21, 19, 11, 11, 27, 11))


def chance(rate: Mapping[str, Any] | None) -> str:
    """Return how often a check would pass, in per cent with its interval; none or all by construction."""
    if rate is None:
        return numbers.DASH
    if rate["repetitions"]:
        value, interval = numbers.estimate(100 * rate["rate"], [100 * end for end in rate["ci95"]], PAGE_DIGITS)
        return f"[{value}]{{.value}} [{words(interval)}]{{.interval}}"
    known = "all, by construction" if rate["rate"] else "none, by construction"
    return f"{known}; simulated cells alone: {chance(rate['sampled'])}" if "sampled" in rate else known


def chances(claims: Sequence[Claim]) -> str:
    """Return the table of how often the control of each claim would pass, and the claim itself."""
    head = ["Claim", "Cells", "Control passes, %, 95\u00a0% interval", "Claim passes, %, 95\u00a0% interval"]
    rows = [
        [
            f"[**{claim['id']}**](#{anchor(claim)}){mark(claim)}",
            str(claim["cells"]),
            chance(claim["false_pass_rate"]),
            chance(claim["pass_rate"]),
        ]
        for claim in claims
    ]
    return pipe_table(head, rows, (14, 10, 42, 34))


def pipe_table(head: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> str:
    """Return a pandoc table; `widths` are relative."""
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def tally(claims: Sequence[Claim]) -> dict[str, Any]:
    """Return the counts that the summary quotes."""
    counts = Counter(claim["verdict"] for claim in claims)
    changed: dict[str, list[str]] = {}
    for claim in claims:
        if claim["verdict_at_once"] != claim["verdict"]:
            changed.setdefault(claim["verdict_at_once"], []).append(claim["id"])
    return {
        "claims": len(claims),
        "passed": counts["pass"],
        "failed": counts["fail"],
        "inconclusive": counts["inconclusive"],
        "controls_failed": sum(claim["control_verdict"] == "fail" for claim in claims),
        "repetitions": max(((claim["pass_rate"] or {}).get("repetitions", 0) for claim in claims), default=0),
        "new": sum(bool(claim["heuristic"]) for claim in claims),
        "changed_at_once": changed,
        "tightest": _tightest(claims),
    }


def _tightest(claims: Sequence[Claim]) -> dict[str, Any] | None:
    """Return the claim that passes with the least room at the ends of its tolerance, in widths of it; None without."""
    found = []
    for claim in claims:
        (low, high), (first, last) = claim["tolerance"], claim["ci95"]
        if claim["verdict"] == "pass" and None not in (low, high, first, last) and low < high:
            found.append({"id": claim["id"], "room": min(first - low, high - last), "width": high - low})
    return min(found, key=lambda one: one["room"] / one["width"], default=None)


def concerns(claims: Sequence[Claim]) -> list[str]:
    """Return a line for each claim that does not pass and each control that does not fail."""
    lines = []
    for claim in claims:
        link = f"[**{claim['id']}**](#{anchor(claim)})"
        if claim["verdict"] != "pass":
            said = f"{words(heading(claim))}: {found(claim)}, tolerance {within(claim)}"
            lines.append(f"{link} {verdict(claim)} {said}.")
        if claim["control_verdict"] != "fail":
            lines.append(f"{link} {control_verdict(claim)} A control has to fail: {words(claim['control'])}.")
    return lines


def found(claim: Claim, prefix: str = "") -> str:
    """Return what is shown: value and interval, in which cell, and out of how many."""
    cells = claim[f"{prefix}cells"]
    if prefix:
        counted = f"{claim[f'{prefix}cells_failing']} of {cells} cells fail"
    else:
        beside = claim["cells_beside"]
        counted = f"decides among {cells - beside} cells" + f", with {beside} more beside them" * bool(beside)
    return f"{value(claim, prefix)}, {place(claim, prefix)} ({counted})"


def mention(claim: Claim | None, name: str) -> str:
    """Return a reference to a claim with its verdict, for running text."""
    if claim is None:
        return f"{name} (not checked in this profile)"
    return f"[{claim['id']}](#{anchor(claim)}) ({verdict(claim)})"


def unchecked(reasons: Mapping[str, Sequence[str]]) -> str:
    """Return which claims were not checked, by what it would take: "P6: the study recursion; …"."""
    return "; ".join(f"{', '.join(names)}: {words(what)}" for what, names in reasons.items())


def as_text(claims: Sequence[Claim], left_out: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return claims.md: rounded values and verdicts, and nothing that differs between two runs of the same study."""
    head = ["Claim", "Statement", "Cell shown", "Measured", "95 % interval", "Tolerance", "Verdict"]
    head += ["Control", "Its cell", "Measured on it", "95 % interval", "Its tolerance", "Its verdict"]
    rows = []
    for claim in claims:
        control_kind, control_word = CONTROLS[claim["control_verdict"]]
        same = claim["control_at"] == claim["at"]
        rows.append([
            claim["id"] + " (new)" * bool(claim["heuristic"]), _cell(claim["statement"]), _cell(claim["at"]),
            *measured(claim, "", TEXT_DIGITS), numbers.tolerance(claim["tolerance"]),
            f"{SYMBOLS[claim['verdict']]} {claim['verdict']}",
            _cell(claim["control"]), "the same" if same else _cell(claim["control_at"]),
            *measured(claim, "control_", TEXT_DIGITS), numbers.tolerance(claim["control_tolerance"]),
            f"{SYMBOLS[control_kind]} {control_word}",
        ])  # fmt: skip
    counts = tally(claims)
    summary = (
        f"{counts['passed']} of {counts['claims']} claims pass, {counts['failed']} fail, {counts['inconclusive']} are "
        f"inconclusive; {counts['controls_failed']} of {counts['claims']} controls fail, as they must."
    )
    lines = [summary, pipe_table(head, rows, [3] * len(head))]
    if left_out:
        lines.append(f"Not checked, as this run does not have the data. {unchecked(left_out)}.")
    return "\n\n".join(lines) + "\n"


def _cell(text: str) -> str:
    text = _MINUS.sub(numbers.MINUS, " ".join(text.split())).replace("<=", "≤").replace(">=", "≥")
    return re.sub(r"([|*_<])", r"\\\1", text)


STRIP_WIDTH, STRIP_MARGIN, STRIP_LINE = 520, 14, 22
# By the prefix of a record's fields: colour and mark.
LINES = {"": ("#0072B2", "dot"), "control_": ("#D55E00", "diamond")}


def strip(claim: Claim) -> str:
    """Return a picture of two lines, claim and control: tolerance (band) and what was measured (mark, interval).

    They share a scale where both show the same cell.
    """
    shared = claim["at"] == claim["control_at"]
    shapes = []
    for k, (prefix, (color, look)) in enumerate(LINES.items()):
        known = [end for one in (LINES if shared else [prefix]) for end in _known(claim, one)]
        line = _line(claim, prefix, (min(known), max(known)) if known else (0.0, 1.0), color, look)
        shapes.append(f'<g transform="translate(0 {k * STRIP_LINE})">{line}</g>')
    size = f'width="{STRIP_WIDTH}" height="{2 * STRIP_LINE}" viewBox="0 0 {STRIP_WIDTH} {2 * STRIP_LINE}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(shapes)}</svg>'


def _line(claim: Claim, prefix: str, room: tuple[float, float], color: str, look: str) -> str:
    low, high = room
    scale = (STRIP_WIDTH - 2 * STRIP_MARGIN) / ((high - low) or 1.0)

    def at(value: float) -> float:
        return round(STRIP_MARGIN + (value - low) * scale, 2)

    bounds = claim[f"{prefix}tolerance"]
    left = 0.0 if bounds[0] is None else at(bounds[0])
    right = float(STRIP_WIDTH) if bounds[1] is None else at(bounds[1])
    shapes = [
        f'<rect x="{min(left, right - 2)}" y="3" width="{max(right - left, 2)}" height="16" fill="#bfe3d6"/>',
        f'<path d="M0 11 H{STRIP_WIDTH}" stroke="#8a8a8a" stroke-width="0.8"/>',
    ]
    first, value, last = _ends(claim, prefix)
    if all(math.isfinite(v) for v in (first, value, last)):
        x = at(value)
        shapes.append(f'<path d="M{at(first)} 11 H{at(last)}" stroke="{color}" stroke-width="3.2"/>')
        shapes.append(
            f'<circle cx="{x}" cy="11" r="4.6" fill="{color}"/>'
            if look == "dot"
            else f'<path d="M{x} 5 l6 6 l-6 6 l-6 -6 Z" fill="#fff" stroke="{color}" stroke-width="1.6"/>'
        )
    return "".join(shapes)


def _known(claim: Claim, prefix: str) -> list[float]:
    ends = (*claim[f"{prefix}tolerance"], *_ends(claim, prefix))
    return [end for end in ends if end is not None and math.isfinite(end)]


def _ends(claim: Claim, prefix: str) -> tuple[float, float, float]:
    value = claim[f"{prefix}measured"]
    if value is None:
        return math.nan, math.nan, math.nan
    first, last = claim[f"{prefix}ci95"]
    return float(value if first is None else first), float(value), float(value if last is None else last)
