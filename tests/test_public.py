"""The public names, as the README's `import dchoices as dc` gives them."""

import importlib
import pkgutil

import dchoices as dc
import pytest


def test_every_name_is_there_whatever_was_imported_before():
    """A submodule of the same name would hide a lazily loaded function once it is imported."""
    submodules = {module.name for module in pkgutil.iter_modules(dc.__path__)}
    assert not submodules & set(dc._EXPORTS)
    for name, module in dc._EXPORTS.items():
        importlib.import_module(f"dchoices.{module}")
        assert callable(getattr(dc, name)), name
        assert getattr(dc, name).__doc__, name


@pytest.mark.parametrize(
    "result",
    [
        lambda: dc.fixed_point(0.9, 2),
        lambda: dc.service_fixed_point(0.9, 2, "deterministic"),
        lambda: dc.fixed_point_grid([0.5, 0.9], [1, 2]),
        lambda: dc.fluid_path(0.9, 2, [1.0]),
        lambda: dc.fluid_path(0.9, 2, [1.0], policy="sq"),
        lambda: dc.fluid_paths([0.9], [2], [1.0]),
        lambda: dc.relaxation_rates(0.4, 2),
        lambda: dc.exact_stationary(2, 1, 0.5, 8),
        lambda: dc.simulate("sq", 10, 2, 0.5, [1.0], replicates=1),
        lambda: dc.tail_frequencies(10, 2, 0.5, [1.0], 0.1, replicates=2, perturbation=[0, 1]),
        lambda: dc.stationary("sq-memory", 100, 2, 0.5, warm_up=0.0, horizon=4.0, replicates=2),
    ],
)
def test_every_variable_has_a_unit_and_a_description(result):
    dataset = result()
    for name in dataset.variables:
        assert dataset[name].attrs["units"], name
        assert dataset[name].attrs["description"], name


def test_policies():
    assert dc.policies() == [
        "jiq", "jsq", "random", "sq", "sq-distinct", "sq-log", "sq-memory", "sq-memory-distinct", "sq-sqrt",
    ]  # fmt: skip
