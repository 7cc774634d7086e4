"""A wrong program turns a claim red: the mistakes that one would make, each in a copy of the library."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

LIBRARY = Path(__file__).parents[2] / "lib"
LINE, CELLS = "kernels/memory_line.py", "kernels/memory_cells.py"
# What is replaced by what, in which file. The runs below are short enough to stay in the kernel of the line.
MUTATIONS = {
    "nothing": [],
    "memory ignored": [
        ("registry.py", 'then the lowest observation", True, 1, fluid="sq-memory",\n'
         "           fixed_point=closed_forms.fixed_point_state),\n"
         '    Policy("sq-memory-distinct"',
         'then the lowest observation"),\n    Policy("sq-memory-distinct"'),
    ],
    "bound one too high": [("theory/closed_forms.py", "* b\n    return level\n", "* b\n    return level + 1\n")],
    "d ignored": [(LINE, "for _ in range(d):", "for _ in range(1):"), (CELLS, "left = d\n", "left = 1\n")],
    "departures from idle servers": [
        (LINE, "            line[place] = here - ((here & _QUEUE) > 0)\n",
         "            for place in range(place, line.size):  # an idle server passes its departure on\n"
         "                here = np.int64(line[place])\n"
         "                if here & _QUEUE:\n"
         "                    break\n"
         "            line[place] = here - ((here & _QUEUE) > 0)\n"),
    ],
    "ties to the busiest server": [
        (LINE, "        here = np.int64(line[place])\n        line[place] = line[last]\n",
         "        for other in range(end[lowest]):\n"
         "            if line[other] > line[place]:\n"
         "                place = np.uint32(other)\n"
         "        here = np.int64(line[place])\n        line[place] = line[last]\n"),
    ],
}  # fmt: skip
MUST_FAIL = {
    "nothing": set(),
    "memory ignored": {"P2", "P3"},
    "bound one too high": {"P4"},
    "d ignored": {"P2", "P3"},
    "departures from idle servers": {"P3"},
    "ties to the busiest server": {"P3"},
}
CHECK = """
import json
import dchoices as dc
from dchoices.claims import catalogue, engine
runs = dc.stationary(["sq-memory", "sq"], 10_000, 2, [0.4, 0.6, 0.72], 20, 20, replicates=6)
runs.attrs["replicates"] = 6
data = {"stationary": runs, "bound_grid": dc.bound_grid([0.3, 0.6, 0.9], [1, 2, 3])}
verdicts = {entry.id: engine.verdict(list(entry.check(data, engine.CLAIM)))
            for entry in catalogue.CLAIMS if entry.id in ("P2", "P3", "P4")}
print(json.dumps(verdicts))
"""


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_program_turns_a_claim_red(mutation, tmp_path):
    library = tmp_path / "lib"
    shutil.copytree(LIBRARY, library, ignore=shutil.ignore_patterns("__pycache__"))
    for name, right, wrong in MUTATIONS[mutation]:
        source = library / "dchoices" / name
        text = source.read_text("utf-8")
        assert text.count(right) == 1, f"{name} has changed: {right!r}"
        source.write_text(text.replace(right, wrong), "utf-8")
    environment = os.environ | {"PYTHONPATH": str(library), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ran = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True, check=True)
    verdicts = json.loads(ran.stdout)
    if not MUST_FAIL[mutation]:
        assert set(verdicts.values()) == {"pass"}
    assert {name for name, verdict in verdicts.items() if verdict == "fail"} >= MUST_FAIL[mutation], verdicts
