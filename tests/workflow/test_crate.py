"""The archive of a run: every file with its hash, described as the profile asks for, and enough to run it again."""

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path

import pytest
from dchoices.workflow import crate
from made_up_study import claims, study, write
from whole_runs import ROOT, SMOKE, copy_project, snakemake

VALIDATOR = ROOT / "tests" / "validator"
BESIDE = ("README.md", "LICENSE", "CITATION.cff", "requirements.lock", "pyproject.toml", "environment.yml", "Makefile")
METADATA = "ro-crate-metadata.json"
REPORT = ("report.html", "report.pdf", "claims.md", "main-figure.svg")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A copy of the project with a made-up run of the smoke profile."""
    folder = copy_project(tmp_path_factory.mktemp("finished"))
    for name in BESIDE:
        shutil.copy2(ROOT / name, folder)
    shutil.copytree(ROOT / "data" / "reference", folder / "data" / "reference")
    write(folder / "data" / "smoke", study(d=(2,), loads=(0.3, 0.9)), claims())
    (folder / "data" / "smoke" / "verdict.txt").write_text("1 pass\n")
    (folder / "report" / "build" / "smoke").mkdir(parents=True)
    for name in REPORT:
        (folder / "report" / "build" / "smoke" / name).write_text(name)
    return folder


@pytest.fixture
def project(finished, tmp_path, monkeypatch):
    """A copy of it, in which commands run."""
    folder = shutil.copytree(finished, tmp_path / "project")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def archive(project):
    return crate.write(Path(SMOKE))


def graph(archive):
    """Return what the archive says of each of its entities."""
    with zipfile.ZipFile(archive) as file:
        described = json.loads(file.read(METADATA))
    return {entity["@id"]: entity for entity in described["@graph"]}


def ids(values):
    return [value["@id"] for value in (values if isinstance(values, list) else [values])]


def test_every_file_is_described_with_its_hash(archive, project):
    entities = graph(archive)
    with zipfile.ZipFile(archive) as file:
        names = set(file.namelist())
        for name in names - {METADATA, "ro-crate-preview.html"}:
            assert entities[name]["sha256"] == hashlib.sha256(file.read(name)).hexdigest(), name
            assert entities[name]["contentSize"] == str(file.getinfo(name).file_size), name
    there = {"Snakefile", "requirements.lock", "LICENSE", "notebooks/fluid.ipynb", "lib/dchoices/kernels/memory.py",
             "config/smoke.yaml", "profiles/default/config.yaml", "report/report.md", "data/smoke/stationary.nc",
             "data/smoke/claims.json", "report/build/smoke/report.pdf", "data/reference/smoke/hashes.json"}  # fmt: skip
    assert there <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".tmp")]
    assert not list(project.rglob("*.tmp"))


def test_the_run_says_what_it_took_and_made(archive):
    entities = graph(archive)
    root, action, workflow = entities["./"], entities["#smoke"], entities["Snakefile"]
    assert ids(root["mainEntity"]) == ids(action["instrument"]) == ["Snakefile"]
    assert ids(root["mentions"]) == ["#smoke"]
    assert ids(root["license"]) == ["https://spdx.org/licenses/MIT"]
    assert "https://doi.org/10.1287/moor.2019.1014" in ids(root["citation"])
    assert ids(action["object"]) == [SMOKE]
    assert ids(entities[SMOKE]["exampleOfWork"]) == ids(workflow["input"])
    assert {"data/smoke/stationary.nc", "data/smoke/claims.json"} <= set(ids(action["result"]))
    assert len(ids(action["result"])) == len(ids(workflow["output"]))
    assert action["startTime"] < action["endTime"]
    assert entities["data/smoke/stationary.nc"]["identifier"].startswith("content_hash=")


def test_a_configuration_from_elsewhere_is_packed_with_the_others(project, tmp_path, capsys):
    shutil.copy(project / SMOKE, tmp_path / "mine.yaml")
    assert crate.main([str(tmp_path / "mine.yaml")]) == 0
    assert capsys.readouterr().out == "report/build/smoke/crate.zip\n"
    assert ids(graph("report/build/smoke/crate.zip")["#smoke"]["object"]) == ["config/mine.yaml"]


@pytest.mark.parametrize(
    ("config", "spoil", "line"),
    [
        (SMOKE, "data/smoke/verdict.txt", "data/smoke/verdict.txt: is missing: a run must have ended"),
        (SMOKE, "data/smoke/fluid.nc", "data/smoke/fluid.nc: is missing: a run must have ended"),
        ("config/none.yaml", None, "config/none.yaml: cannot be read: No such file or directory"),
        ("config/paper.yaml", None, "data/paper/trajectories.nc: is missing: a run must have ended"),
    ],
)
def test_what_cannot_be_packed_is_named(config, spoil, line, project, capsys):
    if spoil:
        (project / spoil).unlink()
    assert crate.main([config]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(line)
    assert err.count("\n") == 1
    assert not list(project.rglob("crate.zip*"))


def test_a_damaged_dataset_is_not_packed(project, capsys):
    path = project / "data/smoke/fluid.nc"
    path.write_bytes(path.read_bytes()[:-100])
    assert crate.main([SMOKE]) == 2
    assert capsys.readouterr().err.startswith("data/smoke/fluid.nc: cannot be read")
    assert not list(project.rglob("crate.zip*"))


@pytest.fixture(scope="module")
def validators(tmp_path_factory):
    """The programs that know the schemas, in an environment of their own."""
    venv = tmp_path_factory.mktemp("validators") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", venv / "bin" / "python"]
    subprocess.run([*install, "--require-hashes", "-r", VALIDATOR / "requirements.lock"], check=True)
    return venv / "bin"


@pytest.mark.slow
def test_the_archive_keeps_to_its_profile(validators, archive, tmp_path):
    def validate(path):
        context = resources.files("rocrate") / "data" / "ro-crate.jsonld"
        command = [validators / "python", VALIDATOR / "validate.py", path, context]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    good = validate(archive)
    assert good.returncode == 0, good.stdout + good.stderr
    spoilt = tmp_path / "spoilt.zip"
    with zipfile.ZipFile(archive) as file, zipfile.ZipFile(spoilt, "w") as other:
        for name in file.namelist():
            content = file.read(name)
            other.writestr(name, content.replace(b'"instrument"', b'"tool"') if name == METADATA else content)
    assert "must have an instrument" in validate(spoilt).stdout.replace("MUST", "must")


@pytest.mark.slow
def test_the_citation_is_valid(validators, tmp_path):
    def validate(path):
        return subprocess.run([validators / "cffconvert", "--validate", "-i", path], capture_output=True, check=False)

    assert validate(ROOT / "CITATION.cff").returncode == 0
    spoilt = tmp_path / "CITATION.cff"
    spoilt.write_text((ROOT / "CITATION.cff").read_text().replace("title:", "titel:"))
    assert validate(spoilt).returncode != 0


@pytest.mark.slow
def test_the_unpacked_archive_runs_to_the_same_data(archive, tmp_path):
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path / "unpacked")
    shutil.rmtree(tmp_path / "unpacked" / "data" / "smoke")
    ran = snakemake(tmp_path / "unpacked", "datasets")
    assert ran.returncode == 0, ran.stdout[-3000:]
    verify = [sys.executable, "-m", "dchoices.workflow.verify", "data/smoke", "data/reference/smoke"]
    same = subprocess.run(verify, cwd=tmp_path / "unpacked", capture_output=True, text=True, check=False)
    assert same.returncode == 0, same.stderr
