"""The gate: every way in which what was approved may no longer be true, each on its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from praxis.api.approval import Decision
from praxis.api.incident import EntryKind, Guard, Incident
from praxis.api.plan import ActionType
from praxis.api.reasons import Reason
from praxis.api.records import statement_record
from praxis.errors import NeedsPerson, RetryLater
from praxis.machine import Phase
from praxis.phases import executing, gate
from praxis.phases.contract import Record, Transition
from tests import builders
from tests.phases.world import GUARD, World, renamed
from tests.phases.world import executing as executing_world

ALICE = "uid-checkout-latency-1-approve-alice"


async def shut(world: World, incident: Incident) -> Transition | None:
    return await gate.shut(incident, world.tools())


async def test_the_gate_is_open_while_everything_is_as_it_was() -> None:
    """A usual approved incident passes."""
    assert await shut(*executing_world()) is None


async def test_a_cleared_alert_closes_before_anything_is_done() -> None:
    """No action for an alert that is over."""
    world, incident = executing_world()
    cleared = incident.replace(spec=incident.spec.replace(alerts=[builders.alert(firing=False)]))
    assert await shut(world, cleared) == Transition(
        to=Phase.CLOSED, reason=Reason.SELF_RESOLVED, message="all 1 alerts cleared before anything was done"
    )


def altered(world: World, incident: Incident) -> Incident:
    plan = incident.status.plan
    assert plan is not None
    other = plan.replace(actions=[plan.actions[0].replace(rollback="something else")])
    return incident.replace(status=incident.status.replace(plan=other))


def withdrawn(world: World, incident: Incident) -> Incident:
    del world.approvals[ALICE]
    return incident


def being_deleted(world: World, incident: Incident) -> Incident:
    given = world.approvals[ALICE]
    world.say(renamed(given, deletion_timestamp="2026-01-31T12:00:30Z"))  # type: ignore[arg-type]
    return incident


def reworded(world: World, incident: Incident) -> Incident:
    given = world.approvals[ALICE]
    world.say(given.replace(spec=given.spec.replace(reason="another reason")))
    return incident


def extended(world: World, incident: Incident) -> Incident:
    given = world.approvals[ALICE]
    world.say(given.replace(spec=given.spec.replace(expires_at="2027-01-31T12:00:00.000000Z")))
    return incident


def late_on_ours(world: World, incident: Incident) -> Incident:
    world.time.wall = builders.NOW + timedelta(hours=1, seconds=4)
    world.server_now = lambda: builders.NOW
    return incident


def late_on_the_servers(world: World, incident: Incident) -> Incident:
    world.server_now = lambda: builders.NOW + timedelta(hours=1, seconds=4)
    return incident


def no_quorum(world: World, incident: Incident) -> Incident:
    return incident.replace(status=incident.status.replace(approvals_required=2))


def new_generation(world: World, incident: Incident) -> Incident:
    world.guards = [GUARD.replace(generation=2)]
    return incident


def new_uid(world: World, incident: Incident) -> Incident:
    world.guards = [GUARD.replace(uid="g2")]
    return incident


def one_more(world: World, incident: Incident) -> Incident:
    world.guards = [GUARD, Guard(kind="ValidatingAdmissionPolicy", name="more", uid="g3", generation=1)]
    return incident


def one_less(world: World, incident: Incident) -> Incident:
    world.guards = []
    return incident


def not_as_built(world: World, incident: Incident) -> Incident:
    world.cluster.fail("guards", NeedsPerson("a binding is missing", reason="InstallationDiffers"))
    return incident


def target_gone(world: World, incident: Incident) -> Incident:
    world.targets.clear()
    return incident


def target_declared_anew(world: World, incident: Incident) -> Incident:
    world.targets.clear()
    world.declare(renamed(builders.target(), uid="uid-new"))
    return incident


def target_elsewhere(world: World, incident: Incident) -> Incident:
    world.declare(builders.target(namespace="payments"))
    return incident


def target_of_another_generation(world: World, incident: Incident) -> Incident:
    world.declare(renamed(builders.target(), generation=2))
    return incident


def target_being_deleted(world: World, incident: Incident) -> Incident:
    world.declare(renamed(builders.target(), deletion_timestamp="2026-01-31T12:00:30Z"))
    return incident


def target_not_disposable(world: World, incident: Incident) -> Incident:
    world.declare(builders.target(disposable=False))
    return incident


def function_shared(world: World, incident: Incident) -> Incident:
    world.declare(renamed(builders.target("other", namespace="payments"), uid="uid-other"))
    return incident


Spoil = Callable[[World, Incident], Incident]
FAULTS: list[tuple[Spoil, Reason, str]] = [
    (altered, Reason.PLAN_DRIFTED, "the stored plan is not the one that was approved"),
    (withdrawn, Reason.APPROVAL_WITHDRAWN, "approval checkout-latency-1-approve-alice of alice was deleted"),
    (being_deleted, Reason.APPROVAL_WITHDRAWN, "was deleted"),
    (reworded, Reason.APPROVAL_WITHDRAWN, "is not what was accepted"),
    (extended, Reason.APPROVAL_WITHDRAWN, "is not what was accepted"),
    (late_on_ours, Reason.EXPIRED, "expired at 2026-01-31T13:00:04"),
    (late_on_the_servers, Reason.EXPIRED, "expired at 2026-01-31T13:00:04"),
    (no_quorum, Reason.QUORUM_NOT_MET, "2 distinct people must approve a plan of tier safe; it has 1"),
    (new_generation, Reason.POLICIES_CHANGED, "ValidatingAdmissionPolicy praxis-approvals"),
    (new_uid, Reason.POLICIES_CHANGED, "ValidatingAdmissionPolicy praxis-approvals"),
    (one_more, Reason.POLICIES_CHANGED, "ValidatingAdmissionPolicy more"),
    (one_less, Reason.POLICIES_CHANGED, "their number"),
    (not_as_built, Reason.POLICIES_CHANGED, "a binding is missing"),
    (target_gone, Reason.PLAN_DRIFTED, "target checkout-fn is gone, or was declared anew"),
    (target_declared_anew, Reason.PLAN_DRIFTED, "target checkout-fn is gone, or was declared anew"),
    (target_elsewhere, Reason.PLAN_DRIFTED, "target checkout-fn is gone, or was declared anew"),
    (
        target_of_another_generation,
        Reason.PLAN_DRIFTED,
        "target checkout-fn is of generation 2, not 1 as the plan has it",
    ),
    (target_being_deleted, Reason.PLAN_DRIFTED, "target checkout-fn is being deleted"),
    (target_not_disposable, Reason.TARGET_NOT_DISPOSABLE, "target checkout-fn is not declared disposable"),
    (function_shared, Reason.TARGET_SHARED, "payments/other names the same function as shop/checkout-fn"),
]


@pytest.mark.parametrize(("spoil", "reason", "words"), FAULTS, ids=[each[0].__name__ for each in FAULTS])
async def test_whatever_differs_leads_back_to_drafting(spoil: Spoil, reason: Reason, words: str) -> None:
    """Each fault alone shuts the gate: nothing is claimed, looked at or written but the way back."""
    world, incident = executing_world()
    spoilt = spoil(world, incident)
    decision = await executing.reconcile(spoilt, world.tools())
    assert isinstance(decision, Transition)
    assert (decision.to, decision.reason, decision.then) == (Phase.INVESTIGATED, reason, None)
    assert words in decision.message
    assert (decision.changes, decision.records) == ({}, ())
    assert world.function.looks == 0
    assert all(each.status.holder is None for each in world.targets.values())


def objection(incident: Incident, decision: Decision, **more: Any) -> Any:
    return builders.approval("bob", of=incident, decision=decision, reason="stop", **more)


@pytest.mark.parametrize(
    ("decision", "to", "reason", "changes"),
    [
        (Decision.REJECT, Phase.INVESTIGATED, Reason.REJECTED, {"corrections": ["stop"]}),
        (
            Decision.REVISE,
            Phase.INVESTIGATED,
            Reason.REVISION_REQUESTED,
            {"corrections": ["use a smaller scope", "stop"]},
        ),
        (Decision.DISMISS, Phase.CLOSED, Reason.DISMISSED, {}),
    ],
)
async def test_a_no_that_came_after_acceptance_is_heeded_and_recorded(
    decision: Decision, to: Phase, reason: Reason, changes: dict[str, Any]
) -> None:
    """As long as nothing was applied a no counts, and the trail tells who said it."""
    world, incident = executing_world()
    no = objection(incident, decision)
    world.say(no)
    found = await shut(world, incident)
    assert found is not None
    assert (found.to, found.reason, dict(found.changes)) == (to, reason, changes)
    assert list(found.records) == [Record(EntryKind.DECIDED, reason, actor="bob", document=statement_record(no.dump()))]


async def test_a_further_approval_shuts_nothing() -> None:
    """Somebody else's yes is no objection."""
    world, incident = executing_world()
    world.say(objection(incident, Decision.APPROVE))
    assert await shut(world, incident) is None


def observing_only(**given: Any) -> Any:
    return builders.plan(actions=[builders.action(ActionType.UPDATE_CONFIG)], **given)


@pytest.mark.parametrize("spoil", [target_not_disposable, function_shared])
async def test_a_dry_run_needs_no_function_of_its_own(spoil: Spoil) -> None:
    """What sends nothing may be shown for any declared target."""
    world, incident = executing_world(draft=observing_only)
    assert await shut(world, spoil(world, incident)) is None


@pytest.mark.parametrize("spoil", [target_gone, target_of_another_generation])
async def test_a_dry_run_is_of_the_target_that_was_approved(spoil: Spoil) -> None:
    """Also what sends nothing is about the declared object that people saw."""
    world, incident = executing_world(draft=observing_only)
    found = await shut(world, spoil(world, incident))
    assert found is not None
    assert found.reason is Reason.PLAN_DRIFTED


@pytest.mark.parametrize(
    "change", [{"account_id": "1"}, {"region": "eu-central-1"}, {"function": "cart"}], ids=lambda each: next(iter(each))
)
async def test_another_account_region_or_name_is_another_function(change: dict[str, str]) -> None:
    """Two targets share a function only when all three agree."""
    world, incident = executing_world()
    other = builders.target("other")
    function = other.spec.function_compute.replace(**change)
    world.declare(renamed(other.replace(spec=other.spec.replace(function_compute=function)), uid="uid-other"))
    assert await shut(world, incident) is None


@pytest.mark.parametrize("read", ["approvals", "guards", "all_targets"])
async def test_what_cannot_be_read_decides_nothing(read: str) -> None:
    """A failed read neither opens the gate nor shuts it."""
    world, incident = executing_world()
    world.cluster.fail(read, RetryLater("the API server is away"))
    with pytest.raises(RetryLater, match="the API server is away"):
        await executing.reconcile(incident, world.tools())
    assert world.function.looks == 0
