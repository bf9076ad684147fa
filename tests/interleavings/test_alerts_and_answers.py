"""Alerts that clear meanwhile, and answers of the API server that are lost, around the one write that counts.

Each test's docstring ends with the guard without which it fails.
"""

from __future__ import annotations

import asyncio

import pytest

from praxis.api.incident import EntryKind, Incident, Result
from praxis.demo.function_compute import Fault
from praxis.demo.function_compute.faults import Kind
from praxis.machine import Phase
from tests.interleavings.house import STATUS, House, outcome_of
from tests.proxy import drop_after, drop_before, first

pytestmark = pytest.mark.controlplane


def recorded(incident: Incident, kind: EntryKind) -> int:
    """How many entries of a kind the trail has."""
    return sum(each.kind is kind for each in incident.status.trail)


async def test_the_alert_clears_between_approval_and_gate(house: House) -> None:
    """Nothing fires any more, so nothing is done: closed as SelfResolved.

    Guard: the gate asks whether an alert fires (`gate.shut`).
    """
    operator = house.operator()
    await operator.accepts()
    await house.clear()
    closed = await operator.until(Phase.CLOSED)
    assert (closed.status.reason, closed.status.steps) == ("SelfResolved", [])
    assert house.sent() == []


async def test_the_alert_clears_between_gate_and_intent(house: House) -> None:
    """The gate saw it fire; the intent's write arrives after the gateway's and is refused.

    Guard: the intent tests the resourceVersion (`status.fence`) or, without that, the rule that no intent comes when
    nothing fires.
    """
    operator = house.operator()
    await operator.accepts()
    house.proxy.spoil(first(house.clear), path=STATUS)
    closed = await operator.until(Phase.CLOSED)
    assert (closed.status.reason, closed.status.steps) == ("SelfResolved", [])
    assert house.sent() == []


async def test_the_alert_clears_between_intent_and_outcome(house: House) -> None:
    """What was sent has an outcome all the same, the plan is carried through, and the incident resolves.

    Guard: the gate stands before what was applied only (`executing.reconcile`): closing it then would deny a change.
    """
    operator = house.operator()
    await operator.proposes(dangerous=True)
    await house.say("alice")
    await house.say("bob")
    await operator.until(Phase.EXECUTING)
    async with house.held(Fault(kind=Kind.HOLD_AFTER)) as reached:
        sending = operator.executes()
        assert await asyncio.to_thread(reached)
        await house.clear()
    await sending
    assert outcome_of(await house.incident()) == (Result.APPLIED, "Restarted")
    resolved = await operator.until(Phase.RESOLVED)
    assert resolved.status.reason == "AlertCleared"
    assert [each.outcome.result for each in resolved.status.steps if each.outcome] == [Result.APPLIED, Result.DRY_RUN]
    assert house.sent() == [True]


async def test_the_answer_to_the_intents_write_is_lost_after_commit(house: House) -> None:
    """It is stored, and only reading shows that: too late to act on. Nothing was sent, and the outcome says so.

    Guard: an effect runs only on its own 2xx (`Committed.acknowledged`).
    """
    operator = house.operator()
    await operator.accepts()
    house.proxy.spoil(drop_after(), path=STATUS)
    after = await operator.until(Phase.INVESTIGATED)
    assert outcome_of(after) == (Result.NOT_APPLIED, "NeverSent")
    assert recorded(after, EntryKind.INTENT_RECORDED) == 1
    assert house.sent() == []


async def test_the_answer_to_the_intents_write_is_lost_before_commit(house: House) -> None:
    """It is not stored: the incident goes through the gate again, under another intent, and is sent once.

    Guard: a lost answer is settled by reading, not by hoping (`StatusWriter._after_a_lost_answer`).
    """
    operator = house.operator()
    await operator.accepts()
    house.proxy.spoil(drop_before(), path=STATUS)
    assert (await operator.look()).failed
    assert ((await house.incident()).status.steps, house.sent()) == ([], [])
    after = await operator.until(Phase.OBSERVING)
    assert outcome_of(after) == (Result.APPLIED, "Restarted")
    assert recorded(after, EntryKind.INTENT_RECORDED) == 1
    assert house.sent() == [True]


async def test_the_answer_to_the_outcomes_write_is_lost_after_commit(house: House) -> None:
    """It is read back, and written once.

    Guard: what is stored is compared with what was to be written, right after the answer was lost
    (`StatusWriter._after_a_lost_answer`) or, without that, before it is written again (`_until_stored`).
    """
    operator = house.operator()
    await operator.accepts()
    house.proxy.spoil(drop_after(), path=STATUS, skip=1)
    before = house.proxy.count("PATCH", STATUS)
    assert not (await operator.look()).failed
    after = await house.incident()
    assert outcome_of(after) == (Result.APPLIED, "Restarted")
    assert recorded(after, EntryKind.OUTCOME_RECORDED) == 1
    assert house.proxy.count("PATCH", STATUS) == before + 2  # intent, outcome
    assert house.sent() == [True]


async def test_the_answer_to_the_outcomes_write_is_lost_before_commit(house: House) -> None:
    """Only this process knows what it did: it writes until that is stored, and sends no second time.

    Guard: the outcome is written until it is stored (`StatusWriter._until_stored`).
    """
    operator = house.operator()
    await operator.accepts()
    house.proxy.spoil(drop_before(), path=STATUS, skip=1, times=3)
    await operator.look()
    after = await house.incident()
    assert outcome_of(after) == (Result.APPLIED, "Restarted")
    assert recorded(after, EntryKind.OUTCOME_RECORDED) == 1
    assert house.sent() == [True]
