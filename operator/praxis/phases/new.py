"""New: what kind of incident is this? Asks the fast model; decides nothing that could act."""

from __future__ import annotations

from praxis.api.incident import Incident
from praxis.api.reasons import Reason
from praxis.machine import Phase
from praxis.phases.contract import Tools, Transition, Wait
from praxis.phases.spending import added, cleared


async def reconcile(incident: Incident, tools: Tools) -> Transition | Wait:
    """Classify, then Triaged."""
    if not incident.spec.firing:
        return cleared(incident)
    answered = await tools.reasoner.classify(incident)
    return Transition(
        to=Phase.TRIAGED,
        reason=Reason.CLASSIFIED,
        message=f"{answered.answer.category} ({answered.answer.severity}): {answered.answer.summary}"[:1024],
        changes={"classification": answered.answer, "usage": added(incident, answered.usage)},
    )
