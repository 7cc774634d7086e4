"""The verdict on a whole run: red when a claim fails, or when its control, which must fail, does not."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dchoices.wording import one_line

VERDICTS = ("pass", "fail", "inconclusive")


def problems(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one line for each claim that fails and each control that does not fail where its claim is decided.

    Parameters
    ----------
    claims : list of dict
        The records of claims.json.

    Raises
    ------
    ValueError
        If there is no claim, an id comes twice, or a verdict is none of pass, fail, inconclusive.
    """
    if not claims:
        raise ValueError("there is no claim")
    twice = [name for name, count in Counter(claim["id"] for claim in claims).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]}: claim comes twice")
    lines = []
    for claim in claims:
        for key in ("verdict", "control_verdict"):
            if claim[key] not in VERDICTS:
                allowed = ", ".join(VERDICTS)
                raise ValueError(f"{claim['id']}: {key} = {claim[key]!r}: must be one of {allowed}")
        if claim["verdict"] == "fail":
            lines.append(f"{claim['id']}: fails: {_measured(claim, '')} at {claim['at']}")
        # Too little data leaves both undecided, as in the smoke profile; that is inconclusive, and not red.
        undecided = claim["verdict"] == claim["control_verdict"] == "inconclusive"
        if claim["control_verdict"] != "fail" and not undecided:
            lines.append(
                f"{claim['id']}: its control ({claim['control']}) must fail, "
                f"but is {claim['control_verdict']}: {_measured(claim, 'control_')}"
            )
    return lines


def _measured(claim: Mapping[str, Any], prefix: str) -> str:
    measured, low, high = map(_number, (claim[f"{prefix}measured"], *claim[f"{prefix}ci95"]))
    least, most = map(_number, claim["tolerance"])
    return f"measured {measured} [{low}, {high}], tolerance [{least}, {most}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def summary(claims: Sequence[Mapping[str, Any]]) -> str:
    """Return a line per claim and the counts."""
    lines = [f"{claim['id']:16} {claim['verdict']:13} control: {claim['control_verdict']}" for claim in claims]
    counts = Counter(claim["verdict"] for claim in claims)
    return "\n".join([*lines, ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the verdict and write it to a file; return 1 if a claim fails or a control does not, 2 without claims."""
    parser = argparse.ArgumentParser(prog="python -m dchoices.workflow.verdict", description=__doc__)
    parser.add_argument("claims", type=Path, help="claims.json")
    parser.add_argument("output", type=Path, help="text file to write")
    given = parser.parse_args(arguments)
    try:
        claims = json.loads(given.claims.read_text("utf-8"))
        text, red = summary(claims), problems(claims)
    except (OSError, ValueError) as error:
        print(f"{given.claims}: cannot be read: {one_line(str(error))}", file=sys.stderr)
        return 2
    except (KeyError, TypeError, AttributeError) as error:
        print(f"{given.claims}: must hold the records of claims: {type(error).__name__} {error}", file=sys.stderr)
        return 2
    try:
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.write_text(f"{text}\n" + "".join(f"{line}\n" for line in red), "utf-8")
    except OSError as error:
        print(f"{given.output}: cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    print(text)
    for line in red:
        print(line, file=sys.stderr)
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
