"""What notebooks and modules say of themselves, found by reading them, not by running them.

Import closures are the files of lib/dchoices that a notebook or a module runs. Snakemake does not follow imports: the
closure is what a rule names as its inputs, so that an edited kernel reruns what uses it and an edited plot reruns no
simulation. And the policies that a notebook registers are those that a configuration may ask for.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PACKAGE = "dchoices"
LIB = Path("lib")  # commands of the workflow run in the project's root, and paths stay relative
REGISTER = ("register_policy", "dc.register_policy", "dchoices.register_policy", "registry.register_policy")
MAGIC = re.compile(r"^\s*(?:[\w, ]+=\s*)?[%!].*$|^.*\?\s*$")


class ClosureError(ValueError):
    """A notebook or module that cannot be found or read."""


def closure(target: str | Path, lib: Path = LIB) -> list[Path]:
    """Return the files of the package that a notebook or module imports, directly or not.

    Parameters
    ----------
    target : str or Path
        A notebook ("notebooks/fluid.ipynb"), which is not in the result itself, or a module as `python -m`
        takes it ("dchoices.claims"), which is.
    lib : Path
        The folder that holds the package.

    Returns
    -------
    list of Path
        Sorted, as paths under `lib`.

    Raises
    ------
    ClosureError
        If the target does not exist, or a file on the way is no Python.
    """
    modules = _modules(lib)
    exports = _exports(modules[PACKAGE])
    if str(target).endswith(".ipynb"):
        waiting = _imports(Path(target), "", modules, exports)
    else:
        waiting = set(_with_parents(str(target)))
        if f"{target}.__main__" in modules:
            waiting.add(f"{target}.__main__")
    files: dict[str, Path] = {}
    while waiting:
        module = waiting.pop()
        if module not in modules:
            raise ClosureError(f"{module}: no such module in {lib}, named by {target} or what it imports")
        files[module] = modules[module]
        waiting |= _imports(files[module], module, modules, exports) - files.keys()
    return sorted(files.values())


def code_hash(files: Iterable[Path]) -> str:
    """Return a SHA-256 over the names and contents of files.

    Of a notebook only the sources and tags of its cells count: saving it with other outputs changes nothing.
    """
    digest = hashlib.sha256()
    for path in sorted(map(Path, files)):
        content = _notebook_source(path) if path.suffix == ".ipynb" else path.read_bytes()
        for part in (path.as_posix().encode(), content):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def registered_policies(notebook: Path) -> dict[str, bool]:
    """Return the policies that a notebook registers under a name that it spells out, and whether each takes a d.

    Raises
    ------
    ClosureError
        If it cannot be read, or is no Python.
    """
    nodes = [node for name, source in _sources(notebook) for node in _walk(_parse(name, source))]
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) in REGISTER]
    found = {}
    for call in calls:
        given = dict(zip(("name", "choose", "messages_per_job", "description", "takes_d"), call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        name, takes_d = given.get("name"), given.get("takes_d", ast.Constant(True))
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and isinstance(takes_d, ast.Constant):
            found[name.value] = bool(takes_d.value)
    return found


def _notebook_source(path: Path) -> bytes:
    return json.dumps(list(_cells(path)), ensure_ascii=False).encode()


def _cells(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    try:
        notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
        for cell in notebook["cells"]:
            yield cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("tags", [])
    except OSError as error:
        raise ClosureError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ClosureError(f"{path}: is no notebook of format 4") from None


def _sources(path: Path) -> tuple[tuple[str, str], ...]:
    """Return the code of a module, or of each code cell of a notebook, as (name for messages, source)."""
    if path.suffix != ".ipynb":
        return ((str(path), path.read_text("utf-8")),)
    cells = enumerate(_cells(path), 1)
    return tuple((f"{path}, cell {k}", source) for k, (kind, source, _) in cells if kind == "code")


def _parse(name: str, source: str) -> list[ast.stmt]:
    """Return the statements of a module or cell, IPython's magics left out."""
    with contextlib.suppress(SyntaxError):
        return ast.parse(source).body
    if source.lstrip().startswith("%%") and not re.match(r"\s*%%(time|timeit|capture|prun)\b", source):
        return []  # a cell in another language
    # Keep the indentation: a magic may be all that a block holds.
    plain = (re.sub(r"\S.*", "pass", line) if MAGIC.match(line) else line for line in source.splitlines())
    try:
        return ast.parse("\n".join(plain)).body
    except SyntaxError as error:
        raise ClosureError(f"{name}: line {error.lineno}: {error.msg}") from None


def _modules(lib: Path) -> dict[str, Path]:
    """Return the modules of the package: dotted name -> file."""
    # Of a module and a package with one name Python imports the package: it comes last.
    files = sorted((lib / PACKAGE).rglob("*.py"), key=lambda path: path.name == "__init__.py")
    places = {path: path.parent if path.name == "__init__.py" else path.with_suffix("") for path in files}
    modules = {".".join(place.relative_to(lib).parts): path for path, place in places.items()}
    if PACKAGE not in modules:
        raise ClosureError(f"{lib}: holds no package {PACKAGE}")
    return modules


def _with_parents(module: str) -> list[str]:
    """Return a module and the packages that importing it runs first."""
    parts = module.split(".")
    return [".".join(parts[:k]) for k in range(1, len(parts) + 1)]


def _imports(path: Path, module: str, modules: dict[str, Path], exports: dict[str, str]) -> set[str]:
    """Return the modules of the package that a file names; `module` is its own name ("" for a notebook)."""
    named = _names(_sources(path), module, path.name == "__init__.py")
    return {part for name in named for resolved in _resolve(name, modules, exports) for part in _with_parents(resolved)}


@functools.lru_cache(maxsize=1024)  # closures overlap, and the Snakefile asks for many
def _names(sources: tuple[tuple[str, str], ...], module: str, package: bool) -> frozenset[str]:
    """Return the dotted names of the package that code imports or reaches from what it imports."""
    names: set[str] = set()
    aliases: dict[str, str] = {}
    nodes = [node for name, source in sources for node in _walk(_parse(name, source))]
    for node in nodes:
        if isinstance(node, ast.Import):
            for item in node.names:
                names.add(item.name)
                top = item.name.split(".")[0]
                aliases[item.asname or top] = item.name if item.asname else top
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, package)
            for item in node.names:
                names.add(f"{base}.{item.name}")
                aliases[item.asname or item.name] = f"{base}.{item.name}"
    for node in nodes:
        chain = _chain(node)
        if chain and chain[0] in aliases:
            names.add(".".join([aliases[chain[0]], *chain[1:]]))
    return frozenset(name for name in names if name.split(".")[0] == PACKAGE)


def _walk(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield all nodes, but not what only a type checker runs."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting.extend(node.orelse)
        else:
            waiting.extend(ast.iter_child_nodes(node))


def _absolute(node: ast.ImportFrom, module: str, package: bool) -> str:
    """Return the absolute name of what `from ... import` names."""
    if not node.level:
        return node.module or ""
    inside = module.split(".") if package else module.split(".")[:-1]
    base = inside[: len(inside) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _chain(node: ast.AST) -> list[str]:
    """Return `a.b.c` as its names, an empty list for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) and names else []


def _resolve(name: str, modules: dict[str, Path], exports: dict[str, str]) -> list[str]:
    """Return the modules behind a dotted name: the longest module in it, or where an export comes from."""
    parts = name.split(".")
    if len(parts) > 1 and f"{PACKAGE}.{parts[1]}" not in modules:
        if parts[1] == "*":
            return [PACKAGE, *exports.values()]
        return [exports.get(parts[1], PACKAGE)]
    longest = max(k for k in range(1, len(parts) + 1) if ".".join(parts[:k]) in modules)
    return [".".join(parts[:longest])]


def _exports(root: Path) -> dict[str, str]:
    """Return the lazily loaded names of the package: name -> module."""
    for statement in _parse(str(root), root.read_text("utf-8")):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Name) and target.id == "_EXPORTS" for target in targets):
                exports: dict[str, str] = ast.literal_eval(statement.value)
                return {export: f"{PACKAGE}.{module}" for export, module in exports.items()}
    return {}
