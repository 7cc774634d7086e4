"""Bad input: whatever a configuration holds, it is a plan, or one clear line, and nothing is written."""

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import dchoices as dc
import nbformat
import pytest
import xarray as xr
import yaml
from dchoices import datasets, tables
from dchoices.claims import engine
from dchoices.report import __main__ as report
from dchoices.workflow import config, estimates, run_notebook, verdict
from hypothesis import given, settings
from hypothesis import strategies as st
from trust_limits import PATIENCE, no_hang
from whole_runs import ROOT, copy_project

pytestmark = pytest.mark.trust

PROFILES = [ROOT / "config" / f"{name}.yaml" for name in ("smoke", "paper")]
VALID = [json.loads(json.dumps(yaml.safe_load(path.read_text("utf-8")))) for path in PROFILES]  # no list comes twice

# --- what goes wrong ----------------------------------------------------------------------------------------------

NUMBERS = [
    0, -1, 1, 2, 3, -0.0, 0.5, 1.0, 1.5, 1e-300, 5e-324, 1e300, -1e300, 1 - 2.0**-53, 1e-9, 1e5, 10**4, 10**10, 10**15,
    10**30, 10**100, 2**63, 2**63 - 1, -(2**63), 10**308, 10**309, float("inf"), -float("inf"), float("nan"), True,
    False,
]  # fmt: skip
TEXTS = [
    "", " ", "a\nb", "ab\n", "\n", "'", '"', "'; touch x; '", '"""', "../../x", "/etc/passwd", "a/b", "..", ".", "-rf",
    "$(touch x)", "`touch x`", "; touch x", "| touch x", "{input}", "{{}}", "{wildcards.part}", "\\", "\\n", "%s", "~",
    "\u202eabc", "\u2028", "\x1b[31m", "\x07", "λ=1", "d=1,N=2", "__import__('os')", "exec", "print", "None", "yes",
    "reference", "empty", "sq", "sq-memory\n", "random-13", "fixed-point", "overloaded-99", "overloaded-3\n", "1e5",
    "\ud7ff", "x" * 300, "x" * 10_000, "{{", "}}", "{params.text}", "*", "?1 + 1", "&a", "!!int 1", "2020-01-01",
]  # fmt: skip
SHAPES = [
    None, [], [[]], [[[]]], {}, [{}], {"a": 1}, [1, 1], [1, 1.0], [0.5, 0.5], [None], [1, "1", None, True], {"": 0},
    [0.5, "a", [1], {"b": 2}], list(range(1, 1001)), list(range(1, 1002)), [[1, 0], [0, 1]], {"$(touch x)": 1},
    {"a\nb": 1}, [k / 5000 for k in range(1, 3000)], [1e-9 * k for k in range(1, 1000)], {"../x": {"..": 1}},
]  # fmt: skip
# As they stand in the file, where a value was: what no value of Python is dumped as.
RAW = [
    "!!python/object/apply:os.system ['touch x']", "!!python/name:os.system", "!!python/object:os.x {}", "!!int x",
    "!!bool x", "!!timestamp x", "!!binary x", "!!set {a, b}", "!!omap [a: 1]", "!!float x", "!mine 1", "! 1",
    "&cycle [*cycle]", "&cycle {a: *cycle}", "&cycle [1, {a: [*cycle]}]", "*nowhere", "{[1, 2]: 3}", "{{a: 1}: 2}",
    "{null: 1}", "{1: 2}", "{true: 1}", "{1.5: 1}", "{a: 1, a: 2}", "{<<: 1}", "{<<: [1]}", "{<<: &cycle {<<: *cycle}}",
    "? [a]", "0x_", "0b_", "0b2", "0x" + "f" * 50, "0x" + "f" * 5000, "9" * 5000, "1:99:99", ":".join(["1"] * 3000),
    ".inf", "-.inf", ".nan", "1.0e+400", "1.0e-400", "2020-13-45", "2020-01-01", "=", "<<", "@", "`", "%", "|", ">",
    "[" * 30 + "]" * 30, "[" * 5000 + "]" * 5000, "{a: " * 3000 + "1" + "}" * 3000, "[1, 2", "{a: 1", "'", '"', "]",
    "&a [1, 2, *b]", "- - -", "\t", "\u0085", "\x00", "\ufeff", "\ufffe", "a: b: c", "*", "&", "!", "!!", "---", "...",
    "[" + ", ".join(f"&a{k} [" + ", ".join([f"*a{k - 1}"] * 9) + "]" if k else "&a0 [1]" for k in range(20)) + "]",
    "[" + ",".join(["1"] * 20_000) + "]", "[" + ",".join(["0.5"] * 150_000) + "]", "# all that follows\n  # is gone",
]  # fmt: skip
# All there is of a file.
FILES = {
    "empty": b"", "blank": b" \n\n", "comment": b"# nothing\n", "no UTF-8": b"profile: \xff\xfe\n", "NUL": b"a: \0\n",
    "UTF-16": "profile: a\n".encode("utf-16"), "scalar": b"1\n", "text": b"profile\n", "list": b"- profile\n",
    "two documents": b"a: 1\n---\nb: 2\n", "tab": b"a:\n\t- 1\n", "JSON": b'{"profile": "a", "profile": "b"}',
    "template": b"__use_yte__: true\nprofile: ?open('x', 'w').name\n", "binary": bytes(range(256)),
    "many laughs": b"a0: &a0 [1, 1]\n" + b"".join(b"a%d: &a%d [%s]\n" % (k, k, b", ".join([b"*a%d" % (k - 1)] * 9))
                                                 for k in range(1, 30)),
    "cycle": b"studies: &a\n  studies: *a\n", "cyclic merge": b"a: &a\n  <<: *a\n", "huge": b"a" * 1_000_000,
    "deep": b"[" * 100_000, "deep block": b"".join(b" " * k + b"a:\n" for k in range(400)), "many": b"- 1\n" * 40_000,
    "list as key": b"? [1, 2]\n: 3\n", "mapping as key": b"? {a: 1}\n: 3\n", "none as key": b"null: 1\n",
    "int": b"7: 1\n",
}  # fmt: skip


def places(value, path=()):
    """Yield the paths to everything in a configuration, but itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def at(content, path):
    for step in path:
        content = content[step]
    return content


class Changed(NamedTuple):
    """A configuration with some changes, and where they are."""

    content: bytes
    places: list

    def __repr__(self):
        return f"{self.content[:2000]!r}, changed at {self.places}"


@st.composite
def mutated(draw):
    content, raw, changed = copy.deepcopy(draw(st.sampled_from(VALID))), {}, []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        path = draw(st.sampled_from(list(places(content))))
        place, key = at(content, path[:-1]), path[-1]
        kind = draw(st.sampled_from(["value", "value", "value", "raw", "remove", "rename", "add", "double", "swap"]))
        if kind == "value":
            place[key] = copy.deepcopy(
                draw(st.sampled_from(NUMBERS) | st.sampled_from(TEXTS) | st.sampled_from(SHAPES))
            )
        elif kind == "raw":
            token = f"RAW{len(raw)}WAR"
            raw[token], place[key] = draw(st.sampled_from(RAW)), token
        elif kind == "remove":
            del place[key]
        elif kind == "swap":
            place[key] = copy.deepcopy(at(content, draw(st.sampled_from(list(places(content))))))
        elif isinstance(place, list):
            place.insert(key, copy.deepcopy(place[key]))
        elif kind == "double":
            token = f"RAW{len(raw)}WAR"
            raw[f"{token}: 0"], place[token] = f"{key}: 1", 0
        else:
            name = draw(st.sampled_from([*TEXTS, *NUMBERS, None, "d", "lam", "seed", "split"]))
            place[name] = place.pop(key) if kind == "rename" else copy.deepcopy(draw(st.sampled_from(NUMBERS + SHAPES)))
        changed.append(path)
    text = yaml.safe_dump(content, allow_unicode=True, default_flow_style=None, sort_keys=False, width=10**6)
    for token, value in raw.items():
        text = text.replace(token, value)
    return Changed(text.encode("utf-8", "surrogatepass"), changed)


def assert_one_line(text, start):
    """A refusal: one line that a terminal shows as one, that begins with the file and says what is allowed."""
    assert text.endswith("\n")
    line = text[:-1]
    assert line.isprintable(), repr(line)
    assert line.startswith(start)
    assert len(line) < 1000
    assert re.search(r"must|is no valid YAML|cannot be read|unknown key", line), line


def assert_sound(plan):
    """A plan that may run: names that are plain path components, parameters that survive their file, bounded costs."""
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,49}", plan.profile)
    assert plan.profile != "reference"
    for job in plan.jobs.values():
        assert re.fullmatch(r"[a-z_]+/(all|(d|lam|N)=[0-9.e+-]+(,(d|lam|N)=[0-9.e+-]+)*)", job.name)
        assert yaml.safe_load(job.as_yaml()) == job.parameters
        assert estimates.estimated_points(job.study, job.parameters) <= 1e7
    assert sum(map(plan.events, plan.studies)) <= len(plan.studies) * config.MAX_EVENTS


# --- the configuration --------------------------------------------------------------------------------------------


def test_a_changed_configuration_is_a_plan_or_one_line(tmp_path, monkeypatch, capsys, soak):
    monkeypatch.chdir(tmp_path)
    outcomes = {}

    @settings(max_examples=20_000 if soak else 350)
    @given(mutated())
    def check(case):
        content, changed = case
        Path("changed.yaml").write_bytes(content)
        with no_hang():
            code = config.main(["changed.yaml"])
        out, err = capsys.readouterr()
        assert os.listdir() == ["changed.yaml"], "something was written"
        outcomes[content] = code
        if code == 0:
            assert err == ""
            assert_sound(config.make_plan(config.read("changed.yaml")))
            return
        assert (code, out) == (2, "")
        assert_one_line(err, "changed.yaml: ")
        fields = {path[min(1, len(path) - 1)] for path in changed}
        of_the_file = re.match(r"changed.yaml: (line|the file|is no valid|more than)", err)
        if not of_the_file and all(isinstance(x, str) for x in fields):
            shared = fields & {"trajectories", "fluid"}  # which have to agree
            assert any(field in err or repr(field)[1:20] in err for field in fields) or (shared and "fluid" in err), err

    check()
    refused = sum(code == 2 for code in outcomes.values())
    print(f"{len(outcomes)} configurations, {refused} refused")
    assert len(outcomes) >= 300
    assert min(refused, len(outcomes) - refused) >= 10, "both must come up"


@pytest.mark.parametrize("name", FILES)
def test_an_odd_file_is_refused_with_one_line(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("odd.yaml").write_bytes(FILES[name])
    with no_hang():
        assert config.main(["odd.yaml"]) == 2
    out, err = capsys.readouterr()
    assert (out, os.listdir()) == ("", ["odd.yaml"])
    assert_one_line(err, "odd.yaml: ")


# --- the command line ---------------------------------------------------------------------------------------------


def with_value(path, value):
    """Return the text of the smoke profile with one value replaced, or raw text in its place."""
    content = copy.deepcopy(VALID[0])
    at(content, path[:-1])[path[-1]] = "RAW" if isinstance(value, bytes) else value
    text = yaml.safe_dump(content, allow_unicode=True, default_flow_style=None, sort_keys=False).encode()
    return text.replace(b"RAW", value) if isinstance(value, bytes) else text


T = ("studies", "trajectories")
# What Snakemake itself reads without complaint, and what it does not.
READ = {
    "profile outside": with_value(("profile",), "../../outside"),
    "profile with a newline": with_value(("profile",), "ab\n"),
    "profile as a command": with_value(("profile",), "$(touch x)"),
    "profile with braces": with_value(("profile",), "{input}"),
    "split by a path": with_value((*T, "split"), ["../../d"]),
    "load too high": with_value((*T, "lam"), [0.5, 1.2]),
    "text for a number": with_value((*T, "t_end"), "__import__('os').system('touch x')"),
    "newline in a start": with_value(("studies", "ladder", "starts"), ["overloaded-3\n"]),
    "a year of simulation": with_value((*T, "N"), [10**10 - k for k in range(1000)]),
    "a year of fixed points": with_value(("studies", "fixed_points"), {"d": list(range(1, 1001)), "lam_points": 10**6}),
    "infinite": with_value((*T, "t_end"), float("inf")),
    "key twice": with_value((*T, "d"), b"[1]\n    d: [2]"),
    "unknown key": with_value((*T, "$(touch x)"), 1),
    "int as key": with_value((*T, "t_end"), b"{1: 2}"),
    "date": with_value(("seed",), b"2020-01-01"),
    "empty lists": with_value((*T, "lam"), []),
}
UNREADABLE = {name: FILES[name] for name in ("list as key", "scalar", "NUL", "tab", "empty")}


def run_module(folder, *command):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE * 5,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return copy_project(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("name", [*READ, *UNREADABLE])
def test_the_command_line_refuses_with_one_line(name, project):
    content = {**READ, **UNREADABLE}[name]
    path = project / "config" / f"{name.replace(' ', '-')}.yaml"
    path.write_bytes(content)
    relative = f"config/{path.name}"
    checked = run_module(project, "dchoices.workflow.config", relative)
    assert (checked.returncode, checked.stdout) == (2, "")
    assert_one_line(checked.stderr, f"{relative}: ")
    planned = run_module(project, "snakemake", "--dry-run", "--configfile", relative)
    assert planned.returncode != 0
    if name in READ:
        field, allowed = re.match(r"(.*?)(?: = .*?)?(: .*)", checked.stderr.removeprefix(f"{relative}: ")).groups()
        assert f"{relative}: {field}" in planned.stdout + planned.stderr
        assert allowed.strip() in planned.stdout + planned.stderr  # the value may look different: Snakemake reads dates
        assert "Traceback" not in planned.stderr + planned.stdout
    assert not (project / "data").exists()
    assert not (project / "report" / "build").exists()
    assert not list(project.rglob("x"))


# --- parameters ---------------------------------------------------------------------------------------------------

# Text that would end a literal, a command or a template, on its way from a plan to a cell of a notebook.
HOSTILE = [
    *TEXTS, "\"\"\"", "x\\", "\\\"; open('x', 'w') #", "\r\n\t", "open('x', 'w')", "\U0001f600", 0.1, -0.0, 5e-324,
    2**63 - 1, None, True, [[], {}], {"a'\"\\\n": ["{x}"], "$(touch x)": {"`touch x`": 1}},
]  # fmt: skip


def test_parameters_arrive_as_they_were_sent_and_nothing_is_run(tmp_path):
    """By the rule of the Snakefile, its shell, papermill, and Python's reading of the cell that papermill writes."""
    rule = re.search(r'rule parameters:.*?shell:\n\s+"(.*?)"\n', (ROOT / "Snakefile").read_text("utf-8"), re.S)[1]
    job = config.Job("a", "all", {"value": HOSTILE, "seed": 1}, 0.0)
    (tmp_path / "text").write_text(job.as_yaml(), "utf-8")
    (tmp_path / "Snakefile").write_text(
        "rule parameters:\n    output: 'sent.yaml'\n"
        "    params: text=lambda wildcards: open('text', newline='').read()\n"
        f"    message: 'Parameters'\n    shell: {rule!r}\n"
    )
    made = run_module(tmp_path, "snakemake", "--cores", "1")
    assert made.returncode == 0, made.stderr
    write = "import json, pathlib\npathlib.Path(output).write_text(json.dumps(value))"
    metadata = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    notebook = nbformat.v4.new_notebook(metadata=metadata)
    parameters = nbformat.v4.new_code_cell("value = 1\nseed = 1\noutput = ''", metadata={"tags": ["parameters"]})
    notebook.cells = [parameters, nbformat.v4.new_code_cell(write)]
    nbformat.write(notebook, tmp_path / "echo.ipynb")
    run = run_module(
        tmp_path,
        "dchoices.workflow.run_notebook",
        "echo.ipynb",
        "sent.yaml",
        "arrived.json",
        "--log-notebook",
        "log.ipynb",
    )
    assert run.returncode == 0, run.stdout + run.stderr
    arrived = json.loads((tmp_path / "arrived.json").read_text())
    assert json.dumps(arrived, sort_keys=True) == json.dumps(HOSTILE, sort_keys=True)
    assert not list(tmp_path.rglob("x"))


# --- what else is run by a command --------------------------------------------------------------------------------


def commands(folder):
    """Return what the modules of the workflow are given: files that are missing, of another kind, damaged."""
    xr.Dataset({"level": (("d", "λ"), [[1.0]])}, {"d": [1], "λ": [0.5]}).to_netcdf(folder / "foreign.nc")
    ds = dc.bound_grid([0.5, 0.9], [1])
    datasets.write(ds, folder / "good.nc")
    whole = (folder / "good.nc").read_bytes()
    (folder / "cut.nc").write_bytes(whole[: len(whole) // 2])
    (folder / "text.nc").write_text("text")
    contents = {
        "cut": '[{"id"',
        "empty": "[]",
        "number": "[1]",
        "other": '[{"id": "a"}]',
        "mapping": "{}",
        "null": "null",
    }
    for name, text in contents.items():
        (folder / f"{name}.json").write_text(text)
    for name in ("no", "foreign", "cut", "text"):
        yield datasets.main, ["out.nc", f"{name}.nc"]
    yield datasets.main, ["out.nc", "."]
    yield datasets.main, ["out.nc", "good.nc", "good.nc"]
    yield datasets.main, [".", "good.nc"]
    yield datasets.main, ["text.nc/out.nc", "good.nc"]
    yield datasets.main, ["out.nc"]
    for arguments in (
        ["no.nc", "out.csv"],
        ["cut.nc", "out.csv"],
        ["good.nc", "out.txt"],
        ["good.nc", "out.csv", "a\n"],
    ):
        yield tables.main, arguments
    yield tables.main, ["good.nc"]
    for name in ("no", *contents):
        yield verdict.main, [f"{name}.json", "out.txt"]
    yield verdict.main, [".", "out.txt"]
    for folder_name in ("no", ".", "text.nc"):
        yield engine.main, [folder_name, "out.json"]
        yield report.main, ["--data", folder_name, "--template", str(ROOT / "report/report.md"), "--out", "out"]
    yield engine.main, ["no", "text.nc/out.json"]
    yield report.main, ["--data", "no", "--template", "no.md", "--out", "out"]
    fluid = str(ROOT / "notebooks" / "fluid.ipynb")
    for name, content in FILES.items():
        (folder / f"{name}.yaml").write_bytes(content)
        yield run_notebook.main, [fluid, f"{name}.yaml", "out.nc", "--log-notebook", "out.ipynb"]
    for notebook in ("no.ipynb", "cut.json", "text.nc"):
        (folder / "fine.yaml").write_text("d: [1]")
        yield run_notebook.main, [notebook, "fine.yaml", "out.nc", "--log-notebook", "out.ipynb"]


def test_commands_refuse_with_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tried = list(commands(tmp_path))
    before = set(os.listdir())
    for main, arguments in tried:
        with no_hang(arguments):
            code = main(arguments)
        _, err = capsys.readouterr()
        assert code in (1, 2), arguments
        assert err.count("\n") == 1, (arguments, err)
        assert err[:-1].isprintable(), (arguments, err)
    assert set(os.listdir()) == before
