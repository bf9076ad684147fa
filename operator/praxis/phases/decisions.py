"""What a person's decision leads to, and how the trail tells it: who, and by digest exactly what they said."""

from __future__ import annotations

from praxis.api.approval import IncidentApproval
from praxis.api.incident import EntryKind, Incident
from praxis.api.reasons import Reason
from praxis.api.records import statement_record
from praxis.machine import Phase
from praxis.phases.contract import Record, Transition
from praxis.redaction import fit

SENTENCE = 1024
"""Longest message and longest correction, characters."""


def decided(approval: IncidentApproval, reason: Reason) -> Record:
    """The trail entry of a person's decision."""
    said = statement_record(approval.dump())
    return Record(EntryKind.DECIDED, reason, actor=approval.spec.approver.username, document=said)


def another_plan(incident: Incident, approval: IncidentApproval, reason: Reason) -> Transition:
    """Back to drafting, with what the person said; not with the secrets that they said."""
    said = [fit(text, SENTENCE) for text in (*approval.spec.corrections, approval.spec.reason) if text]
    verb = "rejected" if reason is Reason.REJECTED else "sent back"
    return Transition(
        to=Phase.INVESTIGATED,
        reason=reason,
        message=f"{verb} by {approval.spec.approver.username}: {'; '.join(said)}"[:SENTENCE],
        changes={"corrections": [*incident.status.corrections, *said]},
        records=[decided(approval, reason)],
    )


def dismissed(approval: IncidentApproval) -> Transition:
    """Closed: nothing is to be done."""
    return Transition(
        to=Phase.CLOSED,
        reason=Reason.DISMISSED,
        message=fit(f"dismissed by {approval.spec.approver.username}: {approval.spec.reason}", SENTENCE),
        records=[decided(approval, Reason.DISMISSED)],
    )
