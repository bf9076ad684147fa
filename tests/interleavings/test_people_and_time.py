"""Decisions that come late, expire or overlap, policies that were absent for a while, and clocks that disagree.

Each test's docstring ends with the guard without which it fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from praxis.api.approval import Decision, IncidentApproval
from praxis.api.incident import Result
from praxis.demo.stack import wait_for_policies
from praxis.errors import Refused
from praxis.kube import Kube, path_of
from praxis.machine import Phase
from tests import builders
from tests.interleavings.house import House, outcome_of
from tests.interleavings.test_writers import BEFORE_THE_SEND, SETTLED_AFTER_SECONDS

pytestmark = pytest.mark.controlplane

BINDING = "praxis-approvals-by-people"
HOUR = timedelta(hours=1)
LEADS_TO = {
    Decision.REJECT: (Phase.INVESTIGATED, "Rejected"),
    Decision.REVISE: (Phase.INVESTIGATED, "RevisionRequested"),
    Decision.DISMISS: (Phase.CLOSED, "Dismissed"),
}
NOES = (Decision.REJECT, Decision.REVISE, Decision.DISMISS)
"""From the one that goes before the others."""


async def test_a_reject_created_before_the_gate_whose_event_comes_after_it(house: House) -> None:
    """It is never delivered at all: the gate lists what is stored, and finds it.

    Guard: the gate lists decisions anew (`gate.approvals_lapsed`), whatever a watch has told.
    """
    operator = house.operator()
    await operator.accepts()
    await house.say("bob", Decision.REJECT)
    after = await operator.until(Phase.INVESTIGATED)
    assert (after.status.reason, after.status.steps) == ("Rejected", [])
    assert await house.verdict("bob", Decision.REJECT) == ("Accepted", "Accepted")
    assert house.sent() == []


@pytest.mark.parametrize("no", NOES)
async def test_a_late_no_against_a_quorum_at_acceptance(house: House, no: Decision) -> None:
    """Two people approve, which is enough; a third said no, and no event of that ever comes.

    Guard: acceptance lists decisions consistently and judges a no first (`judge`, `PRECEDENCE`).
    """
    operator = house.operator()
    await operator.proposes(dangerous=True)
    await house.say("alice")
    await operator.look()
    approved = (await house.incident()).status.condition("Approved")
    assert approved is not None
    assert (approved.status, approved.message) == ("False", "1/2 approved by alice")
    await house.say("bob", no)
    await house.say("carol")
    phase, reason = LEADS_TO[no]
    after = await operator.until(phase)
    assert (after.status.reason, after.status.approvals) == (reason, [])
    assert house.sent() == []


@pytest.mark.parametrize("no", NOES)
async def test_a_late_no_against_a_quorum_at_the_gate(house: House, no: Decision) -> None:
    """The quorum was accepted; a no that came since counts as long as nothing was sent.

    Guard: the gate's look for objections (`approval.gate._objection`).
    """
    operator = house.operator()
    await operator.proposes(dangerous=True)
    await house.say("alice")
    await house.say("carol")
    executing = await operator.until(Phase.EXECUTING)
    assert {each.approver for each in executing.status.approvals} == {"alice", "carol"}
    await house.say("bob", no)
    phase, reason = LEADS_TO[no]
    after = await operator.until(phase)
    assert (after.status.reason, after.status.steps) == (reason, [])
    assert house.sent() == []


@pytest.mark.parametrize(("leads", "follows"), [(NOES[0], NOES[1]), (NOES[0], NOES[2]), (NOES[1], NOES[2])])
@pytest.mark.parametrize("accepted", [False, True], ids=["at acceptance", "at the gate"])
async def test_a_late_no_that_goes_before_an_earlier_one(
    house: House, *, leads: Decision, follows: Decision, accepted: bool
) -> None:
    """Reject > Revise > Dismiss > Approve, whichever came first.

    Guard: the order of `PRECEDENCE`.
    """
    operator = house.operator()
    await operator.proposes()
    await house.say("alice")
    if accepted:
        await operator.until(Phase.EXECUTING)
    await house.say("bob", follows)
    await house.say("carol", leads)
    phase, reason = LEADS_TO[leads]
    after = await operator.until(phase, *(Phase.CLOSED,))
    assert (after.status.phase, after.status.reason) == (phase, reason)
    assert house.sent() == []


@asynccontextmanager
async def absent(house: House) -> AsyncIterator[None]:
    """The binding that lets only people approve is not there; it is restored and in force again afterwards."""
    found = house.plane.kubectl("get", "validatingadmissionpolicybinding", BINDING, "-o", "json").stdout
    document = json.loads(found)
    kept = {"name": BINDING, "labels": document["metadata"].get("labels", {})}
    house.plane.kubectl("delete", "validatingadmissionpolicybinding", BINDING)
    try:
        yield
    finally:
        restored = {**document, "metadata": kept}
        restore = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        await asyncio.to_thread(house.plane.kubectl, *restore, stdin=json.dumps(restored))
        await asyncio.to_thread(wait_for_policies, house.plane)


async def test_a_policy_binding_absent_while_an_approval_is_created_and_later_restored(house: House) -> None:
    """A service account approves as alice in that moment: the approval is stored, and is void.

    Guard: the gate compares uid and generation of policies with those at planning (`gate.installation_differs`).
    """
    operator = house.operator()
    incident = await operator.proposes()
    house.plane.create_service_account(house.namespace, "robot")
    house.plane.kubectl(
        "create", "rolebinding", "robot", "-n", house.namespace, "--clusterrole=praxis-approver",
        f"--serviceaccount={house.namespace}:robot",
    )  # fmt: skip
    forged = builders.manifest(builders.approval("alice", of=incident, expires=house.time.wall + HOUR))
    account = house.plane.service_account_kubeconfig(house.namespace, "robot")
    async with await Kube.connect(account) as robot, absent(house):
        await created(robot, house, forged)
    executing = await operator.until(Phase.EXECUTING)
    assert [each.approver for each in executing.status.approvals] == ["alice"]
    after = await operator.until(Phase.INVESTIGATED)
    assert (after.status.reason, after.status.steps) == ("PoliciesChanged", [])
    assert BINDING in (after.status.message or "")
    assert house.sent() == []


async def created(robot: Kube, house: House, forged: dict[str, object]) -> None:
    """Once the API server has noticed that the binding is gone: for a second or so the policy still refuses."""
    while True:
        try:
            await robot.create(path_of(IncidentApproval, house.namespace), forged)
        except Refused as error:
            if "people" not in str(error):
                raise
        else:
            return


async def test_a_policy_binding_absent_and_restored_between_plan_and_gate_with_nothing_else(house: House) -> None:
    """Nobody used the moment, which nobody can know: an honest approval is void as well.

    Guard: as above; that the policies are right again now does not help.
    """
    operator = house.operator()
    await operator.proposes()
    await house.say("alice")
    await operator.until(Phase.EXECUTING)
    async with absent(house):
        pass
    after = await operator.until(Phase.INVESTIGATED)
    assert (after.status.reason, after.status.steps) == ("PoliciesChanged", [])
    assert house.sent() == []


async def test_an_approval_that_expires_while_the_operator_is_down(house: House) -> None:
    """It is refused as expired, the plan still waits, and another approval carries it.

    Guard: expiry on both clocks (`Clocks.standing`).
    """
    await house.operator("before").proposes()
    await house.say("alice", hours=1)
    await house.forward(hours=2)
    operator = house.operator("after")
    await operator.look()
    assert (await house.incident()).status.phase is Phase.AWAITING_APPROVAL
    assert await house.verdict("alice") == ("Refused", "Expired")
    assert house.sent() == []


async def test_an_approval_that_expires_while_the_operator_is_down_after_it_was_accepted(house: House) -> None:
    """Accepted in time is not enough: it must stand at the gate.

    Guard: the gate looks at the expiry again (`approval.gate._lapsed`).
    """
    before = house.operator("before")
    await before.proposes()
    await house.say("alice", hours=1)
    await before.until(Phase.EXECUTING)
    await house.forward(hours=2)
    after = await house.operator("after").until(Phase.INVESTIGATED)
    assert (after.status.reason, after.status.steps) == ("Expired", [])
    assert house.sent() == []


async def test_an_approval_that_does_not_expire_while_the_operator_is_down(house: House) -> None:
    """Waiting costs it nothing: it still counts.

    Guard: nothing but expiry ages an approval; mutated by a limit of an hour on its age.
    """
    await house.operator("before").proposes()
    await house.say("alice", hours=3)
    await house.forward(hours=2)
    after = await house.operator("after").until(Phase.OBSERVING)
    assert outcome_of(after) == (Result.APPLIED, "Restarted")
    assert await house.verdict("alice") == ("Accepted", "Accepted")
    assert house.sent() == [True]


@pytest.mark.parametrize("off", [HOUR, -HOUR], ids=["the operator is ahead", "the operator is behind"])
async def test_clocks_an_hour_apart_neither_use_nor_refuse_a_doubtful_approval(house: House, off: timedelta) -> None:
    """It is late by one of the two clocks: in doubt, it is not acted on, and not refused for good.

    Guard: in time on both to run, late on both to be refused (`Clocks.standing`).
    """
    operator = house.operator(off=off)
    await operator.proposes()
    await house.say("alice", hours=0.5)
    if off < timedelta(0):
        await house.forward(minutes=45)  # late for the API server, early for the operator
    await operator.look()
    assert (await house.incident()).status.phase is Phase.AWAITING_APPROVAL
    assert await house.verdict("alice") == (None, None)
    assert house.sent() == []


@pytest.mark.parametrize("off", [HOUR, -HOUR], ids=["the operator is ahead", "the operator is behind"])
async def test_clocks_an_hour_apart_do_not_disturb_an_approval_that_is_in_time_on_both(
    house: House, off: timedelta
) -> None:
    """The whole way to Observing, one send.

    Guard: no deadline of an action is taken from wall clocks; mutated by a dispatch window on `clock.now()`.
    """
    operator = house.operator(off=off)
    await operator.accepts()
    after = await operator.until(Phase.OBSERVING)
    assert outcome_of(after) == (Result.APPLIED, "Restarted")
    assert house.sent() == [True]


@pytest.mark.parametrize("off", [HOUR, -HOUR], ids=["the successor is behind", "the successor is ahead"])
async def test_two_operators_whose_clocks_are_an_hour_apart(house: House, off: timedelta) -> None:
    """The successor waits on its own boot clock from when it first saw the intent, whatever time stands in that.

    Guard: `Sightings.first_seen`, instead of the intent's own time.
    """
    writer = house.operator("writer", off=off, booted=900)
    successor = house.operator("successor", off=-off / 60, booted=0)
    await writer.accepts()
    async with house.held(BEFORE_THE_SEND) as reached:
        sending = writer.executes()
        assert await asyncio.to_thread(reached)
        for _ in range(3):
            later = await successor.look()
            assert later.seconds is not None
            assert 0 < later.seconds <= SETTLED_AFTER_SECONDS + 5
        assert (await house.incident()).status.open_step is not None
    await sending
    assert outcome_of(await house.incident()) == (Result.APPLIED, "Restarted")
    assert house.sent() == [True]
