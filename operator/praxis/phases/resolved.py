"""Resolved: owes a memory of what helped, and keeps trying until it is stored."""

from __future__ import annotations

from praxis.api.incident import Incident
from praxis.api.reasons import ConditionType, Reason
from praxis.machine import Phase
from praxis.memory.record import record_of
from praxis.phases.contract import ConditionUpdate, Tools, Transition, Wait


async def reconcile(incident: Incident, tools: Tools) -> Transition | Wait:
    """Write the memory once; its id is the incident's uid, so writing it again changes nothing."""
    stored = incident.status.condition(ConditionType.MEMORY_STORED)
    if stored is not None and stored.status == "True":
        return Wait(None)
    await tools.memory.remember(record_of(incident))
    return Transition(
        to=Phase.RESOLVED,
        reason=Reason.ALERT_CLEARED,
        message=incident.status.message or "",
        conditions=[
            ConditionUpdate(ConditionType.MEMORY_STORED, status=True, reason=Reason.STORED, message="remembered")
        ],
    )
