"""Models and CRDs hold the same documents: what the schema takes, the model reads and the API server stores whole."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from praxis.api import crds
from praxis.api.base import API_VERSION, GROUP, VERSION
from praxis.api.schema import Schema
from praxis.controlplane import ControlPlane
from praxis.controlplane.errors import RequestRefused

PLAIN = st.characters(exclude_categories=["Cs", "Cc"])


def of(schema: Schema) -> st.SearchStrategy[Any]:
    """Documents that hold a structural schema; small, as bounds have tests of their own."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(schema.get("minimum", -5), schema.get("maximum", 5))
        case "number":
            return st.floats(-1, 1)
        case "string" if schema.get("format") == "date-time":
            return st.dates(date(2000, 1, 1), date(2100, 1, 1)).map(lambda day: f"{day}T12:00:00Z")
        case "string" if "pattern" in schema:
            limit = schema["maxLength"]
            return st.from_regex(schema["pattern"], fullmatch=True).filter(lambda each: len(each) <= limit)
        case "string":
            return st.text(PLAIN, min_size=schema.get("minLength", 0), max_size=min(schema["maxLength"], 12))
        case "array":
            return st.lists(of(schema["items"]), min_size=schema.get("minItems", 0), max_size=2)
        case "object" if "properties" in schema:
            required = set(schema.get("required", ()))
            fields = {name: of(each) for name, each in schema["properties"].items()}
            return st.fixed_dictionaries(
                {name: each for name, each in fields.items() if name in required},
                optional={name: each for name, each in fields.items() if name not in required},
            )
        case _:
            keys = st.text("abcdefgh", min_size=1, max_size=8)
            values = of(schema["additionalProperties"])
            return st.dictionaries(keys, values, min_size=schema.get("minProperties", 0), max_size=2)


@pytest.mark.controlplane
@pytest.mark.parametrize("definition", crds.DEFINITIONS, ids=lambda definition: definition.resource.kind)
def test_stored_as_dumped(bare: ControlPlane, definition: crds.Definition) -> None:
    """A document of the schema is read by the model, and what the model dumps is stored without loss or addition."""
    resource = definition.resource
    stored = 0

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(of(crds.schema(definition)["properties"]["spec"]))
    def check(spec: Any) -> None:
        nonlocal stored
        read = resource.model_validate({"metadata": {"name": "document"}, "spec": spec})
        sent = {
            "apiVersion": API_VERSION,
            "kind": resource.kind,
            "metadata": {"name": "document"},
            "spec": read.dump()["spec"],
        }
        path = f"/apis/{GROUP}/{VERSION}/namespaces/default/{resource.plural}?dryRun=All&fieldValidation=Strict"
        try:
            answer = bare.request("POST", path, sent)
        except RequestRefused as refusal:
            # A rule may refuse what the schema alone allows; a time may be of no day that there is.
            if "spec.expiresAt" in str(refusal) or any(rule.message in str(refusal) for rule in definition.rules):
                return
            raise
        stored += 1
        assert answer["spec"] == sent["spec"]

    check()
    assert stored > 0


@pytest.mark.parametrize("definition", crds.DEFINITIONS, ids=lambda definition: definition.resource.kind)
def test_read_back(definition: crds.Definition) -> None:
    """What a model dumps, it reads back as the same."""
    resource = definition.resource

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(of(crds.schema(definition)["properties"]["spec"]))
    def check(spec: Any) -> None:
        read = resource.model_validate({"metadata": {"name": "document"}, "spec": spec})
        assert resource.model_validate({"metadata": {"name": "document"}, "spec": read.dump()["spec"]}) == read

    check()
