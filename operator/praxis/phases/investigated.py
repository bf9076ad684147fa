"""Investigated: what should be done? Drafts a plan, pins it to its targets as they are now, and hands it to people."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pydantic import ValidationError

from praxis.actions.catalogue import pin
from praxis.api import bounds
from praxis.api.incident import Baseline, Incident
from praxis.api.plan import REAL, Action, Plan, highest_tier, plan_digest
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.clock import rfc3339
from praxis.digest import PREFIX
from praxis.errors import DefinitelyNotApplied, InvalidAnswer, NeedsPerson
from praxis.machine import Phase
from praxis.phases.contract import Tools, Transition, Wait
from praxis.phases.spending import added, cleared
from praxis.phases.triaged import matching
from praxis.reasoning.contract import ProposedPlan


async def reconcile(incident: Incident, tools: Tools) -> Transition | Wait:
    """Draft, pin, then AwaitingApproval."""
    if not incident.spec.firing:
        return cleared(incident)
    revision = incident.status.plan.revision + 1 if incident.status.plan else 1
    if revision > bounds.PLANS:
        return Transition(
            to=Phase.FAILED,
            reason=Reason.PLANS_EXHAUSTED,
            message=f"{bounds.PLANS} plans were drafted and none helped; this needs a person from here on",
        )
    targets = matching(incident, await tools.cluster.targets(incident.metadata.namespace))
    if not targets:
        raise NeedsPerson(
            f"no RemediationTarget in namespace {incident.metadata.namespace} matches the alerts' labels; declare one, "
            "or name one in spec.targetRef",
            reason=Reason.NO_TARGET,
        )
    guards = await tools.cluster.guards()
    states = await observed(targets, tools)
    answered = await tools.reasoner.draft(incident, targets)
    try:
        plan = pinned(
            incident,
            revision=revision,
            proposed=answered.answer,
            model=answered.model,
            run=answered.run,
            targets=targets,
            states=states,
            tools=tools,
        )
    except InvalidAnswer as error:
        error.usage = answered.usage
        raise
    return Transition(
        to=Phase.AWAITING_APPROVAL,
        reason=Reason.PLAN_PROPOSED,
        message=f"plan {plan.short}: {plan.summary}"[:1024],
        changes={
            "plan": plan,
            "guards": guards,
            "approvals_required": tools.settings.quorum.of(plan.tier),
            "usage": added(incident, answered.usage),
        },
    )


def pinned(
    incident: Incident,
    *,
    revision: int,
    proposed: ProposedPlan,
    model: str,
    run: str | None,
    targets: list[RemediationTarget],
    states: Mapping[str, Baseline | DefinitelyNotApplied],
    tools: Tools,
) -> Plan:
    """The proposed plan, bound to the targets by uid and generation, and to the state of their functions.

    Raises:
        InvalidAnswer: it names an undeclared target or a real action on a function that cannot be acted on, or breaks
            the rules of a plan.
    """
    assert incident.status.evidence_digest is not None, "Investigated is entered with evidence"
    by_name = {target.metadata.name: target for target in targets}
    actions: list[Action] = []
    for each in proposed.actions:
        target = by_name.get(each.target)
        if target is None:
            raise InvalidAnswer(f"the plan names target {each.target!r}; declared are: {', '.join(by_name)}")
        state = states[each.target]
        if isinstance(state, DefinitelyNotApplied):
            if each.type in REAL:
                raise InvalidAnswer(f"{each.type} cannot be carried out on {each.target}: {state}")
            state = Baseline(state="")
        actions.append(
            pin(
                action_id=each.id,
                action_type=each.type,
                tier=each.tier,
                parameters=each.parameters,
                rollback=each.rollback,
                target=target,
                state=state.state,
                parts=state.parts,
            )
        )
    digest = plan_digest(
        incident_uid=incident.metadata.uid,
        revision=revision,
        actions=actions,
        evidence_digest=incident.status.evidence_digest,
    )
    try:
        return Plan(
            revision=revision,
            digest=digest,
            short=digest.removeprefix(PREFIX)[:12],
            summary=proposed.summary,
            rationale=proposed.rationale,
            actions=actions,
            tier=highest_tier(actions),
            evidence_digest=incident.status.evidence_digest,
            model=model,
            run=run,
            proposed_at=rfc3339(tools.clock.now()),
        )
    except ValidationError as error:
        raise InvalidAnswer(f"the plan does not hold: {error.errors()[0]['msg']}") from error


async def observed(targets: list[RemediationTarget], tools: Tools) -> dict[str, Baseline | DefinitelyNotApplied]:
    """Each function as it is now, or why it cannot be acted on.

    Read before the model is asked: a service that cannot be reached then costs no tokens.
    """
    states: dict[str, Baseline | DefinitelyNotApplied] = {}
    for target in targets:
        try:
            states[target.metadata.name] = await asyncio.to_thread(tools.adapter.observe, target)
        except DefinitelyNotApplied as error:
            states[target.metadata.name] = error
    return states
