"""A status that somebody wrote past the rules: it takes nothing on, and what may have left still comes to a person."""

from __future__ import annotations

from typing import Any

import pytest

from praxis.api.base import IntentId
from praxis.api.incident import Incident, Result
from praxis.api.reasons import ConditionType, Reason
from praxis.controller.reconciler import decide
from praxis.controller.sightings import Intents
from praxis.controller.status import applied
from praxis.errors import NeedsPerson
from praxis.machine import Phase
from praxis.phases import holding, integrity
from praxis.phases.contract import Transition, Wait
from tests import builders
from tests.phases.world import HandClock, World, executing, held, holder

INTENT = builders.INTENT_ID


def opened() -> tuple[World, Incident]:
    """Another process' intent is open, what it asked for is in force, and the target is held for it."""
    world, _ = executing()
    states = builders.history(Phase.RECONCILIATION_REQUIRED)
    incident = next(each for each in states if each.status.open_step is not None)
    world.function.land(INTENT)
    world.declare(
        held(
            builders.target(),
            holder(incident_uid=incident.metadata.uid, incident_name=incident.metadata.name, intent_id=INTENT),
        )
    )
    return world, world.keep(incident)


def stepped(incident: Incident, **changes: Any) -> Incident:
    (step,) = incident.status.steps
    return of(incident, steps=[step.replace(**changes)])


def of(incident: Incident, **changes: Any) -> Incident:
    return incident.replace(status=incident.status.replace(**changes))


def as_intended(incident: Incident, **changes: Any) -> Incident:
    (step,) = incident.status.steps
    assert step.intent is not None
    return stepped(incident, intent=step.intent.replace(**changes))


def planned(incident: Incident, **changes: Any) -> Incident:
    assert incident.status.plan is not None
    return of(incident, plan=incident.status.plan.replace(**changes))


DAMAGE = {
    "the intent's writer": (
        lambda incident: as_intended(incident, writer="writer-z"),
        "the steps' intents are not the recorded ones",
    ),
    "the step's action": (
        lambda incident: stepped(incident, action="another"),
        "the plan has no action another, of which there is a step",
    ),
    "the step's revision": (
        lambda incident: stepped(incident, revision=2),
        "the open intent is of plan 2, which is not there",
    ),
    "the plan's summary": (
        lambda incident: planned(incident, summary="Another."),
        "its plan, guards, approvalsRequired are not the recorded ones",
    ),
    "the plan's revision": (
        lambda incident: planned(incident, revision=2),
        "the open intent is of plan 1, which is not there",
    ),
    "no plan": (lambda incident: of(incident, plan=None), "there is no plan"),
    "no time": (lambda incident: of(incident, phase_times={}), "there is no time at which it entered Executing"),
    "no evidence": (lambda incident: of(incident, evidence_digest=None), "there is no digest of the evidence"),
    "no trail": (lambda incident: of(incident, trail=[]), "phase and head are not those of the last trail entry"),
}


async def next_of(world: World, incident: Incident, sightings: Intents) -> Incident:
    """What is stored after the next decision; time passes where it waits."""
    decision = await decide(incident, world.tools(sightings=sightings))
    if isinstance(decision, Wait):
        assert decision.seconds is not None
        world.time.forward(decision.seconds)
        return incident
    after = applied(incident, decision, actor=builders.OPERATOR, now=world.time.wall)
    return world.keep(incident.replace(status=after))


async def test_an_open_intent_of_a_sound_status_is_proven() -> None:
    """Without damage the same way leads to Observing."""
    world, incident = opened()
    sightings = Intents(clock=HandClock(world.time))
    for _ in range(3):
        incident = await next_of(world, incident, sightings)
    assert incident.status.phase is Phase.OBSERVING


@pytest.mark.parametrize(("damage", "fault"), DAMAGE.values(), ids=DAMAGE)
async def test_an_open_intent_of_a_changed_status_comes_to_a_person(damage: Any, fault: str) -> None:
    """Its Applied is not believed, nothing is sent, and a person's finding frees the target: it is no dead end."""
    world, incident = opened()
    sightings = Intents(clock=HandClock(world.time))
    incident = world.keep(damage(incident))
    assert await next_of(world, incident, sightings) is incident, "its writer may still be sending"
    incident = await next_of(world, incident, sightings)
    (step,) = incident.status.steps
    assert step.outcome is not None
    assert (step.outcome.result, step.outcome.reason, step.outcome.message) == (
        Result.UNKNOWN,
        "NotProven",
        f"no proof rests on a stored status that is not what its trail records: {fault}",
    )
    incident = await next_of(world, incident, sightings)
    assert (incident.status.phase, incident.status.reason) == (Phase.RECONCILIATION_REQUIRED, Reason.OUTCOME_UNKNOWN)
    (target,) = world.targets.values()
    assert target.status.holder is not None
    assert await holding.stands(target, target.status.holder, world.tools())
    world.find(builders.reconciliation("alice", of=incident, intent_id=INTENT))
    incident = await next_of(world, incident, sightings)
    reconciled = incident.status.condition(ConditionType.RECONCILED)
    assert reconciled is not None
    assert reconciled.status == "True"
    assert not await holding.stands(target, target.status.holder, world.tools())
    assert world.function.sends == []


async def test_what_was_never_sent_is_not_said_of_an_intent_that_somebody_changed() -> None:
    """The id is one that this process gave up, put where another's was: that one may have been sent."""
    world, incident = opened()
    sightings = Intents(clock=HandClock(world.time))
    sightings.give_up(IntentId("praxis-given-up"))
    incident = as_intended(incident, id="praxis-given-up")
    await next_of(world, incident, sightings)
    (step,) = (await next_of(world, incident, sightings)).status.steps
    assert step.outcome is not None
    assert step.outcome.result is Result.UNKNOWN


@pytest.mark.parametrize("phase", [Phase.OBSERVING, Phase.RESOLVED])
async def test_an_applied_or_a_success_on_a_changed_status_is_refused(phase: Phase) -> None:
    """Whatever a phase decides: the second lock."""
    incident = as_intended(opened()[1], writer="writer-z")
    with pytest.raises(NeedsPerson):
        integrity.permit(incident, Transition(to=phase, reason=Reason.ACTIONS_DONE, message="done"))


REMEDIES = {
    "nothing open": (
        lambda: of(builders.incident(Phase.OBSERVING), phase_times={}),
        (
            "there is no time at which it entered Observing. Somebody wrote past the API server's rules; compare it "
            "with an exported trail, then delete the incident"
        ),
    ),
    "an intent open where none can be settled": (
        lambda: of(opened()[1], phase=Phase.OBSERVING),
        (
            "there is no time at which it entered Observing. Somebody wrote past the API server's rules; an intent is "
            "open, so look at the function first; deleting the incident takes the break-glass, and its target stays "
            "held until a person's `praxis reconcile`"
        ),
    ),
}


@pytest.mark.parametrize(("made", "said"), REMEDIES.values(), ids=REMEDIES)
async def test_a_person_is_told_what_they_can_do(made: Any, said: str) -> None:
    """An incident with an open intent cannot be deleted, so that is not what is asked for."""
    world, _ = executing()
    with pytest.raises(NeedsPerson) as refusal:
        await decide(made(), world.tools())
    assert str(refusal.value) == f"the stored status is not what its trail records: {said}"
