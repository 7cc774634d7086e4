"""Import closures, on a small package with every kind of import, and on the real one."""

import json
from pathlib import Path

import pytest
from dchoices.studies import STUDIES
from dchoices.workflow.closure import ClosureError, closure, code_hash, registered_policies

ROOT = Path(__file__).parents[2]

PACKAGE = {
    "__init__.py": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from dchoices.plots import draw
_EXPORTS: dict[str, str] = {"simulate": "simulation", "fluid_path": "theory.fluid"}
""",
    "simulation.py": "from . import starts\nfrom .kernels.lumped import step\n",
    "starts.py": "import numpy as np\n",
    "plots.py": "",
    "datasets.py": "def merge():\n    import dchoices.registry as registry\n    return registry.names\n",
    "registry.py": "",
    "unused.py": "",
    "kernels/__init__.py": "",
    "kernels/lumped.py": "from dchoices.kernels import jit\n",
    "kernels/jit.py": "",
    "kernels/drift.py": "from .jit import kernel\n",
    "theory/__init__.py": "",
    "theory/fluid.py": "from ..kernels import drift\n",
    "claims/__init__.py": "from dchoices import datasets\n",
    "claims/__main__.py": "from . import limit\n",
    "claims/limit.py": "import dchoices\ndchoices.starts.empty()\n",
}


@pytest.fixture
def lib(tmp_path):
    for name, source in PACKAGE.items():
        path = tmp_path / "lib" / "dchoices" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tmp_path / "lib"


def notebook(folder, *cells, outputs=(), tags=()):
    path = folder / "question.ipynb"
    code = [
        {"cell_type": "code", "source": cell, "metadata": {"tags": list(tags)}, "outputs": list(outputs)}
        for cell in cells
    ]
    text = {"cell_type": "markdown", "source": ["import dchoices.unused\n"], "metadata": {}}
    path.write_text(json.dumps({"cells": [text, *code], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}))
    return path


def names(lib, target):
    return {path.relative_to(lib / "dchoices").as_posix() for path in closure(target, lib)}


JIT = {"__init__.py", "kernels/__init__.py", "kernels/jit.py"}
FLUID = JIT | {"theory/__init__.py", "theory/fluid.py", "kernels/drift.py"}
SIMULATION = JIT | {"simulation.py", "starts.py", "kernels/lumped.py"}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import numpy as np", set()),
        ("import dchoices", {"__init__.py"}),
        ("import dchoices as dc\ndc.simulate(1)", SIMULATION),
        ("import dchoices as dc\nf = dc.fluid_path", FLUID),
        ("import dchoices as dc\ndc.plots.draw(dc.unknown)", {"__init__.py", "plots.py"}),
        ("from dchoices import simulate as run", SIMULATION),
        ("from dchoices import datasets", {"__init__.py", "datasets.py", "registry.py"}),
        ("from dchoices.kernels.jit import kernel", JIT),
        ("from dchoices import kernels\nkernels.jit.kernel", JIT),
        ("import dchoices.kernels as k\nk.jit", JIT),
        ("def f():\n    from dchoices import plots", {"__init__.py", "plots.py"}),
        ("%pylab inline\nif 1:\n    %time x = 1\n!ls\nimport dchoices.plots", {"__init__.py", "plots.py"}),
        ("%%bash\necho 'import dchoices'", set()),
    ],
)  # fmt: skip
def test_notebook_closure(lib, tmp_path, code, found):
    assert names(lib, notebook(tmp_path, code)) == found


def test_star_import_takes_all_exports(lib, tmp_path):
    assert {"simulation.py", "theory/fluid.py"} <= names(lib, notebook(tmp_path, "from dchoices import *"))


def test_module_closure_includes_itself_and_its_main(lib):
    assert names(lib, "dchoices.claims") == {
        "__init__.py", "claims/__init__.py", "claims/__main__.py", "claims/limit.py",
        "datasets.py", "registry.py", "starts.py",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("target", "message"),
    [("dchoices.nothing", "dchoices.nothing: no such module"), ("nothing.ipynb", "cannot be read")],
)
def test_unknown_targets_are_refused(lib, target, message):
    with pytest.raises(ClosureError, match=message):
        closure(target, lib)


def test_broken_cell_is_named(lib, tmp_path):
    with pytest.raises(ClosureError, match=r"question.ipynb, cell 3: line 2"):
        closure(notebook(tmp_path, "x = 1", "x = 1\ny = ("), lib)


def test_export_to_a_missing_module_is_refused(lib, tmp_path):
    (lib / "dchoices" / "simulation.py").unlink()
    with pytest.raises(ClosureError, match=r"dchoices.simulation: no such module"):
        closure(notebook(tmp_path, "import dchoices as dc\ndc.simulate"), lib)


def test_hash_of_modules_is_of_names_and_contents(tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("x = 1")
    two.write_text("x = 1")
    assert code_hash([one]) != code_hash([two])
    before = code_hash([one, two])
    assert before == code_hash([two, one])
    two.write_text("x = 2")
    assert before != code_hash([one, two])


def test_hash_of_a_notebook_leaves_out_its_outputs(tmp_path):
    before = code_hash([notebook(tmp_path, "x = 1", tags=["parameters"])])
    assert before == code_hash([notebook(tmp_path, "x = 1", tags=["parameters"], outputs=[{"text": "1"}])])
    assert before != code_hash([notebook(tmp_path, "x = 1")])
    assert before != code_hash([notebook(tmp_path, "x = 2", tags=["parameters"])])


def test_the_real_package(monkeypatch):
    """An edited plot must rerun no simulation, and an edited kernel the notebooks that use it."""
    monkeypatch.chdir(ROOT)
    studies = {name: {found.as_posix() for found in closure(f"notebooks/{name}.ipynb")} for name in STUDIES}
    for files in studies.values():
        assert not any("/plots" in path or "/claims" in path or "/report" in path for path in files)
    for kernel in ("memory", "memoryless"):
        assert {study for study, files in studies.items() if f"lib/dchoices/kernels/{kernel}.py" in files} == {
            "trajectories",
            "ladder",
            "concentration",
            "stationary",
            "policies",
            "heavy_traffic",
            "constant_d",
            "recursion",
            "service",
            "finite_size",
            "fluctuations",
            "replacement",
        }


def test_the_policies_that_a_notebook_registers_are_read_and_not_run(tmp_path):
    cells = [
        "def f(at_least, d, rng):\n    return 0\n",
        "dc.register_policy('a', f, 0)\n%matplotlib inline\ndc.register_policy(name='b', choose=f, takes_d=False)",
        "from dchoices import register_policy\nregister_policy('c', f, 1, 'said', False)",
        "other.register_policy('d', f, 1)",
        "name = 'e'\ndc.register_policy(name, f, 1)",
    ]
    path = notebook(tmp_path, *cells)
    assert registered_policies(path) == {"a": True, "b": False, "c": False}
