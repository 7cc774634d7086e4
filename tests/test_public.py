"""The public names, as the README's `import dchoices as dc` gives them."""

import importlib
import pkgutil

import dchoices as dc


def test_every_name_is_there_whatever_was_imported_before():
    """A submodule of the same name would hide a lazily loaded function once it is imported."""
    submodules = {module.name for module in pkgutil.iter_modules(dc.__path__)}
    assert not submodules & set(dc._EXPORTS)
    for name, module in dc._EXPORTS.items():
        importlib.import_module(f"dchoices.{module}")
        assert callable(getattr(dc, name)), name
        assert getattr(dc, name).__doc__, name


def test_policies():
    assert dc.policies() == ["sq", "sq-memory"]
