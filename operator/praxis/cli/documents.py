"""Kubernetes objects in files: JSON or YAML, one or several documents, a List. Read strictly, for digests over them.

Two readers must not see different documents in one file: a key that is given twice, aliases and tags are refused, and
plain YAML scalars are read as JSON has them. So a time stays the text that was stored, and `on` is no boolean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

DEPTH = 100
"""How deep a document may be nested; the resources' schemas go a tenth of it."""

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


TAGS = frozenset({None, "!", "tag:yaml.org,2002:str"})
"""Tags that a node may be given: none, or that it is text. Any other makes of a value what JSON does not have."""


class _Loader(_Base):  # type: ignore[misc]
    """YAML's JSON schema."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # PyYAML's own way: a table of the class


class _Dumper(yaml.SafeDumper):
    """Quotes whatever any reader would take for a number: to PyYAML alone, the short digest `123456e78901` is text."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _mapping(loader: Any, node: Any) -> dict[Any, Any]:
    return _unique(
        [(loader.construct_object(k, deep=True), loader.construct_object(v, deep=True)) for k, v in node.value]
    )


for _tag, _pattern, _first in (
    ("null", r"null|Null|NULL|~|", ["n", "N", "~", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"-?(0|[1-9][0-9]*)", list("-0123456789")),
    ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", list("-0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _text(dumper: Any, value: str) -> Any:
    """Several lines, such as a signature, as a block that people can read; what no block can hold is quoted."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def yaml_text(document: Any) -> str:
    """A JSON document as YAML for people, which every reader takes for the same document."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=120)


def objects(text: str) -> list[dict[str, Any]]:
    """Every object in the text, Lists unpacked.

    Raises:
        ValueError: it is neither JSON nor YAML, or holds what is no object of Kubernetes.
    """
    try:
        documents = list(_json(text) if text.lstrip().startswith("{") else _yaml(text))
        return [found for document in documents for found in _unpacked(document)]
    except yaml.YAMLError as error:
        raise ValueError(f"no YAML: {error}") from error
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _json(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number)
    rest = text.strip()
    while rest:
        document, end = decoder.raw_decode(rest)
        yield document
        rest = rest[end:].lstrip()


def _yaml(text: str) -> Iterator[Any]:
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("it has YAML aliases, which kubectl never writes")  # noqa: TRY004  # wrong content
        if (tag := getattr(event, "tag", None)) not in TAGS:
            raise ValueError(f"no YAML as kubectl writes it: it has the tag {tag}, which JSON does not have")
    yield from (document for document in yaml.load_all(text, Loader=_Loader) if document is not None)


def _unpacked(document: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict):
        raise ValueError("no object of Kubernetes: not a mapping")  # noqa: TRY004  # wrong content, no wrong type
    _plain(document)
    if str(document.get("kind")).endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _unpacked(item)
    else:
        yield document


def _plain(document: Any) -> None:
    """JSON values only, not too deep. Raises ValueError."""
    waiting: list[tuple[Any, int]] = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > DEPTH:
            raise ValueError("nested too deep")
        if isinstance(value, dict):
            waiting += [(each, depth + 1) for each in value.values()]
            if not all(isinstance(key, str) for key in value):
                raise ValueError("a key is no text")
        elif isinstance(value, list):
            waiting += [(each, depth + 1) for each in value]
        elif value is not None and not isinstance(value, str | int | float | bool):
            raise ValueError(f"a value of type {type(value).__name__}, which JSON does not have")


def _unique(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key, value in pairs:
        if not isinstance(key, str):
            raise ValueError(f"a key is no text: {key!r:.60}")  # noqa: TRY004  # wrong content, no wrong type
        if key in result:
            raise ValueError(f"key {key!r} is given twice in one mapping")
        result[key] = value
    return result


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")
