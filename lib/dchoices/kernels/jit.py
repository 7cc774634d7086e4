"""The numba options of every kernel, in one place."""

from numba import njit
from numba.core import config

from dchoices import KERNEL_CACHE

config.CACHE_DIR = str(KERNEL_CACHE)  # type: ignore[attr-defined]

# No fastmath: results must not depend on how a compiler reorders sums. No parallel: one job is one core, and the
# stream of a replicate belongs to the replicate. numpy's error model spares a branch at every division.
kernel = njit(cache=True, nogil=True, error_model="numpy")
# For kernels that call a user's function: a cache cannot tell an edited function from the one it was compiled with.
uncached_kernel = njit(cache=False, nogil=True, error_model="numpy")
