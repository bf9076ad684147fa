"""Whatever is stored as an approval, policies or not: nothing runs on it but a person's own, exact, timely Approve."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings

from praxis.api.approval import IncidentApproval
from praxis.api.incident import Incident
from praxis.clock import rfc3339
from praxis.controller.cluster import parsed
from praxis.demo.stack import Stack
from praxis.errors import NeedsPerson, PraxisError
from praxis.kube import Reply
from praxis.machine import Phase
from praxis.phases import awaiting_approval
from praxis.phases.contract import Transition
from tests import builders
from tests.e2e.life import begin
from tests.hostile.strategies import LOOKALIKES, ROBOTS, clear, damaged
from tests.phases.world import World

INCIDENT = builders.incident()
APPROVAL = builders.approval().dump()
BACKWARD = {Phase.INVESTIGATED, Phase.CLOSED}


def approves(document: dict[str, Any], incident: Incident, now: datetime) -> bool:
    """Whether a stored document is a person's approval of this plan, in time: said independently of the program."""
    spec, meta, plan = document["spec"], document["metadata"], incident.status.plan
    assert plan is not None
    return (
        spec["decision"] == "Approve"
        and spec["planDigest"] == plan.digest
        and (spec["incidentRef"]["name"], spec["incidentRef"]["uid"]) == (incident.metadata.name, incident.metadata.uid)
        and meta["namespace"] == incident.metadata.namespace
        and not spec["approver"]["username"].startswith("system:")
        and datetime.fromisoformat(spec["expiresAt"]) > now
        and not spec.get("signature")
        and not meta.get("deletionTimestamp")
        and not document.get("status", {}).get("verdict")
    )


@given(damaged(APPROVAL, below="spec", most=4))
@settings(max_examples=600, deadline=None)
async def test_any_approval(document: dict[str, Any]) -> None:
    """What its author wrote, damaged in up to four places: told or ruled on, and never a way in by itself."""
    world = World()
    try:
        stored = parsed(IncidentApproval, Reply({"items": [document]}, world.time.wall))
    except NeedsPerson as error:
        clear(error)
        return
    world.say(*stored)
    try:
        decision = await awaiting_approval.reconcile(INCIDENT, world.tools())
    except PraxisError as error:
        clear(error)
        return
    if isinstance(decision, Transition):
        assert decision.reason
        assert decision.message
        assert decision.to in BACKWARD or approves(document, INCIDENT, world.time.wall), document


@pytest.mark.parametrize("name", [*LOOKALIKES, *ROBOTS])
async def test_names_that_look_alike(name: str) -> None:
    """Each is somebody of its own, shown as it is; a robot is nobody."""
    world = World()
    world.say(builders.approval(name))
    decision = await awaiting_approval.reconcile(INCIDENT, world.tools())
    if name in ROBOTS:
        assert not isinstance(decision, Transition)
    else:
        assert isinstance(decision, Transition)
        assert [each.approver for each in decision.changes["approvals"]] == [name]


@pytest.mark.e2e
@pytest.mark.controlplane
def test_stored_past_every_policy(stack: Stack) -> None:
    """With the bindings gone, an admin stores what no policy would let through: it is ruled on, and nothing runs."""
    incident = begin(stack, stack.services[1])
    plan = incident.status.plan
    assert plan is not None
    stack.plane.kubectl("delete", "validatingadmissionpolicybindings", "-l", "app.kubernetes.io/part-of=praxis")
    good = {
        "incidentRef": {"name": incident.metadata.name, "uid": incident.metadata.uid},
        "planDigest": plan.digest,
        "decision": "Approve",
        "reason": "",
        "approver": {"username": "alice"},
        "expiresAt": rfc3339(datetime.now(UTC) + timedelta(hours=1)),
    }
    bad: list[dict[str, Any]] = [
        *({"approver": {"username": each}} for each in ROBOTS),
        {"expiresAt": "2020-01-01T00:00:00Z"},
        {"planDigest": "sha256:" + "0" * 64},
        {"incidentRef": {"name": incident.metadata.name, "uid": "another"}},
        {"signature": "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"},
        {"decision": "approve"}, {"decision": ["Approve"]}, {"planDigest": plan.digest.upper()}, {"planDigest": None},
        {"approver": {"username": ""}}, {"approver": "alice"}, {"approver": {"username": "x" * 100_000}},
        {"expiresAt": "tomorrow"}, {"expiresAt": 4102444800}, {"incidentRef": {}}, {"reason": "x" * 100_000},
        {"corrections": ["x"] * 1000}, {"signature": "alice"},
    ]  # fmt: skip
    stored, refused = [], 0
    deadline = time.monotonic() + 60
    while not _gone(stack):
        assert time.monotonic() < deadline
    for number, change in enumerate(bad):
        document = {
            "apiVersion": "praxis.kopachelli.dev/v1alpha1",
            "kind": "IncidentApproval",
            "metadata": {"name": f"hostile-{number}", "namespace": stack.namespace},
            "spec": good | change,
        }
        done = stack.plane.kubectl("create", "-f", "-", stdin=json.dumps(document), check=False)
        if done.returncode == 0:
            stored.append(f"hostile-{number}")
        else:
            refused += 1
            assert "invalid" in done.stderr.lower() or "too large" in done.stderr.lower(), done.stderr
    assert (len(stored), refused) == (8, 13)
    unknown = f"hostile-{len(ROBOTS) + 3}"
    for name in set(stored) - {unknown}:
        stack.plane.kubectl(
            "wait", "incidentapproval", name, "-n", stack.namespace, "--for=jsonpath={.status.verdict}=Refused",
            "--timeout=60s",
        )  # fmt: skip
        found = stack.plane.kubectl("get", "incidentapproval", name, "-n", stack.namespace, "-o", "json")
        status = json.loads(found.stdout)["status"]
        assert status["reason"]
        assert status["message"]
    # No list of signers says whose signature that is: no verdict, it counts for nothing, and the incident says why.
    stack.plane.kubectl(
        "wait", "incident", incident.metadata.name, "-n", stack.namespace, "--timeout=60s",
        '--for=jsonpath={.status.conditions[?(@.type=="Approved")].message}=0/1 approved; Approve '
        f"{unknown}: there is no ConfigMap praxis-allowed-signers in the namespace of the installation; "
        "an admin lists there who signs with which key",
    )  # fmt: skip
    waits = stack.plane.kubectl("get", "incidentapproval", unknown, "-n", stack.namespace, "-o", "json")
    assert "verdict" not in json.loads(waits.stdout).get("status", {})
    assert stack.incident(incident.metadata.name).status.phase is Phase.AWAITING_APPROVAL
    assert stack.emulator.dispatches() == []


def _gone(stack: Stack) -> bool:
    """Whether the API server has heard that the bindings are gone: a robot's approval passes a dry run."""
    document = builders.manifest(builders.approval("system:serviceaccount:shop:robot"))
    document["metadata"] = {"name": "probe", "namespace": stack.namespace}
    done = stack.plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(document), check=False)
    return done.returncode == 0
