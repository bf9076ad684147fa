"""Observing: did it help? Waits until the alerts clear; silence is not clearing."""

from __future__ import annotations

from datetime import timedelta

from praxis.api.incident import Incident
from praxis.api.reasons import ConditionType, Reason
from praxis.clock import parse_rfc3339
from praxis.machine import Phase
from praxis.phases.contract import ConditionUpdate, Tools, Transition, Wait

HELPED = "the alerts cleared after the action was applied"
HELPED_NOTHING = (
    "the alerts had cleared before the action was sent, so it is not what helped; it was applied all the same"
)


async def reconcile(incident: Incident, tools: Tools) -> Transition | Wait:
    """Resolved when everything cleared, Investigated when time is up."""
    if not incident.spec.firing:
        return Transition(
            to=Phase.RESOLVED,
            reason=Reason.ALERT_CLEARED,
            message=HELPED_NOTHING if incident.cleared_before_action else HELPED,
            conditions=[
                ConditionUpdate(ConditionType.MEMORY_STORED, status=False, reason=Reason.OWED, message="to be written")
            ],
        )
    since = parse_rfc3339(incident.status.phase_times[Phase.OBSERVING])
    deadline = since + timedelta(seconds=tools.settings.deadlines.observing)
    remaining = (deadline - tools.clock.now()).total_seconds()
    if remaining <= 0:
        return Transition(
            to=Phase.INVESTIGATED,
            reason=Reason.NOT_EFFECTIVE,
            message=f"the alerts still fire {tools.settings.deadlines.observing:g} s after the action was applied",
        )
    return Wait(remaining, message=f"applied; waiting for the alerts to clear until {deadline:%H:%M:%S} UTC")
