"""What is installed equals what was rendered, and any weakening of a guard is seen."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.api.installation import Names, differences, expected
from praxis.controlplane import ControlPlane

Document = dict[str, Any]
EXPECTED = {(each["kind"], each["metadata"]["name"]): each for each in expected(Names())}
POLICY = ("ValidatingAdmissionPolicy", "praxis-approvals-by-people")
BINDING = ("ValidatingAdmissionPolicyBinding", "praxis-approvals-by-people")
INCIDENTS = ("CustomResourceDefinition", "incidents.praxis.kopachelli.dev")
APPROVALS = ("CustomResourceDefinition", "incidentapprovals.praxis.kopachelli.dev")


def test_guards() -> None:
    """Four CRDs, nine policies and their bindings are compared; a status has room for them all."""
    assert sorted(EXPECTED) == sorted(
        [
            ("CustomResourceDefinition", "incidentapprovals.praxis.kopachelli.dev"),
            ("CustomResourceDefinition", "incidentreconciliations.praxis.kopachelli.dev"),
            ("CustomResourceDefinition", "incidents.praxis.kopachelli.dev"),
            ("CustomResourceDefinition", "remediationtargets.praxis.kopachelli.dev"),
            *(
                (kind, name)
                for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
                for name in (
                    "praxis-approvals-by-people",
                    "praxis-decisions-stay",
                    "praxis-held-targets-stay",
                    "praxis-incidents-by-gateway",
                    "praxis-open-intents-stay",
                    "praxis-reconciliations-by-people",
                    "praxis-signers-by-admins",
                    "praxis-status-by-operator",
                    "praxis-targets-by-admins",
                )
            ),
        ]
    )


@pytest.mark.controlplane
def test_installed_is_rendered(guarded: ControlPlane) -> None:
    """The API server adds nothing to a spec: what is installed from the tree equals what the operator expects."""
    for (kind, name), wanted in EXPECTED.items():
        api = wanted["apiVersion"]
        installed = guarded.request("GET", f"/apis/{api}/{plural(kind)}/{name}")
        assert differences(wanted, installed) == []


def plural(kind: str) -> str:
    """The name of a kind's collection."""
    return f"{kind.lower().removesuffix('y')}ies" if kind.endswith("y") else f"{kind.lower()}s"


def test_nothing_differs_from_itself() -> None:
    """A rendered object does not differ from itself, whatever labels, annotations and status it has got."""
    for wanted in EXPECTED.values():
        installed = copy.deepcopy(wanted)
        installed["metadata"] |= {"uid": "u", "generation": 3, "labels": {}, "annotations": {"a": "b"}}
        installed["status"] = {"observedGeneration": 3}
        assert differences(wanted, installed) == []


def changed(key: tuple[str, str], change: Callable[[Document], Any]) -> list[str]:
    """The differences after a change to the installed object."""
    installed = copy.deepcopy(EXPECTED[key])
    change(installed)
    return differences(EXPECTED[key], installed)


def set_at(*path: Any, value: Any) -> Callable[[Document], None]:
    """A change of what stands at a path."""

    def change(document: Document) -> None:
        node: Any = document
        for each in path[:-1]:
            node = node[each]
        node[path[-1]] = value

    return change


WEAKENED = [
    (
        POLICY,
        set_at("spec", "failurePolicy", value="Ignore"),
        "spec.failurePolicy is 'Ignore', not 'Fail'",
    ),
    (
        POLICY,
        set_at("spec", "matchConditions", value=[{"name": "never", "expression": "false"}]),
        "spec.matchConditions was added: [{'name': 'never', 'expression': 'false'}]",
    ),
    (
        POLICY,
        set_at("spec", "matchConstraints", "excludeResourceRules", value=[{"apiGroups": ["*"]}]),
        "spec.matchConstraints.excludeResourceRules was added: [{'apiGroups': ['*']}]",
    ),
    (
        POLICY,
        set_at("spec", "matchConstraints", "namespaceSelector", value={"matchLabels": {"a": "b"}}),
        "spec.matchConstraints.namespaceSelector.matchLabels was added: {'a': 'b'}",
    ),
    (
        POLICY,
        set_at("spec", "matchConstraints", "objectSelector", value={"matchLabels": {"a": "b"}}),
        "spec.matchConstraints.objectSelector.matchLabels was added: {'a': 'b'}",
    ),
    (
        POLICY,
        set_at("spec", "matchConstraints", "matchPolicy", value="Exact"),
        "spec.matchConstraints.matchPolicy is 'Exact', not 'Equivalent'",
    ),
    (
        POLICY,
        set_at("spec", "matchConstraints", "resourceRules", 0, "operations", value=["DELETE"]),
        "spec.matchConstraints.resourceRules[0].operations[0] is 'DELETE', not 'CREATE'",
    ),
    (
        POLICY,
        set_at("spec", "matchConstraints", "resourceRules", value=[]),
        "spec.matchConstraints.resourceRules is [], not [{",
    ),
    (
        POLICY,
        set_at("spec", "paramKind", value={"apiVersion": "v1", "kind": "ConfigMap"}),
        "spec.paramKind was added: {'apiVersion': 'v1', 'kind': 'ConfigMap'}",
    ),
    (
        POLICY,
        set_at("spec", "variables", 0, "expression", value="false"),
        "spec.variables[0].expression is 'false', not ",
    ),
    (
        POLICY,
        set_at("spec", "validations", 0, "expression", value="true"),
        "spec.validations[0].expression is 'true', not '!variables.robot'",
    ),
    (POLICY, lambda document: document["spec"]["validations"].pop(), "spec.validations is [{"),
    (POLICY, lambda document: document["spec"].pop("validations"), "spec.validations is missing"),
    (POLICY, lambda document: document.pop("spec"), "spec is None, not {"),
    (
        POLICY,
        set_at("metadata", "deletionTimestamp", value="2026-01-31T12:00:00Z"),
        "is being deleted",
    ),
    (
        BINDING,
        set_at("spec", "validationActions", value=["Warn", "Audit"]),
        "spec.validationActions is ['Warn', 'Audit'], not ['Deny']",
    ),
    (
        BINDING,
        set_at("spec", "validationActions", value=["Audit"]),
        "spec.validationActions[0] is 'Audit', not 'Deny'",
    ),
    (
        BINDING,
        set_at("spec", "paramRef", value={"name": "p", "parameterNotFoundAction": "Allow"}),
        "spec.paramRef was added: {'name': 'p', 'parameterNotFoundAction': 'Allow'}",
    ),
    (
        BINDING,
        set_at("spec", "matchResources", value={"namespaceSelector": {"matchLabels": {"a": "b"}}}),
        "spec.matchResources was added: {'namespaceSelector': {'matchLabels': {'a': 'b'}}}",
    ),
    (
        BINDING,
        set_at("spec", "policyName", value="another"),
        "spec.policyName is 'another', not 'praxis-approvals-by-people'",
    ),
    (
        INCIDENTS,
        lambda document: document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"][
            "x-kubernetes-validations"
        ].pop(),
        "spec.versions[0].schema.openAPIV3Schema.properties.status.x-kubernetes-validations is [{",
    ),
    (
        INCIDENTS,
        set_at(
            *("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "status"),
            *("x-kubernetes-validations", 0, "rule"),
            value="true",
        ),
        "spec.versions[0].schema.openAPIV3Schema.properties.status.x-kubernetes-validations[0].rule is 'true', not ",
    ),
    (
        INCIDENTS,
        set_at("spec", "versions", 0, "subresources", value={}),
        "spec.versions[0].subresources.status is missing",
    ),
    (
        INCIDENTS,
        set_at("spec", "preserveUnknownFields", value=True),
        "spec.preserveUnknownFields was added: True",
    ),
    (
        INCIDENTS,
        set_at(
            *("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "status"),
            *("properties", "trail", "x-kubernetes-list-type"),
            value="set",
        ),
        (
            "spec.versions[0].schema.openAPIV3Schema.properties.status.properties.trail.x-kubernetes-list-type "
            "is 'set', not 'atomic'"
        ),
    ),
    (
        INCIDENTS,
        set_at("spec", "conversion", value={"strategy": "Webhook"}),
        "spec.conversion.strategy is 'Webhook', not 'None'",
    ),
    (
        APPROVALS,
        lambda document: document["spec"]["versions"].append({"name": "v1"}),
        "spec.versions is [{",
    ),
    (
        APPROVALS,
        set_at("spec", "versions", 0, "selectableFields", value=[]),
        "spec.versions[0].selectableFields is [], not [{",
    ),
]


@pytest.mark.parametrize(("key", "change", "says"), WEAKENED, ids=[says[:60] for _, _, says in WEAKENED])
def test_weakening_is_seen(key: tuple[str, str], change: Callable[[Document], Any], says: str) -> None:
    """Each way to weaken a guard is one difference, and the message names it."""
    found = changed(key, change)
    assert len(found) == 1
    assert found[0].startswith(says)


def test_another_object_is_no_guard() -> None:
    """An object of another kind, version or name does not pass for the one that is wanted."""
    wanted, other = EXPECTED[POLICY], EXPECTED["ValidatingAdmissionPolicy", "praxis-open-intents-stay"]
    assert "kind is 'ValidatingAdmissionPolicyBinding', not 'ValidatingAdmissionPolicy'" in differences(
        wanted, EXPECTED[BINDING]
    )
    assert "metadata.name is 'praxis-open-intents-stay', not 'praxis-approvals-by-people'" in differences(wanted, other)
    beta = {**wanted, "apiVersion": "admissionregistration.k8s.io/v1beta1"}
    assert differences(wanted, beta) == [
        "apiVersion is 'admissionregistration.k8s.io/v1beta1', not 'admissionregistration.k8s.io/v1'"
    ]


def test_names_of_the_installation() -> None:
    """An installation under other names expects policies that speak of those."""
    other = expected(Names(namespace="ops", operator_account="op", gateway_account="gw"))
    named = {
        wanted["metadata"]["name"]
        for wanted, installed in zip(EXPECTED.values(), other, strict=True)
        if differences(wanted, installed)
    }
    assert named == {
        "praxis-incidents-by-gateway",
        "praxis-signers-by-admins",
        "praxis-status-by-operator",
        "praxis-targets-by-admins",
    }
    assert (
        next(each for each in other if each["metadata"]["name"] == "praxis-status-by-operator")["spec"]["validations"][
            0
        ]["expression"]
        == "request.userInfo.username == 'system:serviceaccount:ops:op'"
    )


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document."""
    if path:
        yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


PLACES = [(key, ("spec", *place)) for key, wanted in EXPECTED.items() for place in places(wanted["spec"])]
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=3)


@given(where=st.sampled_from(PLACES), value=SCALARS | st.lists(SCALARS, max_size=2), remove=st.booleans())
def test_no_change_escapes(where: tuple[tuple[str, str], tuple[Any, ...]], value: Any, remove: bool) -> None:
    """Whatever is put in any place of a spec, or taken away from it, is seen, unless it is what was there."""
    key, path = where
    installed = copy.deepcopy(EXPECTED[key])
    node: Any = installed
    for each in path[:-1]:
        node = node[each]
    before = node[path[-1]]
    if remove:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    unchanged = not remove and type(before) is type(value) and before == value
    assert bool(differences(EXPECTED[key], installed)) is not unchanged
