"""AwaitingApproval: what people decide leads on, and nothing else but a clear alert or time does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from praxis.api.approval import Decision, IncidentApproval
from praxis.api.incident import BoundApproval, EntryKind, Incident
from praxis.api.plan import ActionType, Tier
from praxis.api.reasons import ConditionType, Reason
from praxis.api.records import statement_record
from praxis.machine import Phase
from praxis.phases import awaiting_approval
from praxis.phases.contract import ConditionUpdate, Record, Transition, Wait
from praxis.settings import OperatorSettings
from tests import builders
from tests.phases.world import World

CLEAR = {"alerts": [builders.alert(firing=False)]}
DAY = 24 * 3600.0


def said(by: str, decision: Decision = Decision.APPROVE, **more: Any) -> IncidentApproval:
    return builders.approval(by, decision=decision, **more)


async def decided(
    *approvals: IncidentApproval, incident: Incident | None = None, world: World | None = None, **settings: Any
) -> Transition | Wait:
    made = world or World()
    made.say(*approvals)
    tools = made.tools(settings=OperatorSettings(**settings))
    return await awaiting_approval.reconcile(incident or builders.incident(), tools)


def pending(message: str) -> ConditionUpdate:
    return ConditionUpdate(ConditionType.APPROVED, status=False, reason=Reason.PENDING, message=message)


async def test_nobody_has_decided() -> None:
    """The operator waits until the deadline, a day from when the plan was proposed, and shows who is missing."""
    assert await decided() == Wait(
        # Proposed at 12:00:03, looked at 12:01:00.
        DAY - 57,
        Reason.PENDING,
        conditions=[pending("0/1 approved")],
    )


async def test_an_approval_opens_the_one_door() -> None:
    """The write into Executing binds the approval, tells in the trail who and what, and carries no effect."""
    given = said("alice")
    assert await decided(given) == Transition(
        to=Phase.EXECUTING,
        reason=Reason.APPROVED,
        message="approved by alice",
        changes={
            "approvals": [
                BoundApproval(
                    uid="uid-checkout-latency-1-approve-alice",
                    name="checkout-latency-1-approve-alice",
                    approver="alice",
                    plan_digest=builders.plan().digest,
                    expires_at="2026-01-31T13:00:00.000000Z",
                )
            ],
            "waiting_since": None,
        },
        records=[Record(EntryKind.DECIDED, Reason.APPROVED, actor="alice", document=statement_record(given.dump()))],
        conditions=[
            ConditionUpdate(
                ConditionType.APPROVED, status=True, reason=Reason.APPROVED, message="1/1 approved by alice"
            )
        ],
        then=None,
    )


def dangerous(**given: Any) -> Any:
    return builders.plan(actions=[builders.action(), builders.action(ActionType.ROLLBACK_DEPLOY)], **given)


@pytest.mark.parametrize(
    ("people", "opens"),
    [(["alice"], False), (["alice", "alice"], False), (["alice", "bob"], True)],
    ids=["one", "one twice", "two"],
)
async def test_a_dangerous_plan_takes_two_distinct_people(people: list[str], opens: bool) -> None:
    """The quorum counts people, not approvals."""
    incident = builders.incident(draft=dangerous, approvers=("alice", "bob"))
    assert incident.status.plan is not None
    assert incident.status.plan.tier is Tier.DANGEROUS
    approvals = [said(each, of=incident, name=f"a-{n}") for n, each in enumerate(people)]
    decision = await decided(*approvals, incident=incident)
    if opens:
        assert isinstance(decision, Transition)
        assert [each.approver for each in decision.changes["approvals"]] == ["alice", "bob"]
        assert [each.actor for each in decision.records] == ["alice", "bob"]
    else:
        assert decision == Wait(DAY - 57, Reason.PENDING, conditions=[pending("1/2 approved by alice")])


async def test_a_quorum_that_was_raised_since_counts() -> None:
    """Settings can ask for more people than were shown with the plan, never for fewer."""
    decision = await decided(said("alice"), quorum={"safe": 2})
    assert decision == Wait(DAY - 57, Reason.PENDING, conditions=[pending("1/2 approved by alice")])
    more = builders.incident(approvers=("alice", "bob"))
    assert isinstance(await decided(said("alice", of=more), incident=more, quorum={"safe": 1}), Wait)


async def test_a_reject_asks_for_another_plan_with_what_was_said() -> None:
    """Back to Investigated; the person's words are kept for the next draft."""
    no = said("bob", Decision.REJECT, reason="wrong function")
    assert await decided(said("alice"), no) == Transition(
        to=Phase.INVESTIGATED,
        reason=Reason.REJECTED,
        message="rejected by bob: wrong function",
        changes={"corrections": ["wrong function"]},
        records=[Record(EntryKind.DECIDED, Reason.REJECTED, actor="bob", document=statement_record(no.dump()))],
    )


async def test_a_revise_carries_its_corrections() -> None:
    """Corrections first, then the reason; what was said before stays."""
    incident = builders.incident(corrections=["be careful"])
    revise = said("bob", Decision.REVISE, reason="too broad")
    assert await decided(revise, incident=incident) == Transition(
        to=Phase.INVESTIGATED,
        reason=Reason.REVISION_REQUESTED,
        message="sent back by bob: use a smaller scope; too broad",
        changes={"corrections": ["be careful", "use a smaller scope", "too broad"]},
        records=[
            Record(EntryKind.DECIDED, Reason.REVISION_REQUESTED, actor="bob", document=statement_record(revise.dump()))
        ],
    )


async def test_nothing_that_people_say_of_four_plans_is_dropped() -> None:
    """Each decision brings eight corrections and a reason at most; the status has room for those of every plan."""
    before = [f"c{n}" for n in range(27)]
    more = [f"d{n}" for n in range(8)]
    decision = await decided(
        said("bob", Decision.REVISE, corrections=more, reason="too broad"),
        incident=builders.incident(corrections=before),
    )
    assert isinstance(decision, Transition)
    assert decision.changes["corrections"] == [*before, *more, "too broad"]
    stored = builders.incident(corrections=decision.changes["corrections"])
    assert len(stored.status.corrections) == 36
    with pytest.raises(ValidationError):
        builders.incident(corrections=[*stored.status.corrections, "one too many"])


async def test_a_dismissal_closes() -> None:
    """Nothing is to be done, in a person's own words."""
    dismiss = said("bob", Decision.DISMISS, reason="known, harmless")
    assert await decided(dismiss) == Transition(
        to=Phase.CLOSED,
        reason=Reason.DISMISSED,
        message="dismissed by bob: known, harmless",
        records=[Record(EntryKind.DECIDED, Reason.DISMISSED, actor="bob", document=statement_record(dismiss.dump()))],
    )


@pytest.mark.parametrize(
    ("decision", "reason"),
    [
        (None, Reason.SELF_RESOLVED),
        (Decision.APPROVE, Reason.SELF_RESOLVED),
        (Decision.REJECT, Reason.SELF_RESOLVED),
        (Decision.REVISE, Reason.SELF_RESOLVED),
        (Decision.DISMISS, Reason.DISMISSED),
    ],
    ids=str,
)
async def test_a_cleared_alert_closes_whatever_people_say(decision: Decision | None, reason: Reason) -> None:
    """Nothing runs when nothing fires; a dismissal says more than the clearing, so it is what is recorded."""
    approvals = [said("alice", decision)] if decision else []
    found = await decided(*approvals, incident=builders.incident(spec=CLEAR))
    assert isinstance(found, Transition)
    assert (found.to, found.reason, found.then) == (Phase.CLOSED, reason, None)


@pytest.mark.parametrize(
    ("waited", "expected"),
    [(DAY - 1, Wait), (DAY, Transition), (DAY + 1, Transition)],
    ids=["a second before", "at", "after"],
)
async def test_the_deadline(waited: float, expected: type) -> None:
    """An incident that nobody decides on within a day is closed, so that the next alert opens another."""
    world = World()
    world.time.wall = builders.NOW + timedelta(seconds=3 + waited)
    decision = await decided(world=world)
    assert isinstance(decision, expected)
    if isinstance(decision, Transition):
        assert decision == Transition(
            to=Phase.CLOSED,
            reason=Reason.APPROVAL_EXPIRED,
            message="nobody decided within 86400 s; if the alert fires on, its next repeat opens a new incident",
        )
    else:
        assert decision.seconds == 1


async def test_an_approval_that_waited_while_the_operator_was_down_still_counts() -> None:
    """Past the deadline, an unexpired approval runs: people were in time, the operator was not."""
    world = World()
    world.time.wall = builders.NOW + timedelta(days=2)
    given = said("alice", created=builders.NOW + timedelta(days=2) - timedelta(minutes=5))
    decision = await decided(given, world=world)
    assert isinstance(decision, Transition)
    assert decision.to is Phase.EXECUTING


@pytest.mark.parametrize(
    ("ours", "servers"),
    [(timedelta(hours=2), timedelta(0)), (timedelta(0), timedelta(hours=2)), (timedelta(hours=2), timedelta(hours=2))],
    ids=["late on ours", "late on the API server's", "late on both"],
)
async def test_an_approval_must_be_in_time_on_both_clocks(ours: timedelta, servers: timedelta) -> None:
    """One wrong clock cannot open the door."""
    world = World()
    world.time.wall = builders.NOW + timedelta(minutes=1) + ours
    world.server_now = lambda: builders.NOW + timedelta(minutes=1) + servers
    decision = await decided(said("alice"), world=world)
    assert isinstance(decision, Wait)
    assert decision.conditions == [pending("0/1 approved")]


@pytest.mark.parametrize(
    "spoilt",
    [
        {"plan_digest": "sha256:" + "0" * 64},
        {"username": "system:serviceaccount:praxis-system:praxis-operator"},
        {"signature": "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"},
        {"deleted": True},
    ],
    ids=["another plan's digest", "a service account", "a signature that nobody verified", "being deleted"],
)
async def test_what_is_no_approval_of_this_plan_by_a_person_opens_nothing(spoilt: dict[str, Any]) -> None:
    """The door asks for a person's own word on this very plan."""
    given = said(spoilt.pop("username", "alice"), **spoilt)
    assert isinstance(await decided(given), Wait)


async def test_a_stored_plan_that_was_altered_cannot_be_approved() -> None:
    """The digest is computed again from what would run, and compared with what was approved."""
    plan = builders.plan()
    altered = plan.replace(actions=[plan.actions[0].replace(effect="something else")])
    incident = builders.incident(plan=altered)
    assert isinstance(await decided(said("alice", of=incident), incident=incident), Wait)
