"""What the tool loop is given: schemas, strict arguments, and an observation whatever happens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from praxis.evidence.contract import Scope
from praxis.evidence.reader import ReadOnlyKube
from praxis.evidence.toolbox import EvidenceToolbox
from praxis.machine import Phase
from praxis.settings import OperatorSettings
from tests import builders
from tests.evidence.test_functions import Reader

SCOPE = Scope(incident=builders.incident(Phase.TRIAGED), targets=(builders.target(),))
CLUSTER = ["list_events", "list_pods", "pod_logs", "list_workloads"]
ALL = [*CLUSTER, "prometheus_query", "prometheus_query_range", "function_status"]


@pytest.fixture
def full(no_cluster: ReadOnlyKube) -> EvidenceToolbox:
    """Every tool, over nothing that answers."""
    return EvidenceToolbox(kube=no_cluster, prometheus_url="http://127.0.0.1:1", functions=Reader({}))


def test_offers_what_is_configured(no_cluster: ReadOnlyKube) -> None:
    """Without a Prometheus or functions, the model is not offered to ask them."""

    def names(**parts: Any) -> list[str]:
        return [spec.name for spec in EvidenceToolbox(kube=no_cluster, **parts).specs()]

    assert names() == CLUSTER
    assert names(prometheus_url="http://p") == [*CLUSTER, "prometheus_query", "prometheus_query_range"]
    assert names(functions=Reader({})) == [*CLUSTER, "function_status"]


async def test_the_settings_make_a_toolbox(no_cluster: ReadOnlyKube) -> None:
    """`from_settings` takes Prometheus from the settings."""
    kube = no_cluster._kube
    with_url = OperatorSettings(prometheus_url="http://127.0.0.1:1")
    assert [
        spec.name for spec in EvidenceToolbox.from_settings(with_url, kube=kube, functions=Reader({})).specs()
    ] == ALL
    assert [
        spec.name for spec in EvidenceToolbox.from_settings(OperatorSettings(), kube=kube, functions=None).specs()
    ] == CLUSTER


def test_every_schema_is_strict_and_described(full: EvidenceToolbox) -> None:
    """An object without extras; each parameter says what it is, and no title repeats its name."""
    for spec in full.specs():
        assert spec.description
        assert spec.parameters["type"] == "object"
        assert spec.parameters["additionalProperties"] is False
        assert all(each["description"] for each in spec.parameters["properties"].values())
        assert "title" not in json.dumps(spec.parameters)


def test_a_schema_literally(full: EvidenceToolbox) -> None:
    """As the model sees the one of `pod_logs`."""
    [spec] = [each for each in full.specs() if each.name == "pod_logs"]
    name = {"maxLength": 253, "minLength": 1, "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "type": "string"}
    assert spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["pod"],
        "properties": {
            "pod": {**name, "description": "Name of the pod."},
            "container": {
                "anyOf": [{**name, "description": "Name of the object."}, {"type": "null"}],
                "default": None,
                "description": "Container; needed when the pod has several.",
            },
            "previous": {
                "type": "boolean",
                "default": False,
                "description": "The log of the instance before the last restart.",
            },
            "tail_lines": {
                "type": "integer",
                "minimum": 1,
                "maximum": 500,
                "default": 100,
                "description": "So many of the last lines.",
            },
        },
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "fault"),
    [
        ("list_pods", "not json", "arguments: Invalid JSON"),
        ("list_pods", "[]", "arguments: Input should be an object"),
        ("list_pods", '{"namespace": "kube-system"}', "namespace: Extra inputs are not permitted"),
        ("list_pods", '{"limit": 0}', "limit: Input should be greater than or equal to 1"),
        ("list_pods", '{"limit": 101}', "limit: Input should be less than or equal to 100"),
        ("list_pods", '{"limit": "5"}', "limit: Input should be a valid integer"),
        ("list_pods", '{"selector": "a=b&c"}', "selector: String should match pattern"),
        ("list_events", '{"object": "../secrets"}', "object: String should match pattern"),
        ("list_events", '{"object": "a,type=Normal"}', "object: String should match pattern"),
        ("pod_logs", "{}", "pod: Field required"),
        ("pod_logs", '{"pod": "a/../../secrets/x"}', "pod: String should match pattern"),
        ("pod_logs", '{"pod": "a", "tail_lines": 501}', "tail_lines: Input should be less than or equal to 500"),
        ("pod_logs", '{"pod": "a", "follow": true}', "follow: Extra inputs are not permitted"),
        ("list_workloads", '{"kind": "Secret"}', "kind: Input should be 'Deployment'"),
        ("prometheus_query", '{"query": ""}', "query: String should have at least 1 character"),
        ("prometheus_query_range", '{"query": "up", "minutes": 10081}', "minutes: Input should be less than or equal"),
    ],
)
async def test_what_is_not_in_the_schema_is_refused(
    full: EvidenceToolbox, tool: str, arguments: str, fault: str
) -> None:
    """With the argument and what is wrong with it, so that the model can mend it; nothing is asked."""
    seen = await full.call(SCOPE, tool, arguments)
    assert seen.excerpt.startswith(f"error: invalid arguments: {fault}")


async def test_a_tool_that_is_not_there_is_named(full: EvidenceToolbox) -> None:
    """And those that are there."""
    seen = await full.call(SCOPE, "delete_pod", "{}")
    assert seen.excerpt == f"error: there is no tool 'delete_pod'; there are {', '.join(ALL)}"


@pytest.mark.parametrize(("length", "looked_at"), [(8192, True), (8193, False)])
async def test_arguments_are_bounded(full: EvidenceToolbox, length: int, looked_at: bool) -> None:
    """At the bound they are checked like any; beyond, not even that."""
    seen = await full.call(SCOPE, "list_pods", "[" + " " * (length - 2) + "]")
    assert seen.excerpt.startswith("error: invalid arguments" if looked_at else "error: the arguments are longer than")


async def test_a_secret_in_the_arguments_does_not_come_back(full: EvidenceToolbox) -> None:
    """Neither in the query nor in the fault."""
    token = "ghp" + "_" + "a1B2" * 9
    seen = await full.call(SCOPE, "list_pods", json.dumps({"selector": f"x={token}&", token: 1}))
    assert "a1B2" not in seen.excerpt + seen.query


@given(name=st.sampled_from([*ALL, "x"]), arguments=st.text(max_size=60) | st.from_regex(r"\{.{0,40}\}"))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_the_model_writes_is_an_observation(full: EvidenceToolbox, name: str, arguments: str) -> None:
    """No name and no arguments make a call raise."""
    seen = await full.call(SCOPE, name, arguments)
    assert seen.digest.startswith("sha256:")
    assert len(seen.excerpt) <= 4096
