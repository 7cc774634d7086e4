"""What the README shows runs, and names files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_python_examples_run():
    (example,) = [block for block in BLOCKS if "import dchoices" in block]
    names = {}
    for line in example.splitlines():
        statement, _, shown = line.partition("#")
        if not statement.strip().startswith("dc."):
            exec(statement, names)
            continue
        result = eval(statement, names)
        if "queue_bound" in statement:
            assert result == int(shown)
        if "queue_length_pmf" in statement:
            assert result.values == pytest.approx([float(x) for x in shown.split(",")], abs=5e-6)


def test_links_lead_to_files():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_commands_are_make_targets():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in re.findall(r"`?make ([a-z]+)`?", README):
        if command in ("test", "smoke", "lab", "lock", "claims", "clean"):
            assert command in targets
