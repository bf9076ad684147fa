"""The gate's look at the approvals that a plan runs on, right before an action.

Between acceptance and an action there may be minutes: a dry run before it, another incident that holds the target, an
operator that was down. So everything that made the approvals good is asked again, on fresh and consistent reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from praxis.api.approval import Decision, IncidentApproval, Verdict
from praxis.api.incident import BoundApproval, EntryKind, Incident
from praxis.api.reasons import Reason
from praxis.approval.judgement import bind, people_needed, same_person
from praxis.approval.ruling import a_person, arrival
from praxis.approval.signature import UNCHECKED, Signatures, doubt, fault
from praxis.approval.validity import PRECEDENCE, Clocks, Standing, intact, short
from praxis.digest import same
from praxis.errors import RetryLater
from praxis.settings import Quorum

REASONS = {
    Decision.REJECT: Reason.REJECTED,
    Decision.REVISE: Reason.REVISION_REQUESTED,
    Decision.DISMISS: Reason.DISMISSED,
}


@dataclass(frozen=True)
class Lapse:
    """Why the plan may not go on; `objection` is the decision of a person that came since, if that is why."""

    reason: Reason
    message: str
    objection: IncidentApproval | None = None


def still_valid(
    incident: Incident,
    approvals: Sequence[IncidentApproval],
    *,
    now: datetime,
    server_now: datetime | None,
    quorum: Quorum,
    signatures: Signatures = UNCHECKED,
) -> Lapse | None:
    """None when the incident in Executing may take its next action, else why not.

    `approvals` are all that name the incident, read after it. The verdict on an objection is not asked: it may have
    been refused for coming after acceptance, but as long as nothing was sent, a no counts.

    Raises:
        RetryLater: it is not known whether a signature holds that decides.
    """
    plan = incident.status.plan
    if plan is None or not intact(incident, plan):
        return Lapse(Reason.PLAN_DRIFTED, "the stored plan is not the one that was approved: its digest differs")
    clocks = Clocks(now, server_now)
    objection = _objection(incident, approvals, clocks, signatures)
    if objection is not None:
        known(objection, signatures)
        spec = objection.spec
        return Lapse(
            REASONS[spec.decision],
            f"{spec.approver.username} decided {spec.decision} after the plan was approved: {spec.reason}",
            objection,
        )
    by_uid = {each.metadata.uid: each for each in approvals}
    for bound in incident.status.approvals:
        lapse = _lapsed(incident, bound, by_uid.get(bound.uid), clocks, signatures)
        if lapse is not None:
            return lapse
    people = _people(incident.status.approvals, signatures)
    needed = people_needed(incident, quorum)
    if len(people) < needed:
        return Lapse(
            Reason.QUORUM_NOT_MET,
            f"{needed} distinct people must approve a plan of tier {plan.tier}; it has {len(people)}",
        )
    return None


def known(approval: IncidentApproval, signatures: Signatures) -> None:
    """Raises RetryLater: whether the signature holds is not known now."""
    why = doubt(approval, signatures)
    if why is not None:
        raise RetryLater(
            f"nothing is sent before it is known whether the signature on {approval.spec.decision} "
            f"{approval.metadata.name} of {approval.spec.approver.username} holds: {why}"
        )


def _people(approvals: Sequence[BoundApproval], signatures: Signatures) -> list[BoundApproval]:
    """One approval of each person."""
    people: list[BoundApproval] = []
    for each in approvals:
        if not any(same_person(each, other, signatures) for other in people):
            people.append(each)
    return people


def _objection(
    incident: Incident, approvals: Sequence[IncidentApproval], clocks: Clocks, signatures: Signatures
) -> IncidentApproval | None:
    """The leading decision other than Approve that a person made on this very plan, unless it surely expired."""
    assert incident.status.plan is not None
    digest = incident.status.plan.digest
    objections = [
        each
        for each in approvals
        if each.spec.decision is not Decision.APPROVE
        and each.metadata.deletion_timestamp is None
        and each.metadata.namespace == incident.metadata.namespace
        and each.spec.incident_ref.uid == incident.metadata.uid
        and same(each.spec.plan_digest, digest)
        and a_person(each.spec.approver.username)
        and fault(each, signatures) is None
        and clocks.standing(each.spec.expires_at) is not Standing.EXPIRED
    ]
    return min(
        objections,
        key=lambda a: (doubt(a, signatures) is not None, PRECEDENCE.index(a.spec.decision), arrival(a)),
        default=None,
    )


def _lapsed(
    incident: Incident,
    bound: BoundApproval,
    found: IncidentApproval | None,
    clocks: Clocks,
    signatures: Signatures,
) -> Lapse | None:
    """Why an approval no longer carries the plan."""
    assert incident.status.plan is not None
    if found is None or found.metadata.deletion_timestamp is not None:
        return Lapse(Reason.APPROVAL_WITHDRAWN, f"approval {bound.name} of {bound.approver} was deleted")
    if not _as_accepted(incident, bound, found):
        return Lapse(Reason.APPROVAL_WITHDRAWN, f"approval {bound.name} of {bound.approver} is not what was accepted")
    known(found, signatures)
    why = fault(found, signatures)
    if why is not None:  # it was verified at acceptance: since then the key was revoked, or taken from the list
        return Lapse(
            Reason.SIGNATURE_NOT_VERIFIED, f"the signature on approval {bound.name} of {bound.approver} fails: {why}"
        )
    if not same(bound.plan_digest, incident.status.plan.digest):
        return Lapse(Reason.PLAN_DRIFTED, f"approval {bound.name} is on plan {short(bound.plan_digest)}, not on this")
    standing = clocks.standing(found.spec.expires_at)
    if standing is not Standing.CURRENT:
        doubt = " by at least one of two clocks" if standing is Standing.IN_DOUBT else ""
        return Lapse(Reason.EXPIRED, f"approval {bound.name} of {bound.approver} expired at {bound.expires_at}{doubt}")
    return None


def _as_accepted(incident: Incident, bound: BoundApproval, found: IncidentApproval) -> bool:
    """Whether the stored object still is what was copied in, and word for word what the trail recorded."""
    record = found.record_digest
    return (
        bind(found) == bound
        and found.spec.decision is Decision.APPROVE
        and found.spec.incident_ref.uid == incident.metadata.uid
        and found.metadata.namespace == incident.metadata.namespace
        and a_person(found.spec.approver.username)
        and found.status.verdict is not Verdict.REFUSED
        and any(entry.kind is EntryKind.DECIDED and entry.digest == record for entry in incident.status.trail)
    )
