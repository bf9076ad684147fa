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
from praxis.approval.gate import still_valid
from praxis.errors import NeedsPerson
from praxis.machine import Phase
from praxis.phases.contract import Tools, Transition
from praxis.phases.decisions import another_plan, dismissed
from praxis.phases.spending import cleared
from praxis.signing.decisions import checked


@dataclass(frozen=True)
class Fault:
    """Why the gate does not open."""

    reason: Reason
    message: str


async def shut(incident: Incident, tools: Tools) -> Transition | None:
    """Where the incident must go instead, or None: the gate is open."""
    if not incident.spec.firing:
        return cleared(incident)
    lapsed = await approvals_lapsed(incident, tools)
    if lapsed is not None:
        return lapsed
    fault = await installation_differs(incident, tools) or await targets_differ(incident, tools)
    if fault is None:
        return None
    return Transition(to=Phase.INVESTIGATED, reason=fault.reason, message=fault.message[:1024])


async def approvals_lapsed(incident: Incident, tools: Tools) -> Transition | None:
    """The plan must hash to its digest, its approvals stand, unexpired on both clocks, and nobody have said no since.

    A no counts as long as nothing was applied, also one whose event came late: this read is consistent.
    """
    approvals, server_now = await tools.cluster.approvals(incident)
    signatures = await checked(approvals, tools.cluster.allowed_signers)
    lapse = still_valid(
        incident,
        approvals,
        now=tools.clock.now(),
        server_now=server_now,
        quorum=tools.settings.quorum,
        signatures=signatures,
    )
    if lapse is None:
        return None
    if lapse.objection is None:
        return Transition(to=Phase.INVESTIGATED, reason=lapse.reason, message=lapse.message[:1024])
    if lapse.reason is Reason.DISMISSED:
        return dismissed(lapse.objection)
    return another_plan(incident, lapse.objection, lapse.reason)


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
    assert incident.status.plan is not None, "without a plan its approvals have lapsed"
    everywhere = await tools.cluster.all_targets()
    for action in incident.status.plan.actions:
        fault = target_differs(incident, action, everywhere)
        if fault is not None:
            return fault
    return None


def target_differs(incident: Incident, action: Action, everywhere: list[RemediationTarget]) -> Fault | None:
    """One action's target: same uid and generation, not being deleted; for a real action, disposable and alone."""
    target = next((each for each in everywhere if each.metadata.uid == action.target.uid), None)
    if target is None or target.metadata.namespace != incident.metadata.namespace:
        return Fault(Reason.PLAN_DRIFTED, f"target {action.target.name} is gone, or was declared anew")
    if target.metadata.generation != action.target.generation or target.metadata.deletion_timestamp is not None:
        was, now = action.target.generation, target.metadata.generation
        how = "is being deleted" if was == now else f"is of generation {now}, not {was} as the plan has it"
        return Fault(Reason.PLAN_DRIFTED, f"target {action.target.name} {how}")
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
