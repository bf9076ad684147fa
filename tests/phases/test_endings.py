"""Observing and the phases that end an incident."""

from __future__ import annotations

from datetime import timedelta

import pytest

from praxis.api.base import Condition
from praxis.api.incident import Alert, EntryKind
from praxis.api.reasons import ConditionType, Reason
from praxis.api.records import statement_record
from praxis.errors import InvalidAnswer, NeedsPerson, RetryLater
from praxis.machine import TERMINAL, TRANSITIONS, Phase
from praxis.memory.record import record_of
from praxis.phases import ended, observing, reconciliation_required, resolved
from praxis.phases.contract import ConditionUpdate, Record, Transition, Wait
from tests import builders
from tests.phases.world import World

CLEAR = {"alerts": [builders.alert(firing=False)]}
ENTERED = builders.NOW + timedelta(seconds=5)


def at(seconds: float) -> World:
    """A world so many seconds after Observing was entered."""
    world = World()
    world.time.wall = ENTERED + timedelta(seconds=seconds)
    return world


async def test_a_cleared_alert_resolves_and_owes_a_memory() -> None:
    """What helped is to be remembered."""
    spec = {"alerts": [builders.alert(firing=False, at=ENTERED)]}
    decision = await observing.reconcile(builders.incident(Phase.OBSERVING, spec=spec), at(10).tools())
    assert decision == Transition(
        to=Phase.RESOLVED,
        reason=Reason.ALERT_CLEARED,
        message="the alerts cleared after the action was applied",
        conditions=[
            ConditionUpdate(ConditionType.MEMORY_STORED, status=False, reason=Reason.OWED, message="to be written")
        ],
    )


BEFORE = builders.alert(firing=False, at=builders.NOW - timedelta(seconds=1))


@pytest.mark.parametrize(
    ("alerts", "helped"),
    [
        ([BEFORE], False),
        ([BEFORE, builders.alert(firing=False, at=ENTERED, fingerprint="f2")], True),
        ([builders.alert(firing=False, ends_at=None)], True),
        ([builders.alert(firing=False, ends_at="yesterday")], True),
    ],
    ids=["all before", "one of them after", "not known when", "unreadable"],
)
async def test_an_action_is_not_said_to_have_helped_when_the_alerts_had_ended_before_it(
    alerts: list[Alert], helped: bool
) -> None:
    """They ended between the approval and the send: it was applied, but it is not what cleared them."""
    incident = builders.incident(Phase.OBSERVING, spec={"alerts": alerts})
    decision = await observing.reconcile(incident, at(10).tools())
    assert decision.message == (
        "the alerts cleared after the action was applied"
        if helped
        else "the alerts had cleared before the action was sent, so it is not what helped; it was applied all the same"
    )
    ended = "then the alert cleared" if helped else "the alert had cleared before the action, which did not help"
    assert ended in record_of(builders.incident(Phase.RESOLVED, spec={"alerts": alerts})).summary


@pytest.mark.parametrize("waited", [0.0, 1799.0])
async def test_before_the_deadline_it_waits(waited: float) -> None:
    """Half an hour for the alert to clear."""
    decision = await observing.reconcile(builders.incident(Phase.OBSERVING), at(waited).tools())
    assert decision == Wait(1800 - waited, message="applied; waiting for the alerts to clear until 12:30:05 UTC")


@pytest.mark.parametrize("waited", [1800.0, 1801.0], ids=["at", "above"])
async def test_silence_is_not_clearing(waited: float) -> None:
    """At the deadline the remediation counts as not effective, and another plan is drafted."""
    assert await observing.reconcile(builders.incident(Phase.OBSERVING), at(waited).tools()) == Transition(
        to=Phase.INVESTIGATED,
        reason=Reason.NOT_EFFECTIVE,
        message="the alerts still fire 1800 s after the action was applied",
    )


async def test_an_alert_that_cleared_past_the_deadline_resolves() -> None:
    """An operator that was down does not turn a success into a failure."""
    decision = await observing.reconcile(builders.incident(Phase.OBSERVING, spec=CLEAR), at(9000).tools())
    assert isinstance(decision, Transition)
    assert decision.to is Phase.RESOLVED


async def test_truncated_alerts_never_resolve() -> None:
    """Alerts that nobody sent us may fire on."""
    incident = builders.incident(Phase.OBSERVING, spec={**CLEAR, "truncated_alerts": 1})
    assert isinstance(await observing.reconcile(incident, at(10).tools()), Wait)
    late = await observing.reconcile(incident, at(1800).tools())
    assert isinstance(late, Transition)
    assert late.reason is Reason.NOT_EFFECTIVE


def stored(status: str) -> list[Condition]:
    return [
        Condition(type="MemoryStored", status=status, reason="Owed", last_transition_time="2026-01-31T12:00:00.000000Z")
    ]


@pytest.mark.parametrize("conditions", [[], stored("False")], ids=["no condition", "owed"])
async def test_a_resolved_incident_writes_its_memory(conditions: list[Condition]) -> None:
    """The memory's id is the incident's uid; only then the condition says so."""
    world = World()
    decision = await resolved.reconcile(builders.incident(Phase.RESOLVED, conditions=conditions), world.tools())
    assert decision == Transition(
        to=Phase.RESOLVED,
        reason=Reason.ALERT_CLEARED,
        message="Resolved for a test.",
        conditions=[
            ConditionUpdate(ConditionType.MEMORY_STORED, status=True, reason=Reason.STORED, message="remembered")
        ],
    )
    assert list(world.memory.records) == [builders.INCIDENT_UID]
    assert world.memory.records[builders.INCIDENT_UID].incident == "shop/checkout-latency-1"


async def test_a_stored_memory_is_not_written_again() -> None:
    """Nothing is owed any more."""
    world = World()
    incident = builders.incident(Phase.RESOLVED, conditions=stored("True"))
    assert await resolved.reconcile(incident, world.tools()) == Wait(None)
    assert world.memory.writes == 0


@pytest.mark.parametrize("error", [RetryLater("locked"), NeedsPerson("full"), InvalidAnswer("no vector")])
async def test_a_memory_that_cannot_be_written_stays_owed(error: Exception) -> None:
    """The error decides nothing; it is tried again."""
    world = World()
    world.memory.errors.append(error)
    with pytest.raises(type(error)):
        await resolved.reconcile(builders.incident(Phase.RESOLVED), world.tools())
    assert world.memory.records == {}


def owed_finding() -> ConditionUpdate:
    return ConditionUpdate(
        ConditionType.RECONCILED,
        status=False,
        reason=Reason.OUTCOME_UNKNOWN,
        message="look at the function, then: praxis reconcile checkout-latency-1 -n shop --observed "
        "applied|not-applied",
    )


async def test_an_unknown_outcome_waits_for_a_person_and_says_what_to_do() -> None:
    """The phase stays until somebody has looked."""
    incident = builders.incident(Phase.RECONCILIATION_REQUIRED)
    assert await reconciliation_required.reconcile(incident, World().tools()) == Wait(
        None, Reason.OUTCOME_UNKNOWN, conditions=[owed_finding()]
    )


async def test_a_persons_finding_is_recorded() -> None:
    """Who found what, in the trail by digest; the phase stays, the condition says that it is reconciled."""
    world = World()
    found = builders.reconciliation("bob")
    world.find(found)
    decision = await reconciliation_required.reconcile(builders.incident(Phase.RECONCILIATION_REQUIRED), world.tools())
    assert decision == Transition(
        to=Phase.RECONCILIATION_REQUIRED,
        reason=Reason.RECONCILED,
        message="bob found: Applied: the instances carry the new marker",
        records=[Record(EntryKind.RECONCILED, Reason.RECONCILED, actor="bob", document=statement_record(found.dump()))],
        conditions=[
            ConditionUpdate(
                ConditionType.RECONCILED, status=True, reason=Reason.RECONCILED, message="Applied, found by bob"
            )
        ],
    )


async def test_a_finding_on_another_intent_is_not_taken() -> None:
    """Somebody who looked at something else has not reconciled this."""
    world = World()
    world.find(builders.reconciliation("bob", intent_id="intent-of-nobody"))
    decision = await reconciliation_required.reconcile(builders.incident(Phase.RECONCILIATION_REQUIRED), world.tools())
    assert decision == Wait(None, Reason.OUTCOME_UNKNOWN, conditions=[owed_finding()])


async def test_a_reconciled_incident_has_nothing_left_to_do() -> None:
    """A second finding changes nothing."""
    world = World()
    world.find(builders.reconciliation("bob"))
    done = Condition(
        type="Reconciled", status="True", reason="Reconciled", last_transition_time="2026-01-31T12:00:00.000000Z"
    )
    incident = builders.incident(Phase.RECONCILIATION_REQUIRED, conditions=[done])
    assert await reconciliation_required.reconcile(incident, world.tools()) == Wait(None)


@pytest.mark.parametrize("phase", [Phase.CLOSED, Phase.FAILED])
async def test_what_has_ended_waits_for_nothing(phase: Phase) -> None:
    """Whatever fires again opens another incident."""
    assert await ended.reconcile(builders.incident(phase), World().tools()) == Wait(None)


def test_every_phase_has_its_module() -> None:
    """A phase without one would be an incident that nobody works on."""
    from praxis.controller.reconciler import PHASES  # noqa: PLC0415

    assert set(PHASES) == set(TRANSITIONS)
    assert {phase for phase in PHASES if PHASES[phase] is ended.reconcile} == TERMINAL - {
        Phase.RESOLVED,
        Phase.RECONCILIATION_REQUIRED,
    }
