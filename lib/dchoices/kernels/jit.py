"""The numba options of every kernel, in one place."""

import numba

from dchoices import KERNEL_CACHE

numba.config.CACHE_DIR = str(KERNEL_CACHE)

# No fastmath: results must not depend on how a compiler reorders sums. No parallel: one job is one core, and the
# stream of a replicate belongs to the replicate. numpy's error model spares a branch at every division.
kernel = numba.njit(cache=True, nogil=True, error_model="numpy")
