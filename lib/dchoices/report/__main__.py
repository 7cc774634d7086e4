"""Command line of the report."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from dchoices.datasets import DatasetError
from dchoices.report import pages, verdicts
from dchoices.report.study import Study
from dchoices.report.writer import Writer
from dchoices.studies import STUDIES
from dchoices.wording import one_line


def write(data: Path, template: Path, out: Path, studies: Sequence[str] = STUDIES) -> None:
    """Write report.html, report.pdf, claims.md and, with all studies, main-figure.svg for the run in `data`."""
    text = template.read_text("utf-8")
    study = Study.read(data, studies)
    out.mkdir(parents=True, exist_ok=True)
    # Drawing for print takes as long as the page. The data are sent: pickled figures would lose their options.
    with ProcessPoolExecutor(max_workers=1) as other:
        drawing = other.submit(pages.drawn, study)
        writer = Writer(study, out)
        markdown = writer.fill(text)
        page = pages.page(markdown, writer, template.parent)
        pictures = drawing.result()
    outputs = {
        "report.html": page.encode(),
        "report.pdf": pages.printed(markdown, pictures | writer.pictures, template.parent),
        "claims.md": verdicts.as_text(study.checked, study.unchecked).encode(),
    }
    outputs |= {name: pictures[name] for name in (pages.STORY,) if name in pictures}
    for name, content in outputs.items():
        pages.replace(out / name, content)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report; return 1 with one line of reason where the run cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m dchoices.report", description=write.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder data/<profile> of a finished run")
    parser.add_argument("--template", type=Path, required=True, help="report/report.md, or report/short.md")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=STUDIES, help="of the run, by default all")
    given = parser.parse_args(arguments)
    try:
        write(given.data, given.template, given.out, given.studies)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, DatasetError) as error:
        print(one_line(str(error)), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
