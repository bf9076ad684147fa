"""The gate: what was approved must still be true, by fresh and consistent reads, right before anything is done.

Anything that differs leads back to Investigated, where a new plan is drafted and people are asked again. No model is
called here, nor anywhere between the acceptance of an approval and the last outcome.
"""

from __future__ import annotations

from dataclasses import dataclass

from praxis.api.incident import Incident
from praxis.api.plan import Action
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.approval.judgement import still_valid
from praxis.digest import same
from praxis.errors import NeedsPerson
from praxis.machine import Phase
from praxis.phases.contract import Tools, Transition


@dataclass(frozen=True)
class Fault:
    """Why the gate does not open."""

    reason: Reason
    message: str


async def shut(incident: Incident, tools: Tools) -> Transition | None:
    """Where the incident must go instead, or None: the gate is open."""
    if not incident.spec.firing:
        return Transition(
            to=Phase.CLOSED, reason=Reason.SELF_RESOLVED, message="the alerts cleared before anything was done"
        )
    fault = (
        digest_differs(incident)
        or await approvals_ended(incident, tools)
        or await installation_differs(incident, tools)
        or await targets_differ(incident, tools)
    )
    if fault is None:
        return None
    closing = fault.reason is Reason.DISMISSED
    return Transition(
        to=Phase.CLOSED if closing else Phase.INVESTIGATED, reason=fault.reason, message=fault.message[:1024]
    )


def digest_differs(incident: Incident) -> Fault | None:
    """The stored plan must hash to the digest that people approved."""
    plan = incident.status.plan
    if plan is None or not same(plan.recomputed(incident.metadata.uid), plan.digest):
        return Fault(Reason.PLAN_DRIFTED, "the stored plan does not match its digest")
    return None


async def approvals_ended(incident: Incident, tools: Tools) -> Fault | None:
    """The approvals must still stand, unexpired on both clocks, and nobody may have said no since."""
    approvals, server_now = await tools.cluster.approvals(incident)
    ended = still_valid(incident, approvals, now=tools.clock.now(), server_now=server_now, quorum=tools.settings.quorum)
    return None if ended is None else Fault(ended.reason, ended.message)


async def installation_differs(incident: Incident, tools: Tools) -> Fault | None:
    """CRDs, policies and bindings must be the very objects, unchanged, under which people approved.

    A binding that was absent for a moment let anybody approve; a changed generation or uid shows that afterwards too.
    """
    try:
        guards = await tools.cluster.guards()
    except NeedsPerson as error:
        return Fault(Reason.POLICIES_CHANGED, str(error))
    before = {(each.kind, each.name): each for each in incident.status.guards}
    changed = [f"{each.kind} {each.name}" for each in guards if before.get((each.kind, each.name)) != each]
    if changed or len(guards) != len(before):
        return Fault(
            Reason.POLICIES_CHANGED, f"changed since the plan was proposed: {', '.join(changed) or 'their number'}"
        )
    return None


async def targets_differ(incident: Incident, tools: Tools) -> Fault | None:
    """Every target must be the declared object that was approved, and the only one for its function."""
    assert incident.status.plan is not None, "a missing plan shuts the gate earlier"
    everywhere = await tools.cluster.all_targets()
    for action in incident.status.plan.actions:
        fault = target_differs(incident, action, everywhere)
        if fault is not None:
            return fault
    return None


def target_differs(incident: Incident, action: Action, everywhere: list[RemediationTarget]) -> Fault | None:
    """One action's target: same uid and generation, not being deleted, disposable and alone if it is really acted on."""
    target = next((each for each in everywhere if each.metadata.uid == action.target.uid), None)
    if target is None or target.metadata.namespace != incident.metadata.namespace:
        return Fault(Reason.PLAN_DRIFTED, f"target {action.target.name} is gone, or was declared anew")
    if target.metadata.generation != action.target.generation or target.metadata.deletion_timestamp is not None:
        return Fault(Reason.PLAN_DRIFTED, f"target {action.target.name} changed since the plan was proposed")
    if not action.real:
        return None
    if not target.spec.disposable:
        return Fault(Reason.TARGET_NOT_DISPOSABLE, f"target {action.target.name} is not declared disposable")
    sharing = [
        each.key for each in everywhere if each.metadata.uid != target.metadata.uid and one_function(each, target)
    ]
    if sharing:
        return Fault(Reason.TARGET_SHARED, f"{', '.join(sharing)} names the same function as {target.key}")
    return None


def one_function(left: RemediationTarget, right: RemediationTarget) -> bool:
    """Whether two targets name the same function."""
    return identity(left) == identity(right)


def identity(target: RemediationTarget) -> tuple[str, str, str]:
    """What makes a function the same one."""
    function = target.spec.function_compute
    return function.account_id, function.region, function.function
