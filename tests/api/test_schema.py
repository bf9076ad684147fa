"""A model becomes a structural schema, or is refused before anything is rendered."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from praxis.api import bounds, crds
from praxis.api.schema import Schema, structural


class Colour(StrEnum):
    """What it looks like."""

    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    """A part."""

    id: Annotated[str, Field(max_length=8, description="Its name.")]


class Whole(BaseModel):
    """A whole."""

    colour: Annotated[Colour, Field(description="Its colour.")]
    kind: Annotated[Literal["Thing"], Field(description="The only kind.")] = "Thing"
    note: Annotated[str | None, Field(max_length=16, description="A note.")] = None
    count: Annotated[int, Field(ge=1, le=4, description="How many.")] = 1
    part: Annotated[Part | None, Field(description="The part.")] = None
    parts: Annotated[list[Part], Field(max_length=2, description="More parts.")] = []
    keyed: Annotated[
        list[Part],
        Field(
            max_length=2,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
            description="Parts by id.",
        ),
    ] = []
    labels: Annotated[dict[str, Annotated[str, Field(max_length=4)]], Field(max_length=3, description="Labels.")] = {}


PART: Schema = {
    "description": "A part.",
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"description": "Its name.", "type": "string", "maxLength": 8}},
}


def test_structural() -> None:
    """References are inlined, optionals unwrapped, titles dropped; bounds, defaults and list types are there."""
    assert structural(Whole) == {
        "description": "A whole.",
        "type": "object",
        "required": ["colour"],
        "properties": {
            "colour": {"description": "Its colour.", "type": "string", "enum": ["red", "blue"]},
            "kind": {"description": "The only kind.", "type": "string", "enum": ["Thing"], "default": "Thing"},
            "note": {"description": "A note.", "type": "string", "maxLength": 16},
            "count": {
                "description": "How many.",
                "type": "integer",
                "format": "int64",
                "minimum": 1,
                "maximum": 4,
                "default": 1,
            },
            "part": {**PART, "description": "The part."},
            "parts": {
                "description": "More parts.",
                "type": "array",
                "maxItems": 2,
                "x-kubernetes-list-type": "atomic",
                "default": [],
                "items": PART,
            },
            "keyed": {
                "description": "Parts by id.",
                "type": "array",
                "maxItems": 2,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["id"],
                "default": [],
                "items": PART,
            },
            "labels": {
                "description": "Labels.",
                "type": "object",
                "maxProperties": 3,
                "default": {},
                "additionalProperties": {"type": "string", "maxLength": 4},
            },
        },
    }


class NoDescription(BaseModel):
    """Lacks a description; the enumeration's own docstring does not stand in for it."""

    colour: Colour


class NoLength(BaseModel):
    """Lacks a bound on a string."""

    text: Annotated[str, Field(description="Text.")]


class NoItems(BaseModel):
    """Lacks a bound on a list."""

    parts: Annotated[list[Part], Field(description="Parts.")]


class NoProperties(BaseModel):
    """Lacks a bound on a map."""

    labels: Annotated[dict[str, Annotated[str, Field(max_length=4)]], Field(description="Labels.")]


class NoValueLength(BaseModel):
    """Lacks a bound on the values of a map."""

    labels: Annotated[dict[str, str], Field(max_length=4, description="Labels.")]


class Deep(BaseModel):
    """Has a part that lacks a bound."""

    parts: Annotated[list[NoLength], Field(max_length=2, description="Parts.")]


class Union(BaseModel):
    """Is of two types."""

    value: Annotated[int | Annotated[str, Field(max_length=4)], Field(description="Value.")]


class Untyped(BaseModel):
    """Is of any type."""

    value: Annotated[Any, Field(description="Value.")]


class Exclusive(BaseModel):
    """Has a bound that a structural schema has no word for in this form."""

    value: Annotated[int, Field(gt=0, description="Value.")]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (NoDescription, "NoDescription.colour: a field without a description"),
        (NoLength, "NoLength.text: a string without a bound; give it one of maxLength, enum"),
        (NoItems, "NoItems.parts: a array without a bound; give it one of maxItems"),
        (NoProperties, "NoProperties.labels: a object without a bound; give it one of maxProperties, properties"),
        (NoValueLength, "NoValueLength.labels{}: a string without a bound; give it one of maxLength, enum"),
        (Deep, "Deep.parts[].text: a string without a bound; give it one of maxLength, enum"),
        (Union, "Union.value: a structural schema cannot say a union"),
        (Untyped, "Untyped.value: a field needs exactly one type"),
        (Exclusive, "Exclusive.value: a structural schema cannot say exclusiveMinimum"),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else "",
)
def test_refused(model: type[BaseModel], says: str) -> None:
    """A model that the API server could not hold is refused, with the path of the field and what it lacks."""
    with pytest.raises(TypeError) as refusal:
        structural(model)
    assert str(refusal.value) == says


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every node of a schema with its path."""
    yield path, schema
    for name, each in schema.get("properties", {}).items():
        yield from nodes(each, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{path}[]")


@pytest.mark.parametrize("definition", crds.DEFINITIONS, ids=lambda definition: definition.resource.kind)
def test_rendered_schemas_are_bounded(definition: crds.Definition) -> None:
    """Every string, list and map of the CRDs is bounded, every list has a type, every field a description."""
    for path, node in nodes(crds.schema(definition)):
        assert "title" not in node
        assert "nullable" not in node
        assert "x-kubernetes-preserve-unknown-fields" not in node
        if node["type"] == "string":
            assert "maxLength" in node or "enum" in node, path
        if node["type"] == "array":
            assert "maxItems" in node, path
            assert node["x-kubernetes-list-type"] in {"atomic", "map"}, path
        if "additionalProperties" in node:
            assert "maxProperties" in node, path
        if not path.endswith("[]"):
            assert node["description"], path


def at(resource: str, path: str) -> Schema:
    """A node of a rendered CRD."""
    definition = next(each for each in crds.DEFINITIONS if each.resource.kind == resource)
    return crds.located(crds.schema(definition), path)


def test_bounds_of_the_incident() -> None:
    """The bounds that the design names are those of the CRD."""
    assert at("Incident", "spec.alerts")["maxItems"] == bounds.ALERTS == 64
    assert at("Incident", "status.trail")["maxItems"] == bounds.TRAIL == 64
    assert at("Incident", "status.plan.actions")["maxItems"] == bounds.ACTIONS == 4
    assert at("Incident", "status.plan.revision")["maximum"] == bounds.PLANS == 4
    assert at("Incident", "status.steps")["maxItems"] == bounds.STEPS == 16
    assert at("Incident", "status.steps")["x-kubernetes-list-map-keys"] == ["revision", "action"]
    assert at("Incident", "status.trail")["x-kubernetes-list-type"] == "atomic"


def test_status_has_a_default() -> None:
    """A wiped status becomes whole again, so that the rules on what may change see it."""
    assert at("Incident", "status")["default"] == {
        "phase": "New",
        "phaseTimes": {},
        "conditions": [],
        "recalled": [],
        "evidence": [],
        "corrections": [],
        "guards": [],
        "approvals": [],
        "steps": [],
        "trail": [],
    }
    assert at("IncidentApproval", "status")["default"] == {"conditions": []}
    assert at("RemediationTarget", "status")["default"] == {}


def test_no_such_place() -> None:
    """A rule at a place that does not exist is a mistake that shows when the CRDs are rendered."""
    with pytest.raises(KeyError, match="nowhere"):
        at("Incident", "status.nowhere")


def test_columns() -> None:
    """`kubectl get incidents` shows phase, severity, target, plan and since when a person is waited for."""
    incident = next(each for each in crds.DEFINITIONS if each.resource.kind == "Incident")
    assert [column.name for column in incident.columns if not column.wide] == [
        "Phase",
        "Severity",
        "Target",
        "Plan",
        "Waiting",
        "Reason",
        "Age",
    ]


@pytest.mark.parametrize("definition", crds.DEFINITIONS, ids=lambda definition: definition.resource.kind)
def test_columns_name_fields(definition: crds.Definition) -> None:
    """Every column and every selectable field names a field that exists."""
    schema = crds.schema(definition)
    for path in [*(column.path for column in definition.columns), *definition.selectable]:
        if not path.startswith(".metadata."):
            assert crds.located(schema, path.removeprefix("."))["description"]


def test_names() -> None:
    """Short names, category and selectable fields are those that people type."""
    found = {each["spec"]["names"]["kind"]: each["spec"] for each in crds.documents()}
    assert {kind: spec["names"]["shortNames"] for kind, spec in found.items()} == {
        "Incident": ["inc"],
        "IncidentApproval": ["incapp"],
        "IncidentReconciliation": ["increc"],
        "RemediationTarget": ["rt"],
    }
    assert all(spec["names"]["categories"] == ["praxis"] for spec in found.values())
    assert {kind: spec["versions"][0].get("selectableFields") for kind, spec in found.items()} == {
        "Incident": None,
        "IncidentApproval": [{"jsonPath": ".spec.incidentRef.name"}, {"jsonPath": ".spec.incidentRef.uid"}],
        "IncidentReconciliation": [{"jsonPath": ".spec.incidentRef.name"}, {"jsonPath": ".spec.incidentRef.uid"}],
        "RemediationTarget": None,
    }
