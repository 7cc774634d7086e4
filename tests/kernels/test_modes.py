"""The kernel tests once more without compilation, and compiled with bounds checks: in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).parent
# Without compilation numpy adds uint64 words itself, and warns where they wrap as they should.
OVERFLOW = "ignore:overflow encountered:RuntimeWarning"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_kernels_pass_in_every_mode(mode, tmp_path):
    """A cache of its own: numba would take kernels that were compiled without bounds checks."""
    environment = os.environ | {mode: "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "-W", OVERFLOW,
         *(KERNELS / f"test_{name}.py" for name in ("hybrid", "memory", "memoryless", "sfc64"))],
        env=environment, cwd=KERNELS.parents[1], capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
