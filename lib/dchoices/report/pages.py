"""From filled markdown to a page and to print, offline, written under temporary names and renamed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pypandoc
import typst

from dchoices import plots
from dchoices.report.study import Study
from dchoices.report.writer import Writer

STORY = "main-figure.svg"  # the README's picture
# Its size, shown at about 800 px.
STORY_INCHES = (8.6, 3.5)

_READER = "markdown"


def _pandoc(markdown: str, to: str, folder: Path, template: str, extra: Sequence[str] = ()) -> str:
    """Convert with the report's bibliography, filter and template; a warning of pandoc's is an error."""
    arguments = [
        "--standalone", "--citeproc", f"--bibliography={folder / 'references.bib'}", "--fail-if-warnings",
        f"--lua-filter={folder / 'filter.lua'}", f"--template={folder / template}", "--wrap=none", *extra,
    ]  # fmt: skip
    converted: str = pypandoc.convert_text(markdown, to=to, format=_READER, extra_args=arguments)
    return converted


def page(markdown: str, writer: Writer, folder: Path) -> str:
    """Return the report as one HTML file that asks for nothing."""
    converted = _pandoc(markdown, "html5", folder, "page.html", ["--mathml", "--toc", "--toc-depth=2"])
    # Inlined after pandoc: it need not read a megabyte of script.
    parts = {
        "<!-- style -->": f"<style>\n{(folder / 'style.css').read_text('utf-8')}</style>",
        "<!-- bokeh -->": f"<script>\n{_in_script(plots.script())}\n</script>",
        "<!-- figures -->": f"<script>\n{_drawing(writer, folder)}\n</script>",
    }
    for mark, text in parts.items():
        if converted.count(mark) != 1:
            raise ValueError(f"{folder / 'page.html'}: must hold {mark} once")
        converted = converted.replace(mark, text)
    return converted


def _drawing(writer: Writer, folder: Path) -> str:
    items = _in_script(json.dumps(writer.panels, separators=(",", ":"), ensure_ascii=False))
    return f"{(folder / 'figures.js').read_text('utf-8')}\ndrawFigures({items});"


def _in_script(text: str) -> str:
    """Return text in which nothing ends the script element."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def drawn(study: Study) -> dict[str, bytes]:
    """Return the pictures of the printed panels by file name, and of a whole study that of the README."""
    figures = plots.make_figures(study.datasets)
    panels = {f"{name}.svg": plots.svg(panel) for figure in figures for name, panel in figure.printed_panels.items()}
    if not study.is_whole:
        return panels
    story = plots.story(study.datasets)
    made_from = ", ".join(f"{name} {study.hash(name)}" for name in story.studies)
    return panels | {STORY: plots.svg_row(story, STORY_INCHES, {"Title": story.alt, "Source": made_from})}


def printed(markdown: str, pictures: Mapping[str, bytes], folder: Path) -> bytes:
    """Return the report as PDF, with the fonts that typst brings along: the same everywhere."""
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        for name, content in pictures.items():
            (base / name).write_bytes(content)
        source = base / "report.typ"
        source.write_text(_pandoc(markdown, "typst-citations", folder, "print.typ"), "utf-8")
        pdf = typst.compile(source, root=base, ignore_system_fonts=True, format="pdf")
    assert isinstance(pdf, bytes)
    return pdf


def replace(path: Path, content: bytes) -> None:
    """Write a file under a temporary name and rename it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
