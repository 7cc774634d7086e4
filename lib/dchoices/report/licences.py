"""The packages that a run needs, and the licence of each, as their metadata say."""

from __future__ import annotations

from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# What metadata and licence files say, in SPDX's words.
SPDX = {
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "GNU General Public License (GPL)": "GPL",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
BUNDLED = {"pypandoc-binary": "pandoc under GPL-2.0-or-later"}  # programs inside a package


def needed(package: str = "dchoices") -> set[str]:
    """Return the names of what a package requires here, directly or not, without itself."""
    found: set[str] = set()
    waiting = [(canonicalize_name(package), frozenset[str]())]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        for line in metadata.requires(name) or []:
            requirement = Requirement(line)
            if requirement.marker and not any(requirement.marker.evaluate({"extra": e}) for e in {"", *extras}):
                continue
            entry = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            found.add(entry[0])
            if entry not in seen:
                seen.add(entry)
                waiting.append(entry)
    return found


def licence(name: str) -> str:
    """Return the licence of an installed package: what its metadata or the first line of its licence file say."""
    package = metadata.distribution(name)
    expression, free_text, classifiers = (
        package.metadata.get_all(key, []) for key in ("License-Expression", "License", "Classifier")
    )
    kinds = [line.split(" :: ")[-1] for line in classifiers if "License ::" in line]
    files = [file for file in package.files or [] if file.name.startswith("LICENSE")]
    said = (
        *expression,
        " or ".join(SPDX.get(kind, kind) for kind in kinds),
        *free_text,
        *(file.read_text() for file in files),
        "unknown",
    )
    first = next(text for text in said if text).strip().splitlines()[0]
    found = SPDX.get(first, first)
    return f"{found}, with {BUNDLED[name]}" if name in BUNDLED else found


def by_licence() -> dict[str, list[str]]:
    """Return the names of the packages that a run needs, with their versions, by licence."""
    found: dict[str, list[str]] = {}
    for name in sorted(needed()):
        found.setdefault(licence(name), []).append(f"{name} {metadata.version(name)}")
    return dict(sorted(found.items()))
