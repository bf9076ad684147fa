"""What surrounds the operator fails: it backs off, says so, goes on by itself afterwards, and ends when told."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from praxis.api.incident import Incident
from praxis.api.reasons import ConditionType
from praxis.demo.function_compute import Fault
from praxis.demo.function_compute.faults import Kind
from praxis.demo.stack import Service, Stack
from praxis.machine import Phase
from tests.e2e.life import PATIENCE_SECONDS, approve, begin, declare, freed, praxis, reached

pytestmark = [pytest.mark.e2e, pytest.mark.controlplane]


def stalled(incident: Incident) -> bool:
    """Whether the incident says that its work does not go on."""
    return incident.status.condition(ConditionType.STALLED) is not None


def test_an_outage_is_not_asked_faster_because_each_answer_differs(
    stack: Stack, service: Callable[[], Service]
) -> None:
    """What is written down of a failure, with another request id each time, does not wake the incident up again."""
    mine, other = service(), service()
    stack.start_operator(PRAXIS_RESYNC_INTERVAL="600")
    fault = stack.emulator.arm(
        Fault(kind=Kind.STATUS, operation="GetFunction", function=mine.name, times=1000, status=500)
    )
    name = declare(stack, mine)
    stack.wait(name, stalled, timeout=PATIENCE_SECONDS)
    asked = len(stack.emulator.arrivals(function=mine.name, operation="GetFunction"))
    before = len(stack.emulator.arrivals(function=mine.name, operation="GetFunction", count=asked + 1))
    for suffix in ("-a", "-b", "-c"):  # three other lives, in which a loop without pause asks a dozen times
        begin(stack, other, suffix=suffix)
    after = len(stack.emulator.arrivals(function=mine.name, operation="GetFunction"))
    assert after - before <= 2
    stack.emulator.disarm(fault)
    assert not stalled(reached(stack, name, Phase.AWAITING_APPROVAL))


def test_an_operator_that_verifies_for_another_ends_when_it_is_told_to(
    stack: Stack, service: Callable[[], Service]
) -> None:
    """Looking for the outcome of somebody else's intent may take minutes, and is given up with the process."""
    mine = service()
    first = stack.start_operator()
    incident = begin(stack, mine)
    fault = stack.emulator.arm(
        Fault(kind=Kind.HOLD_BEFORE, operation="GetFunction", function=mine.name, skip=1)  # after the intent
    )
    approve(stack, incident)
    assert stack.emulator.wait_for_hits(fault)
    first.kill()
    stack.emulator.disarm(fault)
    second = stack.start_operator("operator-next", PRAXIS_ACTIONS__VERIFY_DEADLINE="3600")
    looking = stack.emulator.arm(Fault(kind=Kind.DELAY, operation="GetFunction", function=mine.name, seconds=0))
    assert stack.emulator.wait_for_hits(looking, timeout=PATIENCE_SECONDS)
    second.send(signal.SIGTERM)
    assert second.popen.wait(PATIENCE_SECONDS) == 0
    assert stack.incident(incident.metadata.name).status.open_step is not None
    stack.start_operator("operator-last")
    reached(stack, incident.metadata.name, Phase.RECONCILIATION_REQUIRED)
    assert stack.emulator.dispatches(function=mine.name) == []


def test_the_target_of_an_incident_that_is_gone_can_be_deleted_once_a_person_has_looked(
    stack: Stack, service: Callable[[], Service]
) -> None:
    """The incident was deleted while it observed: its claim stands until it is reconciled, and is removed then."""
    mine = service()
    stack.start_operator()
    incident = begin(stack, mine)
    approve(stack, incident)
    reached(stack, incident.metadata.name, Phase.OBSERVING)
    stack.plane.kubectl("delete", "incident", incident.metadata.name, "-n", stack.namespace)
    target = ("remediationtarget", mine.target, "-n", stack.namespace)
    refused = stack.plane.kubectl("delete", *target, check=False)
    assert "held by incident" in refused.stderr
    found = praxis(stack, "reconcile", incident.metadata.name, "--observed", "applied", "--note", "restarted", "--yes")
    assert found.returncode == 0, found.stderr
    freed(stack, mine)
    stack.plane.kubectl("delete", *target)
