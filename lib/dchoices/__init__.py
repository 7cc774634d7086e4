"""Power-of-d choices with memory: exact simulation, fluid limit, bounds and claims.

``import dchoices as dc`` gives the public functions listed in `_EXPORTS`. They are loaded on first use, so that
the workflow can read its plan without importing numba or xarray.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from pathlib import Path
from typing import Any

_EXPORTS = {
    "bound_grid": "theory.levels",
    "compare": "comparison",
    "distance_to_fixed_point": "relaxation",
    "distance_to_switch": "theory.closed_forms",
    "exact_stationary": "theory.exact_chain",
    "explore": "plots.explore",
    "fewest_probes": "theory.closed_forms",
    "finite_size": "regimes",
    "fixed_point": "theory.closed_forms",
    "fixed_point_grid": "theory.closed_forms",
    "fluctuations": "variances",
    "fluctuations_below_threshold": "theory.fluctuations",
    "fluid_dispatch": "convergence",
    "fluid_path": "theory.fluid",
    "fluid_paths": "convergence",
    "loads_around_switch": "theory.levels",
    "mixed": "starts",
    "optimality_threshold": "theory.closed_forms",
    "overloaded": "starts",
    "phase_portrait": "portrait",
    "policies": "registry",
    "queue_bound": "theory.closed_forms",
    "random_start": "starts",
    "register_policy": "registry",
    "relaxation_rates": "relaxation",
    "relaxation_time": "theory.spectrum",
    "replacement_gap": "replacement",
    "replacement_limit": "theory.replacement",
    "service_fixed_point": "theory.general_service",
    "service_law": "service",
    "simulate": "simulation",
    "spectral_gap": "theory.spectrum",
    "stale": "starts",
    "stationary": "simulation",
    "step_response": "regimes",
    "sup_distance": "convergence",
    "switch_load": "theory.closed_forms",
    "tail_frequencies": "concentration",
    "to_table": "tables",
    "total_variation": "statistics",
    "uniform": "kernels.sfc64",
}

__all__ = sorted(_EXPORTS)


def _kernel_cache() -> Path:
    """Folder of compiled kernels, keyed by their source: numba itself does not see an edit in an imported file."""
    digest = hashlib.sha256()
    for source in sorted((Path(__file__).parent / "kernels").glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    root = os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).resolve().parents[2] / ".numba_cache"
    return Path(root) / digest.hexdigest()[:16]


KERNEL_CACHE = _kernel_cache()


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)


def __dir__() -> list[str]:
    return __all__
