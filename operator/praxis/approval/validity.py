"""Whether one decision can count at all: of this incident, by a person, on this very plan, in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from functools import partial

from praxis.api.approval import Decision, IncidentApproval
from praxis.api.incident import EntryKind, Incident
from praxis.api.plan import Plan
from praxis.api.reasons import Reason
from praxis.approval.ruling import Ruling, a_person, accepted, pending, refused
from praxis.approval.signature import Signatures, fault
from praxis.clock import parse_rfc3339
from praxis.digest import PREFIX, same
from praxis.machine import TERMINAL, Phase

PRECEDENCE = (Decision.REJECT, Decision.REVISE, Decision.DISMISS, Decision.APPROVE)
"""Which decision goes before which, whenever each came: one person who says no outweighs any number who say yes."""
WON_BY = {
    Reason.REJECTED.value: Decision.REJECT,
    Reason.REVISION_REQUESTED.value: Decision.REVISE,
    Reason.DISMISSED.value: Decision.DISMISS,
}
"""The decision that led out of AwaitingApproval, by the reason that `status` gives for it."""


class Standing(IntEnum):
    """Whether a decision is in time, by two clocks. Sorts the sure before the doubtful."""

    CURRENT = 0
    IN_DOUBT = 1
    EXPIRED = 2


@dataclass(frozen=True)
class Clocks:
    """Our clock and the API server's (None when it sent no `Date`).

    Either may be wrong. So nothing runs unless it is in time on both, and nothing is refused unless it is late on both:
    a wrong clock alone can neither carry out an expired approval nor throw away a good one.
    """

    ours: datetime
    server: datetime | None

    def standing(self, expires_at: str) -> Standing:
        """In time, late, or in doubt; a time that cannot be read is late."""
        try:
            end = parse_rfc3339(expires_at)
        except (ValueError, OverflowError):
            return Standing.EXPIRED
        late = [self.ours >= end, self.server is None or self.server >= end]
        if not any(late):
            return Standing.CURRENT
        # Without the server's time, only our own can be said to be late: that is doubt, not a refusal.
        return Standing.EXPIRED if all(late) and self.server is not None else Standing.IN_DOUBT


def intact(incident: Incident, plan: Plan) -> bool:
    """Whether the stored plan is what its digest says: what was shown to people is what would run."""
    try:
        return same(plan.recomputed(incident.metadata.uid), plan.digest)
    except ValueError:
        return False


def acted_on(incident: Incident, approval: IncidentApproval) -> bool:
    """Whether this incident has gone by this decision already, now or in an earlier round.

    Read from the trail, which never loses an entry, so that an operator that died between the incident's write and the
    approval's verdict still says Accepted afterwards, and never counts the decision again.
    """
    if any(bound.uid == approval.metadata.uid for bound in incident.status.approvals):
        return True
    record = approval.record_digest
    return any(entry.kind is EntryKind.DECIDED and entry.digest == record for entry in incident.status.trail)


def settled_alone(
    incident: Incident, approval: IncidentApproval, clocks: Clocks, signatures: Signatures
) -> Ruling | None:
    """The ruling on a decision that needs no look at the others; None when it stands for the plan that waits."""
    checks: tuple[Callable[[Incident, IncidentApproval], Ruling | None], ...] = (
        _another_incident,
        _acted_on,
        _not_a_person,
        partial(_signature_not_verified, signatures=signatures),
        _not_awaiting,
        _another_plan,
    )
    for check in checks:
        ruling = check(incident, approval)
        if ruling is not None:
            return ruling
    if clocks.standing(approval.spec.expires_at) is Standing.EXPIRED:
        return expired(approval)
    return None


def no_incident(approval: IncidentApproval) -> Ruling:
    """The ruling on a decision whose incident does not exist."""
    ref = approval.spec.incident_ref
    return refused(
        approval,
        Reason.INCIDENT_NOT_FOUND,
        f"there is no incident {ref.name} with uid {ref.uid} in namespace {approval.metadata.namespace}; "
        "praxis approve fills in both",
    )


def expired(approval: IncidentApproval) -> Ruling:
    """It came too late."""
    return refused(
        approval,
        Reason.EXPIRED,
        f"it expired at {approval.spec.expires_at}, unused; look at the plan again and decide anew: "
        f"praxis show {approval.spec.incident_ref.name} -n {approval.metadata.namespace}",
    )


def short(digest: str) -> str:
    """The first digits of a digest, as `kubectl get incidents` shows them."""
    return digest.removeprefix(PREFIX)[:12]


def _another_incident(incident: Incident, approval: IncidentApproval) -> Ruling | None:
    # The namespace counts too: RBAC lets people approve namespace by namespace.
    ref, meta = approval.spec.incident_ref, incident.metadata
    if (ref.uid, ref.name, approval.metadata.namespace) == (meta.uid, meta.name, meta.namespace):
        return None
    return no_incident(approval)


def _acted_on(incident: Incident, approval: IncidentApproval) -> Ruling | None:
    if not acted_on(incident, approval):
        return None
    return accepted(approval, f"the incident went by it; plan {short(approval.spec.plan_digest)}")


def _not_a_person(incident: Incident, approval: IncidentApproval) -> Ruling | None:
    del incident
    username = approval.spec.approver.username
    if a_person(username):
        return None
    return refused(
        approval, Reason.APPROVER_NOT_A_PERSON, f"only people decide; {username} is an account of the cluster itself"
    )


def _signature_not_verified(incident: Incident, approval: IncidentApproval, *, signatures: Signatures) -> Ruling | None:
    # Whoever applied it: a person who signs expects to be taken at their signature, not at the name they applied it as.
    del incident
    why = fault(approval, signatures)
    if why is None:
        return None
    return refused(
        approval,
        Reason.SIGNATURE_NOT_VERIFIED,
        f"its signature does not hold: {why}. Decide anew, signed with a listed key or under your own name without one",
    )


def _not_awaiting(incident: Incident, approval: IncidentApproval) -> Ruling | None:
    status, name = incident.status, incident.metadata.name
    if status.phase is Phase.AWAITING_APPROVAL:
        return None
    on_this_plan = status.plan is not None and same(approval.spec.plan_digest, status.plan.digest)
    if status.phase is Phase.EXECUTING and on_this_plan and approval.spec.decision is not Decision.APPROVE:
        return pending(approval, "the plan is being carried out; this is heeded as long as nothing was applied")
    if not on_this_plan and status.phase not in TERMINAL:
        return refused(
            approval,
            Reason.NOT_AWAITING_APPROVAL,
            f"{name} is in phase {status.phase}: no plan waits for a decision; read the next one: praxis show {name} "
            f"-n {incident.metadata.namespace}",
        )
    winner = WON_BY.get(status.reason or "")
    if on_this_plan and winner is not None and PRECEDENCE.index(winner) < PRECEDENCE.index(approval.spec.decision):
        return overruled(approval, winner)
    return refused(
        approval,
        Reason.ALREADY_DECIDED,
        f"plan {short(approval.spec.plan_digest)} has been decided already; {name} is in phase {status.phase}",
    )


def overruled(approval: IncidentApproval, winner: Decision, *, provisional: bool = False) -> Ruling:
    """Somebody's decision of higher precedence was acted on."""
    return refused(
        approval,
        Reason.OVERRULED,
        f"somebody else's {winner} goes before {approval.spec.decision}, whichever came first; "
        "a new plan needs a new decision",
        provisional=provisional,
    )


def _another_plan(incident: Incident, approval: IncidentApproval) -> Ruling | None:
    plan, meta = incident.status.plan, incident.metadata
    if plan is None or not same(approval.spec.plan_digest, plan.digest):
        current = f"the current plan is {plan.digest}" if plan else "there is no plan"
        return refused(
            approval,
            Reason.PLAN_SUPERSEDED,
            f"it is on plan {short(approval.spec.plan_digest)}, which is not the current one; {current}. "
            f"Read it and decide on it: praxis show {meta.name} -n {meta.namespace}",
        )
    # People can always leave a damaged plan; only approving it is out of the question.
    if approval.spec.decision is Decision.APPROVE and not intact(incident, plan):
        return refused(
            approval,
            Reason.PLAN_DRIFTED,
            f"the stored plan is not the one that digest {short(plan.digest)} names, so nobody can approve it; "
            f"ask for another: praxis revise {meta.name} -n {meta.namespace}",
        )
    return None
