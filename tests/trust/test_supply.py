"""What the study is made with: packages pinned by hash, installed from nothing but the lock, under known licences."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from dchoices.report import licences
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from whole_runs import ROOT

pytestmark = pytest.mark.trust

LOCK = ROOT / "requirements.lock"
# What a Python installed from the lock has to pass: kernels, streams, closed forms, files, configuration, claims.
CORE = ("kernels", "test_streams.py", "theory/test_closed_forms.py", "test_datasets.py", "workflow/test_config.py",
        "claims/test_engine.py")  # fmt: skip


def pins():
    """Return the entries of the lock: requirement line -> its hashes."""
    joined = re.sub(r"\s*\\\n\s*", " ", LOCK.read_text())
    lines = [line.split(" --hash=") for line in joined.splitlines() if not line.lstrip().startswith("#")]
    return {line[0]: line[1:] for line in lines}


def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    return {canonicalize_name(Requirement(line).name) for part in (project["dependencies"], *extras) for line in part}


def interpreter(version):
    """Return a Python of this version, on the path or kept by pyenv; shims that lead nowhere are passed over."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python")
    for candidate in (sys.executable, shutil.which(f"python{version}"), *sorted(kept)):
        said = candidate and subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False)
        if said and said.stdout.startswith(f"Python {version}."):
            return candidate
    raise RuntimeError(f"Python {version} is needed: install it, or put python{version} on the path")


def test_every_package_is_pinned_once_for_every_python_and_has_hashes():
    requirements = [Requirement(line) for line in pins()]
    for requirement in requirements:
        assert re.fullmatch(r"==[^,*]+", str(requirement.specifier)), requirement
    assert all(hashes and all(h.startswith("sha256:") for h in hashes) for hashes in pins().values())
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    versions = {str(requirement.specifier) for requirement in requirements if requirement.name == "numpy"}
    assert len(versions) == 1
    assert declared() <= set(names)


def test_the_lock_names_no_index_and_conda_users_get_the_same():
    assert "://" not in LOCK.read_text()
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert {"pip": ["-r requirements.lock"]} in environment["dependencies"]


def test_what_a_run_needs_is_in_the_lock():
    assert licences.needed() <= {canonicalize_name(Requirement(line).name) for line in pins()}


def test_every_licence_is_known():
    known = re.compile(r"0BSD|Apache|BSD|CC0|CC-BY-4\.0|GPL|ISC|MIT|MPL|PSF|Public Domain|Zlib")
    listed = licences.by_licence()
    assert [name for name in listed if not known.search(name)] == []
    assert sum(map(len, listed.values())) == len(licences.needed()) > 50
    assert licences.licence("pypandoc-binary") == "MIT, with pandoc under GPL-2.0-or-later"


# The Python that runs these tests stands for its own version: its packages are those of the lock (below).
OTHERS = [version for version in ("3.11", "3.13") if version != "{}.{}".format(*sys.version_info)]


@pytest.mark.parametrize("version", OTHERS)
def test_an_empty_environment_is_made_from_the_lock_alone(version, tmp_path):
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([interpreter(version), "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, "--require-hashes"]
    subprocess.run([*install, "-r", LOCK], check=True)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "lib"), "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "auto", "--dist", "loadfile"]
    ran = subprocess.run(
        [*command, *(f"tests/{name}" for name in CORE)],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert " passed" in ran.stdout


def test_an_altered_package_is_refused(tmp_path):
    """The hash decides: the same lock with one digit changed installs nothing."""
    name, hashes = next((line, found) for line, found in pins().items() if line.startswith("six=="))
    wrong = tmp_path / "requirements.lock"
    wrong.write_text(f"{name} --hash=sha256:{'0' * 64}\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    command = [sys.executable, "-m", "uv", "pip", "install", "--python", tmp_path / "venv/bin/python"]
    ran = subprocess.run([*command, "--require-hashes", "-r", wrong], capture_output=True, text=True, check=False)
    assert hashes
    assert ran.returncode != 0
    assert "ash mismatch" in ran.stderr
    assert not list((tmp_path / "venv").glob("lib/*/site-packages/six*"))


def test_versions_here_are_those_of_the_lock():
    for line in pins():
        requirement = Requirement(line)
        if not requirement.marker or requirement.marker.evaluate():
            assert metadata.version(requirement.name) in requirement.specifier, requirement
