"""The notebook runner, on tiny notebooks run as the workflow runs them: all at once, as processes."""

import subprocess
import sys
import threading
from pathlib import Path

import nbformat
import pytest
from dchoices.workflow.run_notebook import RunError, _alone, run

PARAMETERS = "scale = 2\nnames = ['a']\noutput = ''"
WRITE = "from pathlib import Path\nPath(output).write_text(f'{scale} {names}')"
CELLS = {
    "good": (PARAMETERS, "print('half way')", WRITE),
    "failing": (PARAMETERS, "def inner():\n    raise RuntimeError('no convergence')", "inner()", WRITE),
    "killed": (PARAMETERS, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", WRITE),
    "silent": (PARAMETERS, "pass"),
    "careless": (PARAMETERS, "import numpy as np\nnp.array([1e308]) * 10", WRITE),
}
KERNEL = {"name": "python3", "language": "python", "display_name": "Python 3"}


def write_notebook(path, cells):
    parameters, *rest = cells
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNEL})
    notebook.cells.append(nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in rest]
    nbformat.write(notebook, path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run every notebook at the same time in one folder; name -> (folder, exit code, log)."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "parameters.yaml").write_text("scale: 0.1\nnames: [x, y]\n")
    (folder / "silent.nc").write_text("from an earlier run")
    started = {}
    for name, cells in CELLS.items():
        write_notebook(folder / f"{name}.ipynb", cells)
        command = [sys.executable, "-m", "dchoices.workflow.run_notebook", f"{name}.ipynb", "parameters.yaml"]
        command += [f"{name}.nc", "--log-notebook", f"logs/{name}.ipynb"]
        started[name] = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    logs = {name: process.communicate(timeout=120)[0] for name, process in started.items()}
    return {name: (folder, process.returncode, logs[name]) for name, process in started.items()}


def executed(folder, name):
    return nbformat.read(folder / "logs" / f"{name}.ipynb", 4)


def test_good_run_writes_its_dataset_and_keeps_its_notebook(runs):
    folder, code, log = runs["good"]
    assert code == 0, log
    assert (folder / "good.nc").read_text() == "0.1 ['x', 'y']"
    assert "half way" in log
    assert "good.nc: written in" in log
    assert executed(folder, "good").cells[2].outputs[0].text == "half way\n"


def test_failed_cell_leaves_the_notebook_and_a_readable_log(runs):
    folder, code, log = runs["failing"]
    assert code == 1
    assert "RuntimeError: no convergence" in log
    assert "\x1b" not in log
    assert log.endswith("failing.ipynb: failed, see logs/failing.ipynb\n")
    assert not (folder / "failing.nc").exists()
    outputs = [output for cell in executed(folder, "failing").cells for output in cell.get("outputs", [])]
    assert [output.evalue for output in outputs if output.output_type == "error"] == ["no convergence"]


def test_a_number_that_goes_wrong_stops_the_run(runs):
    folder, code, log = runs["careless"]
    assert code == 1
    assert "RuntimeWarning: overflow encountered in multiply" in log
    assert not (folder / "careless.nc").exists()


def test_killed_kernel_is_an_error(runs):
    folder, code, log = runs["killed"]
    assert code == 1
    assert "DeadKernelError" in log
    assert not (folder / "killed.nc").exists()
    assert executed(folder, "killed").cells


def test_a_run_must_write_its_dataset(runs):
    _, code, log = runs["silent"]
    assert code == 2
    assert log == "silent.ipynb: ran to its end, but did not write silent.nc\n"


def test_kernels_leave_nothing_behind(runs):
    folder, *_ = runs["good"]
    assert not list(folder.glob("*ipc*"))


@pytest.mark.parametrize(
    ("cell", "given", "message"),
    [
        (
            PARAMETERS,
            "scale: 1\nnames: [x]\nname: x",
            "p.yaml: unknown parameter name; n.ipynb takes ",
        ),
        (PARAMETERS, "scale: 1", "p.yaml: missing parameter names; n.ipynb takes names, output, scale"),
        (PARAMETERS, "- scale", "p.yaml: must be a mapping"),
        (PARAMETERS, "{", "p.yaml: is no valid YAML"),
        ("scale = 1", "scale: 2", "n.ipynb: its parameters cell must have 'output'"),
        ("pass", "scale: 2", "n.ipynb: has no cell tagged 'parameters' with assignments"),
    ],
)
def test_wrong_parameters_are_refused_in_one_line(tmp_path, monkeypatch, cell, given, message):
    monkeypatch.chdir(tmp_path)
    write_notebook(tmp_path / "n.ipynb", [cell])
    (tmp_path / "p.yaml").write_text(given)
    with pytest.raises(RunError) as caught:
        run(Path("n.ipynb"), Path("p.yaml"), Path("n.nc"), Path("log.ipynb"))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "log.ipynb").exists()


def test_second_run_for_the_same_result_waits(tmp_path, capsys):
    done = []

    def second():
        with _alone(tmp_path / "lock"):
            done.append("second")

    with _alone(tmp_path / "lock"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(timeout=0.2)
        assert thread.is_alive()
        done.append("first")
    thread.join(timeout=10)
    assert done == ["first", "second"]
    assert "Waiting for another run" in capsys.readouterr().out
