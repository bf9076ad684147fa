"""A pydantic model as a structural schema of `apiextensions.k8s.io/v1`.

The API server takes a part of JSON Schema only: no `$ref`, no `title`, no `null`. CEL's cost limits want a bound on
every string, list and map, and `kubectl explain` wants a sentence for every field: a model that lacks one is refused
here, before anything is rendered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

KEPT = (
    "description",
    "type",
    "enum",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "default",
    "required",
)
"""What is taken over as it stands, in the order in which it is rendered."""
TRANSLATED = frozenset({"title", "$ref", "$defs", "anyOf", "const", "properties", "items", "additionalProperties"})
BOUNDS = {"string": ("maxLength", "enum"), "array": ("maxItems",), "object": ("maxProperties", "properties")}
"""For each type, what bounds its size; one of them must be there."""


def structural(model: type[BaseModel]) -> Schema:
    """The schema of a model, with everything inlined.

    Raises:
        TypeError: a field has no description or no bound, or needs what a structural schema cannot say.
    """
    document = model.model_json_schema(by_alias=True, mode="validation")
    return _node(document, document.get("$defs", {}), model.__name__)


def _node(raw: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> Schema:
    """One node: references and optionals resolved, then checked, then its children."""
    flat = _flattened(raw, definitions, path)
    unknown = flat.keys() - TRANSLATED - set(KEPT)
    if unknown:
        raise TypeError(f"{path}: a structural schema cannot say {', '.join(sorted(unknown))}")
    node = {key: flat[key] for key in KEPT if key in flat and not (key == "default" and flat[key] is None)}
    kind = node.get("type")
    if kind in BOUNDS and not any(bound in flat for bound in BOUNDS[kind]):
        raise TypeError(f"{path}: a {kind} without a bound; give it one of {', '.join(BOUNDS[kind])}")
    if kind == "integer":
        node.setdefault("format", "int64")
    elif kind == "array":
        node.setdefault("x-kubernetes-list-type", "atomic")
        node["items"] = _node(flat["items"], definitions, f"{path}[]")
    elif kind == "object" and "properties" in flat:
        node["properties"] = {
            name: _field(each, definitions, f"{path}.{name}") for name, each in flat["properties"].items()
        }
    elif kind == "object":
        node["additionalProperties"] = _node(flat["additionalProperties"], definitions, f"{path}{{}}")
    elif kind is None:
        raise TypeError(f"{path}: a field needs exactly one type")
    return node


def _field(raw: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> Schema:
    if not raw.get("description"):
        raise TypeError(f"{path}: a field without a description")
    return _node(raw, definitions, path)


def _flattened(raw: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> Schema:
    """The node with its reference and its `| None` merged in; what stands beside them goes before what they bring."""
    flat = dict(raw)
    if "$ref" in flat:
        flat = {**definitions[flat.pop("$ref").rsplit("/", 1)[1]], **flat}
    if "anyOf" in flat:
        options = [option for option in flat.pop("anyOf") if option.get("type") != "null"]
        if len(options) != 1:
            raise TypeError(f"{path}: a structural schema cannot say a union")
        flat = {**_flattened(options[0], definitions, path), **flat}
    if "const" in flat:
        flat["enum"] = [flat["const"]]
    return flat
