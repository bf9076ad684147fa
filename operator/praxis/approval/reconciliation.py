"""Which person's finding settles an outcome that the operator could not establish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from praxis.api.approval import IncidentReconciliation
from praxis.api.incident import EntryKind, Incident, Result, TrailEntry
from praxis.api.reasons import Reason
from praxis.api.target import Holder
from praxis.approval.ruling import Ruling, a_person, accepted, arrival, refused, undecided
from praxis.digest import same
from praxis.machine import Phase


@dataclass(frozen=True)
class Findings:
    """A ruling for every finding without a verdict, and the one that the incident is to go by (None: none yet)."""

    rulings: tuple[Ruling, ...]
    accepted: IncidentReconciliation | None


def judge_reconciliations(incident: Incident, reconciliations: Sequence[IncidentReconciliation]) -> Findings:
    """Judge all findings that name this incident. The first valid one wins, by creation, then uid.

    A finding must name the very intent whose outcome is unknown and the trail that its author read: somebody who looked
    at another state of affairs has not reconciled this one.
    """
    settled_by = _settled_by(incident)
    winner: IncidentReconciliation | None = None
    rulings: list[Ruling] = []
    for each in sorted(filter(undecided, reconciliations), key=arrival):
        if settled_by is not None:
            rulings.append(_after(incident, each, settled_by))
            continue
        ruling = _fault(incident, each)
        if ruling is None and winner is None:
            winner = each
            ruling = accepted(each, f"recorded as {each.spec.observed}; the target is released", provisional=True)
        elif ruling is None:
            assert winner is not None
            ruling = refused(
                each,
                Reason.ALREADY_DECIDED,
                f"{winner.spec.observer.username} was first: {winner.metadata.name}",
                provisional=True,
            )
        rulings.append(ruling)
    return Findings(tuple(rulings), winner)


def unknown_intent(incident: Incident) -> str | None:
    """The id of the intent whose outcome is unknown, if there is one."""
    return next(
        (
            step.intent.id
            for step in reversed(incident.status.steps)
            if step.intent is not None and step.outcome is not None and step.outcome.result is Result.UNKNOWN
        ),
        None,
    )


def releases(holder: Holder, reconciliations: Sequence[IncidentReconciliation]) -> IncidentReconciliation | None:
    """The first finding by a person that frees a target whose incident is gone: it names incident and intent.

    There is no trail left to compare with; the holder is all that still knows what was sent.
    """
    naming = [
        each
        for each in reconciliations
        if each.metadata.deletion_timestamp is None
        and each.spec.incident_ref.uid == holder.incident_uid
        and each.spec.intent_id == holder.intent_id
        and a_person(each.spec.observer.username)
    ]
    return min(naming, key=arrival, default=None)


def _settled_by(incident: Incident) -> TrailEntry | None:
    return next((each for each in incident.status.trail if each.kind is EntryKind.RECONCILED), None)


def _after(incident: Incident, finding: IncidentReconciliation, entry: TrailEntry) -> Ruling:
    # Read from the trail, so that a verdict that was lost in a crash is still given as it was decided.
    if finding.record_digest == entry.digest:
        return accepted(finding, f"recorded as {finding.spec.observed}; the target is released")
    return refused(
        finding, Reason.ALREADY_DECIDED, f"{incident.metadata.name} was reconciled by {entry.actor} at {entry.time}"
    )


def _fault(incident: Incident, finding: IncidentReconciliation) -> Ruling | None:
    spec, meta = finding.spec, incident.metadata
    if (spec.incident_ref.uid, spec.incident_ref.name, finding.metadata.namespace) != (
        meta.uid,
        meta.name,
        meta.namespace,
    ):
        return refused(
            finding,
            Reason.INCIDENT_NOT_FOUND,
            f"there is no incident {spec.incident_ref.name} with uid {spec.incident_ref.uid} in this namespace",
        )
    if not a_person(spec.observer.username):
        return refused(
            finding,
            Reason.APPROVER_NOT_A_PERSON,
            f"only people reconcile; {spec.observer.username} is an account of the cluster itself",
        )
    intent = unknown_intent(incident)
    if incident.status.phase is not Phase.RECONCILIATION_REQUIRED or intent is None:
        return refused(
            finding,
            Reason.INTENT_MISMATCH,
            f"{meta.name} is in phase {incident.status.phase}: there is nothing to reconcile",
        )
    if not same(spec.intent_id, intent):
        return refused(
            finding,
            Reason.INTENT_MISMATCH,
            f"the outcome of intent {intent} is unknown, not of {spec.intent_id}; look at it and record anew: "
            f"praxis reconcile {meta.name} -n {meta.namespace}",
        )
    if not any(same(spec.trail_head, head) for head in _heads(incident)):
        return refused(
            finding,
            Reason.INTENT_MISMATCH,
            f"it speaks of another state of the incident: the trail's head is {incident.status.head}; read it again: "
            f"praxis show {meta.name} -n {meta.namespace}",
        )
    return None


def _heads(incident: Incident) -> list[str]:
    """The trail's head now, and as it was when a person was first asked."""
    entered = [
        entry.hash
        for entry in incident.status.trail
        if entry.kind is EntryKind.PHASE_CHANGED and entry.phase is Phase.RECONCILIATION_REQUIRED
    ]
    return [*entered, *([incident.status.head] if incident.status.head else [])]
