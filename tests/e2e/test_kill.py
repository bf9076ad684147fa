"""An operator is killed at every moment of an execution: never two dispatches, never a false success.

One that is paused while another takes over is in `tests/interleavings`, as is whatever else may happen in between.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from praxis.api.incident import Incident, Result
from praxis.demo.function_compute import Fault
from praxis.demo.function_compute.faults import Kind
from praxis.demo.stack import Service, Stack
from praxis.machine import Phase
from tests.e2e.life import PATIENCE_SECONDS, approve, begin, clear, reached

pytestmark = [pytest.mark.e2e, pytest.mark.controlplane]

READ_FOR_BASELINE, READ_BEFORE_SEND = 0, 1
"""Which GetFunction after the approval it is: the baseline's, then the dispatch's own re-read."""


def outcome_of(incident: Incident) -> tuple[Result, str]:
    """Result and reason of the one real action."""
    (step,) = (step for step in incident.status.steps if step.intent is not None)
    assert step.outcome is not None
    return step.outcome.result, step.outcome.reason


def held(stack: Stack, service: Service, operation: str, kind: Kind, *, skip: int = 0) -> str:
    """Hold a request of the operator at Function Compute until it is let go."""
    return stack.emulator.arm(Fault(kind=kind, operation=operation, function=service.name, skip=skip))


def test_killed_before_the_intent_it_is_done_by_the_next(stack: Stack, service: Callable[[], Service]) -> None:
    """Nothing was written: a restarted operator goes through the gate again and sends once."""
    mine = service()
    operator = stack.start_operator()
    incident = begin(stack, mine)
    fault = held(stack, mine, "GetFunction", Kind.HOLD_BEFORE, skip=READ_FOR_BASELINE)
    approve(stack, incident)
    assert stack.emulator.wait_for_hits(fault)
    operator.kill()
    assert stack.incident(incident.metadata.name).status.steps == []
    stack.emulator.disarm(fault)
    stack.start_operator("operator-next")
    after = reached(stack, incident.metadata.name, Phase.OBSERVING)
    assert outcome_of(after) == (Result.APPLIED, "Restarted")
    assert len(stack.emulator.dispatches(function=mine.name)) == 1


def test_killed_after_the_intent_nothing_is_sent_and_a_person_looks(
    stack: Stack, service: Callable[[], Service]
) -> None:
    """The intent stands without an outcome: the next operator only reads, and finds no proof."""
    mine = service()
    operator = stack.start_operator()
    incident = begin(stack, mine)
    fault = held(stack, mine, "GetFunction", Kind.HOLD_BEFORE, skip=READ_BEFORE_SEND)
    approve(stack, incident)
    assert stack.emulator.wait_for_hits(fault)
    operator.kill()
    assert stack.incident(incident.metadata.name).status.open_step is not None
    stack.emulator.disarm(fault)
    stack.start_operator("operator-next")
    after = reached(stack, incident.metadata.name, Phase.RECONCILIATION_REQUIRED)
    assert outcome_of(after)[0] is Result.UNKNOWN
    assert stack.emulator.dispatches(function=mine.name) == []


def test_killed_after_the_dispatch_the_next_proves_that_it_was_applied(
    stack: Stack, service: Callable[[], Service]
) -> None:
    """The request landed and its answer was lost with the process: the marker proves it, and nothing is sent again."""
    mine = service()
    operator = stack.start_operator()
    incident = begin(stack, mine)
    fault = held(stack, mine, "UpdateFunction", Kind.HOLD_AFTER)
    approve(stack, incident)
    assert stack.emulator.wait_for_hits(fault)
    operator.kill()
    assert stack.incident(incident.metadata.name).status.open_step is not None
    stack.emulator.disarm(fault)
    stack.start_operator("operator-next")
    after = reached(stack, incident.metadata.name, Phase.OBSERVING)
    assert outcome_of(after)[0] is Result.APPLIED
    (sent,) = stack.emulator.dispatches(function=mine.name)
    assert sent["applied"]


def test_killed_after_the_outcome_the_next_goes_on_from_there(stack: Stack, service: Callable[[], Service]) -> None:
    """The outcome is stored: the next operator observes, resolves and remembers, and sends nothing."""
    mine = service()
    operator = stack.start_operator()
    incident = begin(stack, mine)
    approve(stack, incident)
    stack.wait(
        incident.metadata.name,
        lambda each: any(step.outcome is not None for step in each.status.steps),
        timeout=PATIENCE_SECONDS,
    )
    operator.kill()
    stack.start_operator("operator-next")
    reached(stack, incident.metadata.name, Phase.OBSERVING)
    clear(stack, mine, incident)
    after = reached(stack, incident.metadata.name, Phase.RESOLVED)
    assert outcome_of(after) == (Result.APPLIED, "Restarted")
    assert len(stack.emulator.dispatches(function=mine.name)) == 1
