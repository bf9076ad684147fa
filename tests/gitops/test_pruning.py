"""What an opted-in account may prune, of what people signed. No operator works here: the tests give verdicts."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from praxis.api.approval import IncidentApproval
from praxis.controlplane import ControlPlane
from praxis.errors import Refused
from praxis.kube import Kube
from tests.api.conftest import People, install_guards
from tests.api.test_admission import ARMOUR, OTHER_ROBOT, forbidden, path, statement

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parents[2]
CONTROLLER = "system:serviceaccount:argocd:argocd-application-controller"
IN_FORCE_SECONDS = 60.0
SAID = "robots delete no decision; an account that was opted in prunes what people signed"


@pytest.fixture(scope="module")
def opted_in() -> Iterator[ControlPlane]:
    """A control plane with the overlay; its policies come into force a second or two later."""
    with ControlPlane.start() as plane:
        install_guards(plane)
        plane.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(ROOT / "overlays/argocd"))
        yield plane


@pytest.fixture
async def anybody(opted_in: ControlPlane) -> AsyncIterator[People]:
    """Anybody on it, once the account may prune an Approve."""
    async with contextlib.AsyncExitStack() as stack:
        people = People(opted_in, stack)
        at, robot = await decided(people, "Approve"), await people.almighty(CONTROLLER)
        deadline = time.monotonic() + IN_FORCE_SECONDS
        while await stays(robot, at):
            assert time.monotonic() < deadline, "the overlay's policy is not in force"
            await asyncio.sleep(0.1)
        yield people


async def stays(kube: Kube, at: str) -> bool:
    """Whether it cannot be deleted."""
    try:
        await kube.delete(at)
    except Refused:
        return True
    return False


async def decided(people: People, decision: str, *, signed: bool = True) -> str:
    """Where a person's decision is."""
    document = statement(IncidentApproval, "alice")
    document["spec"] |= {"decision": decision}
    if signed:
        document["spec"]["signature"] = ARMOUR
    alice = await people.person("alice", "praxis-approvers")
    return path(IncidentApproval, (await alice.create(path(IncidentApproval), document)).document["metadata"]["name"])


async def test_an_approve_is_pruned_by_that_account_only(anybody: People) -> None:
    """Another robot with every right of RBAC deletes none."""
    at = await decided(anybody, "Approve")
    assert SAID in await forbidden((await anybody.almighty(OTHER_ROBOT.replace("argocd:", "ci:"))).delete(at))
    await (await anybody.almighty(CONTROLLER)).delete(at)


@pytest.mark.parametrize("verdict", ["Accepted", "Refused"])
@pytest.mark.parametrize("decision", ["Reject", "Revise", "Dismiss"])
async def test_a_no_is_pruned_once_it_has_its_verdict(anybody: People, decision: str, verdict: str) -> None:
    """Before that it stands, whoever signed it; also against the deletion of all, and the garbage collector."""
    at, robot = await decided(anybody, decision), await anybody.almighty(CONTROLLER)
    assert SAID in await forbidden(robot.delete(at))
    assert SAID in await forbidden(robot.delete(path(IncidentApproval)))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}
    for metadata in ({"ownerReferences": [owner]}, {"finalizers": ["example.com/keep"]}):
        assert f"robots add no {next(iter(metadata))} to a decision" in await forbidden(
            robot.merge_patch(at, {"metadata": metadata})
        )
    status = {"verdict": verdict, "reason": "Because", "message": "so it is"}
    await (await anybody.operator()).merge_patch(f"{at}/status", {"status": status})
    await robot.delete(at)


async def test_what_is_not_signed_is_not_pruned(anybody: People) -> None:
    """An Approve under a person's own name is theirs, and stays, whatever its verdict."""
    at, robot = await decided(anybody, "Approve", signed=False), await anybody.almighty(CONTROLLER)
    status = {"verdict": "Accepted", "reason": "Accepted", "message": "so it is"}
    await (await anybody.operator()).merge_patch(f"{at}/status", {"status": status})
    assert SAID in await forbidden(robot.delete(at))


@pytest.mark.parametrize("field", ["ownerReferences", "finalizers"])
async def test_it_is_not_passed_on_with_an_owner(anybody: People, field: str) -> None:
    """What the account creates is neither collected nor kept."""
    document = statement(IncidentApproval, "alice")
    document["spec"] |= {"decision": "Reject", "signature": ARMOUR}
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}
    value = {"ownerReferences": [owner], "finalizers": ["example.com/keep"]}[field]
    robot = await anybody.almighty(CONTROLLER)
    document["metadata"][field] = value
    assert f"robots add no {field} to a decision" in await forbidden(robot.create(path(IncidentApproval), document))
    del document["metadata"][field]
    await robot.create(path(IncidentApproval), document)
