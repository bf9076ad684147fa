"""People's decisions, through the praxis command and through plain manifests, with the real operator."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from praxis.api.incident import EntryKind, Incident
from praxis.clock import rfc3339
from praxis.demo.function_compute import Fault
from praxis.demo.function_compute.faults import Kind
from praxis.demo.stack import NAMES, Service, Stack
from praxis.machine import Phase
from tests.e2e.life import PATIENCE_SECONDS, begin, clear, praxis, reached

pytestmark = [pytest.mark.e2e, pytest.mark.controlplane]


def manifest(stack: Stack, incident: Incident, *, person: str, name: str, decision: str = "Approve") -> dict[str, Any]:
    """An approval as a person would write it by hand."""
    assert incident.status.plan is not None
    return {
        "apiVersion": "praxis.kopachelli.dev/v1alpha1",
        "kind": "IncidentApproval",
        "metadata": {"name": name, "namespace": stack.namespace},
        "spec": {
            "incidentRef": {"name": incident.metadata.name, "uid": incident.metadata.uid},
            "planDigest": incident.status.plan.digest,
            "decision": decision,
            "reason": "by hand",
            "approver": {"username": person},
            "expiresAt": rfc3339(datetime.now(UTC) + timedelta(hours=1)),
        },
    }


def create(stack: Stack, document: dict[str, Any], *, person: str) -> None:
    """Create it with kubectl, as the person."""
    stack.plane.kubectl("create", "-f", "-", stdin=json.dumps(document), kubeconfig=stack.person(person))


def verdict(stack: Stack, name: str) -> dict[str, Any]:
    """Status of an approval, once the operator has ruled on it."""
    stack.plane.kubectl(
        "wait", "incidentapproval", name, "-n", stack.namespace,
        "--for=jsonpath={.status.verdict}", f"--timeout={PATIENCE_SECONDS:g}s",
    )  # fmt: skip
    found = stack.plane.kubectl("get", "incidentapproval", name, "-n", stack.namespace, "-o", "json")
    status: dict[str, Any] = json.loads(found.stdout)["status"]
    return status


def test_a_plan_that_was_revised_since_is_not_approved(stack: Stack, service: Callable[[], Service]) -> None:
    """The approval of the former plan is refused with the reason, at the command line and as a stored verdict."""
    stack.start_operator()
    first = begin(stack, service())
    assert first.status.plan is not None
    name = first.metadata.name
    revised = praxis(stack, "revise", name, "--yes", "--correction", "scale it as well", person="bob")
    assert revised.returncode == 0, revised.stderr
    second = stack.wait(
        name,
        lambda each: each.status.plan is not None and each.status.plan.revision == 2,
        timeout=PATIENCE_SECONDS,
    )
    assert second.status.phase is Phase.AWAITING_APPROVAL
    assert "scale it as well" in second.status.corrections
    create(stack, manifest(stack, first, person="alice", name=f"{name}-late"), person="alice")
    ruled = verdict(stack, f"{name}-late")
    assert (ruled["verdict"], ruled["reason"]) == ("Refused", "PlanSuperseded")
    by_command = praxis(stack, "approve", name, "--yes", "--plan", first.status.plan.short)
    assert by_command.returncode == 1
    assert second.status.plan is not None
    assert second.status.plan.short in by_command.stderr + by_command.stdout
    assert stack.incident(name).status.phase is Phase.AWAITING_APPROVAL
    assert stack.emulator.dispatches(function=name.removeprefix("memory-")) == []


def test_a_manifest_by_hand_approves_and_a_second_approval_is_refused(
    stack: Stack, service: Callable[[], Service]
) -> None:
    """kubectl is as good as the command; what comes after the decision is refused and says why."""
    mine = service()
    stack.start_operator()
    incident = begin(stack, mine)
    name = incident.metadata.name
    create(stack, manifest(stack, incident, person="alice", name=f"{name}-one"), person="alice")
    assert verdict(stack, f"{name}-one")["verdict"] == "Accepted"
    create(stack, manifest(stack, incident, person="bob", name=f"{name}-two"), person="bob")
    late = verdict(stack, f"{name}-two")
    assert (late["verdict"], late["reason"]) == ("Refused", "AlreadyDecided")
    observing = reached(stack, name, Phase.OBSERVING)
    decided = [each for each in observing.status.trail if each.kind is EntryKind.DECIDED]
    assert [(each.actor, each.reason) for each in decided] == [("alice", "Approved")]
    clear(stack, mine, incident)
    reached(stack, name, Phase.RESOLVED)
    assert len(stack.emulator.dispatches(function=mine.name)) == 1


def test_a_dismissal_closes_and_nothing_is_sent(stack: Stack, service: Callable[[], Service]) -> None:
    """Dismiss ends the incident in the person's name."""
    mine = service()
    stack.start_operator()
    incident = begin(stack, mine)
    done = praxis(stack, "dismiss", incident.metadata.name, "--yes", "--reason", "a planned load test")
    assert done.returncode == 0, done.stderr
    closed = reached(stack, incident.metadata.name, Phase.CLOSED)
    assert closed.status.reason == "Dismissed"
    assert "alice" in (closed.status.message or "")
    assert stack.emulator.dispatches(function=mine.name) == []


def test_service_accounts_cannot_approve(stack: Stack, service: Callable[[], Service]) -> None:
    """Neither the operator's, nor the gateway's, nor any other, even one that RBAC lets create approvals."""
    stack.start_operator()
    incident = begin(stack, service())
    stack.plane.create_service_account(stack.namespace, "robot")
    stack.plane.kubectl(
        "create", "rolebinding", "robot", "-n", stack.namespace, "--clusterrole=praxis-approver",
        f"--serviceaccount={stack.namespace}:robot",
    )  # fmt: skip
    accounts = [
        (NAMES.namespace, NAMES.operator_account, "forbidden"),
        (NAMES.namespace, NAMES.gateway_account, "forbidden"),
        (stack.namespace, "robot", "people"),
    ]
    for namespace, account, words in accounts:
        username = f"system:serviceaccount:{namespace}:{account}"
        document = manifest(stack, incident, person=username, name=f"{incident.metadata.name}-{account}")
        answer = stack.plane.kubectl(
            "create", "-f", "-",
            stdin=json.dumps(document),
            kubeconfig=stack.plane.service_account_kubeconfig(namespace, account),
            check=False,
        )  # fmt: skip
        assert answer.returncode != 0, username
        assert words in answer.stderr.lower(), answer.stderr
    assert stack.incident(incident.metadata.name).status.phase is Phase.AWAITING_APPROVAL


def test_two_replicas_do_nothing_twice(stack: Stack, service: Callable[[], Service]) -> None:
    """With two operators running there is one dispatch, one outcome, one entry for each change of phase."""
    mine = service()
    stack.start_operator("operator-a")
    stack.start_operator("operator-b")
    incident = begin(stack, mine)
    approved = praxis(stack, "approve", incident.metadata.name, "--yes")
    assert approved.returncode == 0, approved.stderr
    reached(stack, incident.metadata.name, Phase.OBSERVING)
    clear(stack, mine, incident)
    after = reached(stack, incident.metadata.name, Phase.RESOLVED)
    phases = [each.phase for each in after.status.trail if each.kind is EntryKind.PHASE_CHANGED]
    assert phases == ["Triaged", "Investigated", "AwaitingApproval", "Executing", "Observing", "Resolved"]
    assert len(stack.emulator.dispatches(function=mine.name)) == 1


def test_an_unknown_outcome_holds_the_target_until_a_person_reconciles(
    stack: Stack, service: Callable[[], Service]
) -> None:
    """A second incident on the same function waits, stalled; the person's finding frees the target."""
    mine = service()
    stack.start_operator()
    stack.emulator.arm(Fault(kind=Kind.DROP_BEFORE, operation="UpdateFunction", function=mine.name))
    first = begin(stack, mine)
    praxis(stack, "approve", first.metadata.name, "--yes", "--timeout", "0")
    ended = reached(stack, first.metadata.name, Phase.RECONCILIATION_REQUIRED)
    second = begin(stack, mine, suffix="-again")
    praxis(stack, "approve", second.metadata.name, "--yes", "--timeout", "0", person="bob")
    stalled = stack.wait(
        second.metadata.name, lambda each: each.status.condition("Stalled") is not None, timeout=PATIENCE_SECONDS
    )
    condition = stalled.status.condition("Stalled")
    assert condition is not None
    assert (stalled.status.phase, condition.reason) == (Phase.EXECUTING, "TargetHeld")
    found = praxis(
        stack, "reconcile", ended.metadata.name, "--observed", "not-applied", "--note", "no marker there", "--yes"
    )
    assert found.returncode == 0, found.stderr
    reconciled = stack.incident(ended.metadata.name)
    assert reconciled.status.phase is Phase.RECONCILIATION_REQUIRED
    assert reconciled.status.trail[-1].kind is EntryKind.RECONCILED
    after = reached(stack, second.metadata.name, Phase.OBSERVING)
    assert after.status.steps[0].outcome is not None
    assert [each["applied"] for each in stack.emulator.dispatches(function=mine.name)] == [False, True]
