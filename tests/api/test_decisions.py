"""What a person said stays, in the default installation: no robot deletes it, nor has it deleted."""

from __future__ import annotations

import pytest

from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import Resource
from tests.api.conftest import People
from tests.api.test_admission import (
    ARMOUR,
    GARBAGE_COLLECTOR,
    NAMESPACE_CONTROLLER,
    OTHER_ROBOT,
    ROBOTS,
    an_object,
    forbidden,
    gone,
    named,
    path,
    statement,
)

pytestmark = pytest.mark.controlplane


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("kind", [IncidentApproval, IncidentReconciliation], ids=named)
async def test_robots_delete_no_decision(people: People, kind: type[Resource], robot: str) -> None:
    """Neither by name, nor with all of them, nor through the garbage collector: what a person said is still there."""
    at = path(kind, await an_object(people, kind))
    kube = await people.almighty(robot)
    said = (
        "robots delete no decision; an account that was opted in prunes what people signed: an Approve, and any other "
        f"once it has its verdict; {robot} is a robot"
    )
    for each in (at, path(kind)):
        assert said in await forbidden(kube.delete(each))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}
    await forbidden(kube.merge_patch(at, {"metadata": {"ownerReferences": [owner]}}))
    assert "ownerReferences" not in (await kube.get(at)).document["metadata"]


@pytest.mark.parametrize("decision", ["Approve", "Reject"])
async def test_robots_delete_no_signed_decision(people: People, decision: str) -> None:
    """Nobody is opted in by default: that a decision is signed makes it nobody's to prune."""
    alice = await people.person("alice", "praxis-approvers")
    document = statement(IncidentApproval, "alice")
    document["spec"] |= {"decision": decision, "signature": ARMOUR}
    name = (await alice.create(path(IncidentApproval), document)).document["metadata"]["name"]
    robot = await people.almighty(OTHER_ROBOT)
    assert "robots delete no decision" in await forbidden(robot.delete(path(IncidentApproval, name)))


@pytest.mark.parametrize("collector", [GARBAGE_COLLECTOR, NAMESPACE_CONTROLLER])
async def test_people_may_have_a_decision_collected(people: People, collector: str) -> None:
    """What a person ties to an owner goes with it, and all of them with their namespace."""
    admin = await people.almighty("admin")
    at = path(IncidentApproval, await an_object(people, IncidentApproval))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}
    stored = (await admin.merge_patch(at, {"metadata": {"ownerReferences": [owner]}})).document
    await (await people.almighty(OTHER_ROBOT)).merge_patch(at, {"metadata": {"labels": {"seen": "true"}}})
    assert await gone(await people.almighty(collector), IncidentApproval, stored)
