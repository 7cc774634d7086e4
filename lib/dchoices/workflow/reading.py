"""Read a configuration file: YAML for plain data alone, checked for its size before anything is built from it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from dchoices.wording import SHOWN, one_line, shorten, show

# Far beyond any study, far below what would keep the checks busy: some compare all values of a list with each other.
MAX_BYTES = 200_000
MAX_VALUES = 10_000  # aliases expanded
MAX_ITEMS = 1000  # of a list or mapping
MAX_DEPTH = 20
TEMPLATES = "__use_yte__"  # the key with which a file asks Snakemake to run the Python expressions in it

YAML_TAG = "tag:yaml.org,2002:"


class ConfigError(ValueError):
    """A configuration that must not run; the message is one line: file, field, value, what is allowed."""


class _PlainLoader(yaml.SafeLoader):
    """A safe loader of names, numbers and text that refuses a key given twice (YAML keeps the last without a word)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.tag == f"{YAML_TAG}merge":
                continue
            if key.tag != f"{YAML_TAG}str":
                given = show(key.value) if isinstance(key, yaml.ScalarNode) else "a list or mapping"
                raise ConfigError(f"{_line(key)}: key {given}: must be a name")
            if key.value in seen:
                raise ConfigError(f"{_line(key)}: {show_key(key.value)}: is given twice, must be given once")
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        is_number = node.tag in (f"{YAML_TAG}int", f"{YAML_TAG}float")
        try:
            if is_number and len(node.value) > SHOWN:
                raise OverflowError
            return super().construct_object(node, deep)
        except ConfigError:
            raise
        except (ValueError, OverflowError):  # what YAML takes for a number need not be one, as 0x_
            raise ConfigError(
                f"{_line(node)}: {show(node.value)}: must be a number of at most {SHOWN} characters"
            ) from None


# A date is text, which the schema refuses with its field.
_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{YAML_TAG}timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: str | Path) -> Any:
    """Return the content of a YAML file.

    Raises
    ------
    ConfigError
        If the file cannot be read, is too large, is no YAML of plain values, gives a key twice, or is a template.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ConfigError(f"more than {MAX_BYTES} bytes: must be less")
        text = content.decode("utf-8")
        _refuse_unfit_events(text)
        value = yaml.load(text, _PlainLoader)
    except OSError as error:
        raise ConfigError(f"{show_path(path)}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{show_path(path)}: must be text in UTF-8") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{show_path(path)}: is no valid YAML: {one_line(str(error))}") from None
    except ValueError as error:  # ours, or a path that holds a NUL
        raise ConfigError(f"{show_path(path)}: {error}") from None
    if isinstance(value, dict) and TEMPLATES in value:
        raise ConfigError(f"{show_path(path)}: {TEMPLATES}: must not be given, a configuration is data and no template")
    return value


def _refuse_unfit_events(text: str) -> None:
    """Raise on tags, and where nesting or aliases make the file larger than it looks."""
    inside: dict[str | None, int] = {}  # values under each anchor
    opened: list[tuple[str | None, int]] = []
    count = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in [anchor for anchor, _ in opened]:
                raise ConfigError(
                    f"{_line(event)}: *{shorten(str(event.anchor))}: must not stand inside what it is an alias of"
                )
            count += inside.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            if event.tag is not None:
                raise ConfigError(f"{_line(event)}: tag {show(event.tag)}: must not be given, values have no tags")
            count += 1
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, count - 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            inside[anchor] = count - before
        if len(opened) > MAX_DEPTH:
            raise ConfigError(f"{_line(event)}: more than {MAX_DEPTH} levels of lists and mappings: must be fewer")
        if count > MAX_VALUES:
            raise ConfigError(f"{_line(event)}: more than {MAX_VALUES} values, aliases expanded: must be fewer")


def _line(place: yaml.Event | yaml.Node) -> str:
    return f"line {place.start_mark.line + 1}" if place.start_mark else "the file"


def show_key(key: str) -> str:
    """Return a key as it stands, or quoted where it is no plain word."""
    return shorten(key) if re.fullmatch(r"[\w.-]+", key) and key.isprintable() else show(key)


def show_path(path: str | Path) -> str:
    """Return a path in one line, whatever its name holds."""
    return one_line(str(path))
