"""Notebooks as committed: short, stripped, with a parameters cell of literals."""

import ast
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_is_short_and_stripped(self, path):
        notebook = nbformat.read(path, as_version=4)
        assert len(notebook.cells) <= 10
        for cell in notebook.cells:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None
        assert notebook.metadata.kernelspec == {"display_name": "Python 3", "language": "python", "name": "python3"}

    def test_parameters_are_literals(self, path):
        notebook = nbformat.read(path, as_version=4)
        (cell,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
        for statement in ast.parse(cell.source).body:
            assert isinstance(statement, ast.Assign)
            ast.literal_eval(statement.value)

    def test_defines_no_functions(self, path):
        notebook = nbformat.read(path, as_version=4)
        tree = ast.parse("\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code"))
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
