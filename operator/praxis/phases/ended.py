"""Closed and Failed: nothing is left to do."""

from __future__ import annotations

from praxis.api.incident import Incident
from praxis.phases.contract import Tools, Transition, Wait


async def reconcile(incident: Incident, tools: Tools) -> Transition | Wait:
    """Wait for nothing."""
    del incident, tools
    return Wait(None)
