"""What the Snakefile is made of: the checked plan, import closures, the notebook runner, the verdict."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def without_uri_checks() -> Iterator[None]:
    """Import jsonschema, or what imports it, without the grammar of its URI checks.

    That grammar is compiled on import: two seconds of every `make` and of every notebook, for a format that no
    configuration or notebook uses. A module that is None counts as not installed, which jsonschema allows for.
    """
    blocked = "rfc3987_syntax"
    free = blocked not in sys.modules
    if free:
        sys.modules[blocked] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if free:
            del sys.modules[blocked]
