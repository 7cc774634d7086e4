"""JupyterLab as `make lab` starts it, driven in a real browser that reaches nothing but this machine."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from dchoices.plots import explore
from dchoices.studies import STUDIES

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
PATIENCE = 180  # seconds for what takes a few: the machine may be busy
OPTIONS = "--no-browser --allow-root --LabApp.expose_app_in_browser=True"
READY = "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
# The code cells of the notebook in front: whether all have run, and their errors.
CELLS = """() => {
  const panel = jupyterapp.shell.currentWidget;
  const cells = panel.content.widgets.map(cell => cell.model).filter(cell => cell.type === 'code');
  const errors = cells.flatMap(cell => cell.outputs.toJSON()).filter(output => output.output_type === 'error');
  const ran = cells.every(cell => cell.executionCount !== null) && cells.every(cell => cell.executionState === 'idle');
  return {done: panel.sessionContext.session?.kernel?.status === 'idle' && (ran || errors.length > 0),
          errors: errors.map(error => `${error.ename}: ${error.evalue}`)};
}"""
OPEN = "path => jupyterapp.commands.execute('docmanager:open', {path, factory: 'Notebook'}).then(() => true)"
CLOSE = """async () => {
  const panel = jupyterapp.shell.currentWidget;
  await panel.sessionContext.shutdown();
  await panel.context.save();
  panel.dispose();
}"""
# The shares at the stars of the two figures, that in time first.
STARS = """() => [...(window.Bokeh?.index.query(view => view.model.type === 'Figure') ?? [])]
  .map(view => view.model.renderers.find(one => one.glyph.marker?.value === 'star').data_source.data.share)
  .map(shares => [...shares].filter(share => share > 0)).sort((one, other) => one[0] - other[0])"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab on copies of the notebooks, with no settings but its own."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    shutil.copytree(ROOT / "profiles", folder / "profiles")
    shutil.copy2(ROOT / "Makefile", folder)
    own = {f"JUPYTER_{kind}_DIR": str(folder / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    own |= {"JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"), "IPYTHONDIR": str(folder / "ipython")}
    command = ["make", "-o", "installed", "INSTALLED=installed", f"PY={sys.executable}", f"LAB={OPTIONS}", "lab"]
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(
            command, cwd=folder, env=os.environ | own, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield address(running, folder)
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait(PATIENCE)


def address(running, folder):
    """Wait for a server to write down where it is."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and running.poll() is None:
        for file in (folder / "RUNTIME").glob("jpserver-*.json"):
            found = json.loads(file.read_text("utf-8"))
            return f"{found['url']}?token={found['token']}"
        time.sleep(0.2)
    pytest.fail(f"no JupyterLab: {(folder / 'log').read_text()[-2000:]}")


@pytest.fixture(scope="module")
def page(browser, lab):
    """JupyterLab, as it opens; asking for anything elsewhere fails the test afterwards."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    asked = []

    def local_only(route):
        asked.append(route.request.url)
        route.abort()

    context.route(lambda url: not url.startswith(lab.split("/lab")[0].split("?")[0]), local_only)
    opened = context.new_page()
    opened.set_default_timeout(1000 * PATIENCE)
    opened.goto(lab)
    opened.wait_for_function(READY)
    yield opened
    context.close()
    assert asked == []


def run_all(page):
    """Run all cells by the menu; return the seconds that it takes."""
    started = time.monotonic()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.wait_for_function(f"() => ({CELLS})().done")
    assert page.evaluate(CELLS)["errors"] == []
    return time.monotonic() - started


def test_the_live_notebook_follows_its_sliders(page):
    print(f"explore: {run_all(page):.1f} s", end=" ")
    page.wait_for_function(f"() => ({STARS})().length === 2")
    assert page.evaluate(STARS) == fixed_points(0.9)
    figure = page.locator(".bk-Figure").first
    figure.scroll_into_view_if_needed()
    before, started = figure.screenshot(), time.monotonic()
    page.get_by_role("slider").first.press("ArrowRight")
    page.wait_for_function(f"share => ({STARS})()[1][1] === share", arg=fixed_points(0.91)[1][1], polling=5)
    print(f"redrawn in {time.monotonic() - started:.3f} s", end=" ")
    assert page.evaluate(STARS) == fixed_points(0.91)
    assert figure.screenshot() != before
    assert page.evaluate(CELLS)["errors"] == []


def fixed_points(lam):
    """The shares that the stars of both figures stand at: from one job on, and from none on."""
    tail = explore.tails("sq-memory", 100, 2, lam, "empty", np.array([0.0, 1.0]), seed=1).fixed_point
    drawn = tail.values[tail.values > 0].tolist()
    return [drawn[1:], drawn]


@pytest.mark.parametrize("study", STUDIES)
def test_every_notebook_runs(page, study):
    page.evaluate(OPEN, f"notebooks/{study}.ipynb")
    page.wait_for_function(
        f"name => ({READY})() && jupyterapp.shell.currentWidget.title.label === name", arg=f"{study}.ipynb"
    )
    print(f"{study}: {run_all(page):.1f} s", end=" ")
    page.evaluate(CLOSE)
