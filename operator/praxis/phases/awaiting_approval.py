"""AwaitingApproval: the operator stops here. Only a person's decision, an alert that clears, or time leads on."""

from __future__ import annotations

from datetime import timedelta

from praxis.api.incident import Incident
from praxis.api.reasons import ConditionType, Reason
from praxis.approval.judgement import Approved, Dismissed, Judgement, Rejected, RevisionRequested, judge
from praxis.approval.signature import signed_with
from praxis.clock import parse_rfc3339
from praxis.machine import Phase
from praxis.phases.contract import ConditionUpdate, Tools, Transition, Wait
from praxis.phases.decisions import another_plan, decided, dismissed
from praxis.phases.spending import cleared
from praxis.signing.decisions import checked


async def reconcile(incident: Incident, tools: Tools) -> Transition | Wait:
    """Carry out what people decided; a Reject, Revise or Dismiss goes before any Approve, whenever it came."""
    approvals, server_now = await tools.cluster.approvals(incident)
    signatures = await checked(approvals, tools.cluster.allowed_signers)
    now = tools.clock.now()
    judgement = judge(
        incident, approvals, now=now, server_now=server_now, quorum=tools.settings.quorum, signatures=signatures
    )
    by_uid = {each.metadata.uid: each for each in approvals}
    if not incident.spec.firing and not isinstance(judgement.decision, Dismissed):
        return cleared(incident)
    match judgement.decision:
        case Approved(bound=bound):
            people = ", ".join(f"{each.approver}{signed_with(by_uid[each.uid], signatures)}" for each in bound)
            return Transition(
                to=Phase.EXECUTING,
                reason=Reason.APPROVED,
                message=f"approved by {people}",
                changes={"approvals": list(bound), "waiting_since": None},
                records=[decided(by_uid[each.uid], Reason.APPROVED) for each in bound],
                conditions=[approved_condition(judgement, complete=True)],
            )
        case Rejected(approval=approval):
            return another_plan(incident, approval, Reason.REJECTED)
        case RevisionRequested(approval=approval):
            return another_plan(incident, approval, Reason.REVISION_REQUESTED)
        case Dismissed(approval=approval):
            return dismissed(approval)
        case None:
            return waiting(incident, judgement, tools)


def waiting(incident: Incident, judgement: Judgement, tools: Tools) -> Transition | Wait:
    """Show how many have approved, until the deadline closes the incident."""
    since = parse_rfc3339(incident.status.phase_times[Phase.AWAITING_APPROVAL])
    deadline = since + timedelta(seconds=tools.settings.deadlines.awaiting_approval)
    remaining = (deadline - tools.clock.now()).total_seconds()
    if remaining <= 0:
        return Transition(
            to=Phase.CLOSED,
            reason=Reason.APPROVAL_EXPIRED,
            message=f"nobody decided within {tools.settings.deadlines.awaiting_approval:g} s; "
            "if the alert fires on, its next repeat opens a new incident",
        )
    return Wait(
        remaining,
        Reason.PENDING,
        conditions=[approved_condition(judgement, complete=False)],
    )


def approved_condition(judgement: Judgement, *, complete: bool) -> ConditionUpdate:
    """`1/2 approved by alice`, and what could not be checked."""
    people = f" by {', '.join(judgement.have)}" if judgement.have else ""
    return ConditionUpdate(
        ConditionType.APPROVED,
        status=complete,
        reason=Reason.APPROVED if complete else Reason.PENDING,
        message="; ".join([f"{len(judgement.have)}/{judgement.needed} approved{people}", *judgement.doubts])[:1024],
    )
