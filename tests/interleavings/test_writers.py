"""Two writers, two incidents, other deployers: who else acts on the function while an operator does.

Each test's docstring ends with the guard without which it fails.
"""

from __future__ import annotations

import asyncio

import pytest

from praxis.api.incident import Result
from praxis.api.reasons import ConditionType
from praxis.demo.function_compute import Fault
from praxis.demo.function_compute.faults import Kind
from praxis.machine import Phase
from tests.interleavings.house import FUNCTION, STATUS, House, outcome_of
from tests.proxy import first

pytestmark = pytest.mark.controlplane

BEFORE_THE_SEND = Fault(kind=Kind.HOLD_BEFORE, operation="GetFunction", skip=1)
"""The second read of the function after acceptance is the dispatch's own; the baseline's is the first."""
SETTLED_AFTER_SECONDS = 21
"""Above dispatch window and request time-out together."""


async def test_a_writer_paused_between_intent_and_send_wakes_after_its_successor_has_decided(house: House) -> None:
    """It sends nothing, and its outcome does not replace the successor's Unknown.

    Guard: the dispatch window, looked at right before the send (`Send._refusal`). Its outcome is kept out by the fence
    and, without that, by the rule that outcomes never change.
    """
    paused, successor = house.operator("paused"), house.operator("successor")
    await paused.accepts()
    async with house.held(BEFORE_THE_SEND) as reached:
        sending = paused.executes()
        assert await asyncio.to_thread(reached)
        assert (await house.incident()).status.open_step is not None
        await successor.look()
        house.time.forward(SETTLED_AFTER_SECONDS)
        decided = await successor.until(Phase.RECONCILIATION_REQUIRED)
    assert (await sending).failed
    after = await house.incident()
    assert outcome_of(after)[0] is Result.UNKNOWN
    assert (after.status.steps, after.status.trail) == (decided.status.steps, decided.status.trail)
    assert house.sent() == []


async def test_two_incidents_on_one_function_through_one_target(house: House) -> None:
    """The second waits, stalled, while the first acts and observes; its plan is then of a function that has changed.

    Guard: the target's holder (`holding.claim`).
    """
    operator = house.operator()
    await operator.accepts("inc-1")
    await operator.accepts("inc-2", person="bob")
    async with house.held(BEFORE_THE_SEND) as reached:
        sending = operator.executes("inc-1")
        assert await asyncio.to_thread(reached)
        await operator.look("inc-2")
        stalled = (await house.incident("inc-2")).status.condition(ConditionType.STALLED)
        assert stalled is not None
        assert stalled.reason == "TargetHeld"
    await sending
    assert outcome_of(await operator.until(Phase.OBSERVING, name="inc-1")) == (Result.APPLIED, "Restarted")
    await operator.look("inc-2")
    assert (await house.incident("inc-2")).status.phase is Phase.EXECUTING
    await house.clear("inc-1")
    await operator.until(Phase.RESOLVED, name="inc-1")
    second = await operator.until(Phase.INVESTIGATED, name="inc-2")
    assert (second.status.reason, second.status.steps) == ("PlanDrifted", [])
    assert house.sent() == [True]


async def test_two_incidents_on_one_function_through_two_targets(house: House) -> None:
    """A target that names the same function is declared while the first sends: the second incident finds the gate shut.

    Guard: the gate's look for another target of the function (`gate.target_differs`).
    """
    operator = house.operator()
    await operator.accepts("inc-1")
    async with house.held(BEFORE_THE_SEND) as reached:
        sending = operator.executes("inc-1")
        assert await asyncio.to_thread(reached)
        await house.declare("checkout-again")
        second = await operator.accepts("inc-2", person="bob", target="checkout-again")
        assert second.status.phase is Phase.EXECUTING
        second = await operator.until(Phase.INVESTIGATED, name="inc-2")
        assert (second.status.reason, second.status.steps) == ("TargetShared", [])
    await sending
    assert outcome_of(await house.incident("inc-1")) == (Result.APPLIED, "Restarted")
    assert house.sent() == [True]


async def test_another_deployer_changes_the_function_between_baseline_and_send(house: House) -> None:
    """Their change comes while the intent is written: the dispatch's own look sees it, and nothing is sent over it.

    Guard: the comparison right before the send (`FunctionComputeAdapter._difference`), of state or of lastModified.
    """
    operator = house.operator()
    await operator.accepts()

    async def deploy() -> None:
        house.emulator.deploy(FUNCTION, {"FEATURE": "on"})

    house.proxy.spoil(first(deploy), path=STATUS)
    after = await operator.until(Phase.INVESTIGATED)
    assert outcome_of(after) == (Result.NOT_APPLIED, "BaselineChanged")
    assert house.sent() == []


async def test_an_instance_starts_between_the_instance_list_and_the_send(house: House) -> None:
    """It was not there before, but its start proves nothing: it runs with what was deployed before our request.

    Guard: only an instance that is surely newer than the update counts (`verification.age_of`).
    """
    house.emulator.change(FUNCTION, refuse_to_rotate=True)
    operator = house.operator()
    await operator.accepts()
    async with house.held(BEFORE_THE_SEND) as reached:
        sending = operator.executes()
        assert await asyncio.to_thread(reached)
        old = [each.id for each in house.emulator.instances(FUNCTION)]
        house.emulator.start_instance(FUNCTION)
        for each in old:
            house.emulator.stop_instance(FUNCTION, each)
    await sending
    after = await operator.until(Phase.RECONCILIATION_REQUIRED)
    assert outcome_of(after) == (Result.UNKNOWN, "NotProven")
    assert house.sent() == [True]
