"""Who may act on a target: one incident at a time, and nobody while an outcome is unknown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from praxis.api.approval import Observed
from praxis.api.base import Condition, IntentId
from praxis.api.incident import Incident
from praxis.api.reasons import Reason
from praxis.api.target import Holder
from praxis.errors import RetryLater, Superseded
from praxis.machine import Phase
from praxis.phases import executing, holding
from praxis.phases.contract import Transition, Wait
from tests import builders
from tests.phases.world import World, held, holder, renamed
from tests.phases.world import executing as executing_world

OTHER_UID = "99999999-9999-4999-8999-999999999999"
MINE = IntentId("intent-mine-0001")


def occupied(by: Holder, other: Incident | None = None) -> tuple[World, Incident]:
    """A world in which the target is held."""
    world, incident = executing_world()
    world.declare(held(builders.target(), by))
    if other is not None:
        world.keep(other)
    return world, incident


def another(phase: Phase, **changes: object) -> Incident:
    return builders.incident(phase, name="other-1", uid=OTHER_UID, **changes)


def reconciled(status: str) -> list[Condition]:
    return [
        Condition(
            type="Reconciled", status=status, reason="Reconciled", last_transition_time="2026-01-31T12:00:00.000000Z"
        )
    ]


def finding(**changes: object) -> object:
    on = another(Phase.RECONCILIATION_REQUIRED)
    fields: dict[str, object] = {"intent_id": "intent-of-the-other", "observed": Observed.NOT_APPLIED}
    username = str(changes.pop("username", "alice"))
    return builders.reconciliation(username, of=on, **{**fields, **changes})


async def claimed(world: World, incident: Incident) -> bool:
    (target,) = world.targets.values()
    return await holding.claim(incident, target, MINE, world.tools()) is not None


async def test_a_free_target_is_claimed_with_who_and_for_what() -> None:
    """The holder names incident, revision, intent and process."""
    world, incident = executing_world()
    assert await claimed(world, incident)
    (target,) = world.targets.values()
    assert target.status.holder == Holder(
        incident_uid=builders.INCIDENT_UID,
        incident_name="checkout-latency-1",
        revision=1,
        intent_id="intent-mine-0001",
        writer="writer-a",
        claimed_at="2026-01-31T12:01:00.000000Z",
    )


@pytest.mark.parametrize(
    ("phase", "free"),
    [
        (Phase.NEW, True),
        (Phase.TRIAGED, True),
        (Phase.INVESTIGATED, True),
        (Phase.AWAITING_APPROVAL, True),
        (Phase.EXECUTING, False),
        (Phase.OBSERVING, False),
        (Phase.RESOLVED, True),
        (Phase.CLOSED, True),
        (Phase.FAILED, True),
        (Phase.RECONCILIATION_REQUIRED, False),
    ],
)
async def test_a_holder_stands_while_its_incident_acts_or_its_outcome_is_unknown(phase: Phase, free: bool) -> None:
    """Void in any other phase: a holder that nobody removed blocks nobody for good."""
    world, incident = occupied(holder(), another(phase))
    assert await claimed(world, incident) is free


@pytest.mark.parametrize(("status", "free"), [("False", False), ("Unknown", False), ("True", True)])
async def test_an_unknown_outcome_holds_until_a_person_has_reconciled_it(status: str, free: bool) -> None:
    """The condition on the incident says so, and nothing else does."""
    other = another(Phase.RECONCILIATION_REQUIRED, conditions=reconciled(status))
    world, incident = occupied(holder(), other)
    assert await claimed(world, incident) is free


async def test_the_holder_of_an_incident_that_is_gone_stands() -> None:
    """Its request may still be under way, and nothing is left that would say."""
    world, incident = occupied(holder())
    assert not await claimed(world, incident)


async def test_a_namesake_is_not_the_incident_that_holds() -> None:
    """An incident of the same name with another uid says nothing of the one that is gone."""
    world, incident = occupied(holder(), builders.incident(Phase.CLOSED, name="other-1", uid="uid-namesake"))
    assert not await claimed(world, incident)


@pytest.mark.parametrize(
    ("found", "free"),
    [
        (finding(), True),
        (finding(intent_id="intent-of-nobody"), False),
        (finding(username="system:serviceaccount:shop:robot"), False),
        (finding(deleted=True), False),
    ],
    ids=["names the intent", "names another intent", "by a robot", "being deleted"],
)
async def test_a_persons_finding_frees_the_target_of_an_incident_that_is_gone(found: object, free: bool) -> None:
    """It must name the very intent that holds."""
    world, incident = occupied(holder())
    world.find(found)  # type: ignore[arg-type]
    assert await claimed(world, incident) is free


async def test_our_own_earlier_claim_is_claimed_over() -> None:
    """A paused process that wakes up with the former intent finds that it holds nothing any more."""
    world, incident = occupied(holder(incident_uid=builders.INCIDENT_UID, intent_id="intent-before"))
    (target,) = world.targets.values()
    assert await claimed(world, incident)
    assert not await holding.still_held(target, IntentId("intent-before"), world.tools())
    assert await holding.still_held(target, MINE, world.tools())


def by_another(world: World) -> None:
    world.declare(held(builders.target(), holder()))


def redeclared(world: World) -> None:
    world.targets.clear()
    world.declare(renamed(builders.target(), uid="uid-new"))


@pytest.mark.parametrize("race", [by_another, redeclared], ids=["another incident", "declared anew"])
async def test_a_lost_race_is_superseded(race: Callable[[World], None]) -> None:
    """Two that see a free target at the same moment: one claims, the other looks again and writes no intent."""
    world, incident = executing_world()
    world.cluster.before("claim", lambda: race(world))
    with pytest.raises(Superseded, match="target shop/checkout-fn changed since it was read"):
        await executing.reconcile(incident, world.tools())
    assert world.function.looks == 0


async def test_a_holder_that_acts_again_meanwhile_is_not_claimed_over() -> None:
    """Its incident was seen outside Executing, but it claimed before we did: the swap fails."""
    world, incident = occupied(holder(), another(Phase.INVESTIGATED))
    world.cluster.before("claim", lambda: by_another(world))
    with pytest.raises(Superseded):
        await claimed(world, incident)


async def test_a_held_target_is_waited_for() -> None:
    """Nothing is written about the phase; the incident shows as stalled and who holds the target."""
    world, incident = occupied(holder(), another(Phase.EXECUTING))
    assert await executing.reconcile(incident, world.tools()) == Wait(
        15.0,
        Reason.TARGET_HELD,
        "target checkout-fn is held by incident other-1 until that ends; "
        "if its outcome is unknown or it is gone, `praxis reconcile other-1` frees the target",
        stalled=True,
    )
    assert world.function.looks == 0


async def test_waiting_for_a_target_ends_with_the_approvals() -> None:
    """When they expire, the plan is drafted and people are asked again."""
    world, incident = occupied(holder(), another(Phase.EXECUTING))
    world.time.wall = builders.NOW + timedelta(hours=2)
    decision = await executing.reconcile(incident, world.tools())
    assert isinstance(decision, Transition)
    assert (decision.to, decision.reason) == (Phase.INVESTIGATED, Reason.EXPIRED)


async def test_whose_incident_cannot_be_read_keeps_holding() -> None:
    """A failed read is not an incident that is gone."""
    world, incident = occupied(holder(), another(Phase.CLOSED))
    world.cluster.fail("incident", RetryLater("the API server is away"))
    with pytest.raises(RetryLater):
        await claimed(world, incident)
    assert world.targets[builders.TARGET_UID].status.holder == holder()


@pytest.mark.parametrize(
    ("by", "left"),
    [
        (holder(incident_uid=builders.INCIDENT_UID), False),
        (holder(), True),
        (holder(incident_uid=builders.INCIDENT_UID, revision=2), True),
    ],
    ids=["our own", "another's", "our own, of the next plan already"],
)
async def test_only_the_claim_of_the_plan_that_ended_is_released(by: Holder, left: bool) -> None:
    """A process that was paused must not free what the next plan of the same incident has claimed meanwhile."""
    world, incident = occupied(by)
    await holding.release(incident, world.tools())
    assert (world.targets[builders.TARGET_UID].status.holder is not None) is left


async def test_a_target_that_changed_meanwhile_is_not_released() -> None:
    """Releasing is a compare-and-swap too."""
    world, incident = occupied(holder(incident_uid=builders.INCIDENT_UID))
    world.cluster.before("release", lambda: by_another(world))
    with pytest.raises(Superseded):
        await holding.release(incident, world.tools())
    assert world.targets[builders.TARGET_UID].status.holder == holder()


async def test_a_target_that_is_gone_is_held_by_nobody() -> None:
    """Nothing may be sent to what is not declared any more."""
    world, _ = executing_world()
    (target,) = world.targets.values()
    world.targets.clear()
    assert not await holding.still_held(target, MINE, world.tools())


@pytest.mark.parametrize(
    ("other", "found", "left"),
    [
        (another(Phase.RESOLVED), None, False),
        (another(Phase.OBSERVING), None, True),
        (another(Phase.RECONCILIATION_REQUIRED), None, True),
        (another(Phase.RECONCILIATION_REQUIRED, conditions=reconciled("True")), None, False),
        (None, None, True),
        (None, finding(), False),
    ],
    ids=["ended", "observing", "unknown", "reconciled", "gone", "gone and reconciled"],
)
async def test_a_claim_that_its_process_did_not_come_to_release_is_released(
    other: Incident | None, found: object, left: bool
) -> None:
    """Otherwise a target whose holder is over could never be deleted; a claim that stands is not touched."""
    world, _ = occupied(holder(), other)
    if found is not None:
        world.find(found)  # type: ignore[arg-type]
    await holding.release_void(world.tools())
    assert (world.targets[builders.TARGET_UID].status.holder is not None) is left


async def test_a_void_claim_that_was_made_anew_meanwhile_is_not_released() -> None:
    """Judged and removed by compare-and-swap; the other targets are looked at all the same."""
    world, _ = occupied(holder(), another(Phase.RESOLVED))
    world.cluster.before("release", lambda: by_another(world))
    await holding.release_void(world.tools())
    assert world.targets[builders.TARGET_UID].status.holder == holder()
