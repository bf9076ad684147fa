"""Triaged: what happened before, what does the evidence say, what is likely wrong? Only reads."""

from __future__ import annotations

from praxis.api import bounds
from praxis.api.incident import Evidence, Incident
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.digest import Digest, digest
from praxis.evidence.contract import Scope
from praxis.machine import Phase
from praxis.memory.record import recall_text
from praxis.phases.contract import Tools, Transition, Wait
from praxis.phases.spending import added, cleared


async def reconcile(incident: Incident, tools: Tools) -> Transition | Wait:
    """Recall, gather evidence, diagnose, then Investigated."""
    if not incident.spec.firing:
        return cleared(incident)
    targets = matching(incident, await tools.cluster.targets(incident.metadata.namespace))
    recalled = await tools.memory.recall(
        recall_text(incident), namespace=incident.metadata.namespace, limit=bounds.RECALLED
    )
    answered = await tools.reasoner.diagnose(Scope(incident=incident, targets=tuple(targets)), recalled)
    return Transition(
        to=Phase.INVESTIGATED,
        reason=Reason.DIAGNOSED,
        message=answered.answer.summary,
        changes={
            "target": targets[0].metadata.name if targets else None,
            "recalled": list(recalled),
            "evidence": list(answered.evidence),
            "evidence_digest": evidence_digest(list(answered.evidence)),
            "diagnosis": answered.answer,
            "usage": added(incident, answered.usage),
        },
    )


def matching(incident: Incident, targets: list[RemediationTarget]) -> list[RemediationTarget]:
    """The targets that the incident's alerts belong to, by name; the one it names stands alone."""
    if incident.spec.target_ref is not None:
        return [each for each in targets if each.metadata.name == incident.spec.target_ref.name]
    return sorted(
        (each for each in targets if any(each.spec.matches(alert.labels) for alert in incident.spec.alerts)),
        key=lambda each: each.metadata.name,
    )


def evidence_digest(evidence: list[Evidence]) -> Digest:
    """What a plan is bound to: every observation, as it is shown."""
    return digest([each.dump() for each in evidence])
