"""Locks of runs that live are kept, those of runs that were killed are not."""

import signal
import subprocess
import sys

from dchoices.workflow.locks import remove_halves, take_over

HOLD = """
import time
from dchoices.workflow.locks import take_over
living = take_over()
print("holds", flush=True)
time.sleep(60)
"""


def test_a_lock_is_taken_over_when_its_run_is_dead_and_only_then(tmp_path):
    folder = tmp_path / ".snakemake"
    lock = folder / "locks" / "0.output.lock"
    with subprocess.Popen([sys.executable, "-c", HOLD], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "holds\n"
        lock.parent.mkdir()
        lock.write_text("data/smoke/fluid.nc")
        take_over(folder).close()
        assert lock.exists()
        other.send_signal(signal.SIGKILL)
        other.wait()
    living = take_over(folder)
    assert not lock.exists()
    lock.write_text("data/smoke/fluid.nc")
    take_over(folder).close()  # now we are the one that lives
    assert lock.exists()
    living.close()


def test_halves_are_removed_and_nothing_else(tmp_path):
    whole = tmp_path / "runs" / "a" / "all.nc"
    whole.parent.mkdir(parents=True)
    whole.write_text("whole")
    (whole.parent / ".all.nc.123.tmp").write_text("ha")
    remove_halves(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [whole]
    remove_halves(tmp_path / "nowhere")
