"""Executing: the approved actions, one after the other. The plainest code of the house, for the one real write.

    gate     fresh reads: is what was approved still true?
    claim    the target's holder, by compare-and-swap, under a new intent id
    baseline what is running now; it must be what the plan was drafted on
    intent   a status write that carries the send as `then`: it runs after the 2xx, or never
    outcome  Applied, NotApplied or Unknown, written until it is stored

Whoever finds an intent without an outcome that is not in the middle of its own send only reads: Applied or Unknown.
On a status that is not what its trail records nothing is concluded but Unknown.
"""

from __future__ import annotations

import asyncio
import secrets

from praxis.actions.drift import drift
from praxis.api.base import IntentId
from praxis.api.incident import EntryKind, Incident, Intent, Outcome, Result, Step
from praxis.api.plan import Action
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.clock import rfc3339
from praxis.digest import same
from praxis.errors import DefinitelyNotApplied
from praxis.machine import Phase
from praxis.phases import gate, holding, integrity
from praxis.phases.contract import Record, Tools, Transition, Wait
from praxis.phases.outcome import believed, concluded, replaced
from praxis.phases.send import Send, on_own_thread

HELD_RETRY_SECONDS = 15.0


async def reconcile(incident: Incident, tools: Tools) -> Transition | Wait:
    """The next thing to do for the approved revision."""
    plan = incident.status.plan
    if incident.status.open_step is not None:
        return await settle(incident, incident.status.open_step, tools)
    steps = counted(incident)
    results = {step.outcome.result for step in steps.values() if step.outcome is not None}
    ended = stopped(steps, results)
    if ended is not None:
        return ended
    assert plan is not None, "the API server lets nothing into Executing without a plan"
    following = next((action for action in plan.actions if action.id not in steps), None)
    if following is None:
        return done(steps, results)
    looked = tools.clock.boottime()
    if Result.APPLIED not in results:
        # What was applied cannot be walked back, so the gate stands before it only.
        shut = await gate.shut(incident, tools)
        if shut is not None:
            return shut
    if not following.real:
        return dry_run(incident, following, tools)
    return await intend(incident, following, tools, looked=looked)


def counted(incident: Incident) -> dict[str, Step]:
    """The steps that decide what is next, by action: those of the approved revision.

    What is not known comes before them, also where somebody changed the plan under it.
    """
    status = incident.status
    unknown = [step for step in status.steps if step.outcome is not None and step.outcome.result is Result.UNKNOWN]
    return {step.action: step for step in unknown or (status.steps_of(status.plan.revision) if status.plan else [])}


def stopped(steps: dict[str, Step], results: set[Result]) -> Transition | None:
    """Where an outcome leads that ends the plan early."""
    if Result.UNKNOWN in results:
        return Transition(
            to=Phase.RECONCILIATION_REQUIRED,
            reason=Reason.OUTCOME_UNKNOWN,
            message=f"whether the action was applied is not known: {message_of(steps, Result.UNKNOWN)}"[:1024],
        )
    if Result.NOT_APPLIED in results:
        return Transition(
            to=Phase.INVESTIGATED,
            reason=Reason.NOT_APPLIED,
            message=f"the action was definitely not applied: {message_of(steps, Result.NOT_APPLIED)}"[:1024],
        )
    return None


def done(steps: dict[str, Step], results: set[Result]) -> Transition:
    """Where a plan leads whose every action has an outcome."""
    if Result.APPLIED in results:
        return Transition(
            to=Phase.OBSERVING,
            reason=Reason.ACTIONS_DONE,
            message=f"applied: {message_of(steps, Result.APPLIED)}"[:1024],
        )
    return Transition(
        to=Phase.CLOSED,
        reason=Reason.DRY_RUN_ONLY,
        message="every action was a DRY RUN: nothing was changed and nothing is remediated",
    )


def message_of(steps: dict[str, Step], result: Result) -> str:
    """What the step with that result says."""
    return next(step.outcome.message for step in steps.values() if step.outcome and step.outcome.result is result)


def dry_run(incident: Incident, action: Action, tools: Tools) -> Transition:
    """Record what would have been done. Nothing leaves the process."""
    assert incident.status.plan is not None
    step = Step(
        revision=incident.status.plan.revision,
        action=action.id,
        outcome=Outcome(
            result=Result.DRY_RUN,
            reason=Reason.DRY_RUN,
            message=action.effect,
            writer=tools.writer,
            time=rfc3339(tools.clock.now()),
        ),
    )
    return Transition(
        to=Phase.EXECUTING,
        reason=Reason.DRY_RUN,
        message=action.effect,
        changes={"steps": [*incident.status.steps, step]},
        records=[Record(EntryKind.OUTCOME_RECORDED, Reason.DRY_RUN, document=step.dump())],
    )


async def intend(incident: Incident, action: Action, tools: Tools, *, looked: float) -> Transition | Wait:
    """Claim, look, and write the intent that carries the send. `looked` is when the gate did, seconds since boot."""
    target = await declared(incident, action, tools)
    if target is None:
        return drifted(f"target {action.target.name} is gone")
    intent = IntentId(f"praxis-{secrets.token_hex(16)}")
    claimed = await holding.claim(incident, target, intent, tools)
    if claimed is None:
        assert target.status.holder is not None
        other = target.status.holder.incident_name
        return Wait(
            HELD_RETRY_SECONDS,
            Reason.TARGET_HELD,
            f"target {target.metadata.name} is held by incident {other} until that ends; "
            f"if its outcome is unknown or it is gone, `praxis reconcile {other}` frees the target",
            stalled=True,
        )
    try:
        baseline = await asyncio.to_thread(tools.adapter.observe, claimed)
    except DefinitelyNotApplied as error:
        return drifted(str(error), Reason(error.reason))
    if not same(baseline.state, action.target.state):
        function = claimed.spec.function_compute.function
        what = drift(action.target.parts, baseline.parts)
        return drifted(f"function {function} changed since the plan was proposed{what}")
    # The window opens before the intent's write is sent: however long that write takes counts against it.
    window_opened = tools.clock.boottime()
    if window_opened - looked > tools.settings.actions.dispatch_window:
        # Stopped since the gate, or slow: approvals may have run out or been overruled meanwhile, which no fence shows.
        return Wait(0.0, message="what the gate saw is too old by now; looking again")
    assert incident.status.plan is not None
    step = Step(
        revision=incident.status.plan.revision,
        action=action.id,
        intent=Intent(id=intent, writer=tools.writer, time=rfc3339(tools.clock.now()), baseline=baseline),
    )
    return Transition(
        to=Phase.EXECUTING,
        reason=Reason.INTENT_RECORDED,
        message=f"about to act: {action.effect}"[:1024],
        changes={"steps": [*incident.status.steps, step]},
        records=[Record(EntryKind.INTENT_RECORDED, Reason.INTENT_RECORDED, document=step.dump())],
        then=Send(target=claimed, step=step, window_opened=window_opened, tools=tools),
    )


async def settle(incident: Incident, step: Step, tools: Tools) -> Transition | Wait:
    """Somebody's intent has no outcome. Wait until its writer can no longer send, then read; never send.

    The wait is counted on our own clock from when we first saw the intent: another machine's clock may be off.
    """
    assert step.intent is not None
    fault = integrity.fault_of(incident)
    # On a status that somebody changed, also the id may be another's: what we know of ours says nothing of it.
    if fault is None and tools.sightings.never_sent(step.intent.id):
        # Our own write, given up as lost, was stored after all; a write that is not acknowledged is never acted on.
        return replaced(
            incident,
            step.replace(
                outcome=concluded(
                    tools, Result.NOT_APPLIED, Reason.NEVER_SENT, "the intent's write was not acknowledged in time"
                )
            ),
        )
    limits = tools.settings.actions
    waited = tools.clock.boottime() - tools.sightings.first_seen(step.intent.id)
    remaining = limits.dispatch_window + limits.request_timeout - waited
    if remaining > 0:
        return Wait(
            remaining,
            Reason.VERIFYING,
            f"intent {step.intent.id} was written by another process; reading its outcome in {remaining:.0f} s",
        )
    if fault is not None:
        outcome = concluded(
            tools,
            Result.UNKNOWN,
            Reason.NOT_PROVEN,
            f"no proof rests on a stored status that is not what its trail records: {fault}",
        )
        return replaced(incident, step.replace(outcome=outcome))
    plan = incident.status.plan
    assert plan is not None, "without one there is a fault"
    action = next(each for each in plan.actions if each.id == step.action)
    target = await declared(incident, action, tools)
    if target is None:
        outcome = concluded(
            tools, Result.UNKNOWN, Reason.NOT_PROVEN, f"target {action.target.name} is gone; nothing can be read"
        )
    else:
        intent, baseline = IntentId(step.intent.id), step.intent.baseline
        # It may look for minutes: in the shared pool it would keep others waiting, and the process from ending.
        verdict = await on_own_thread(lambda: tools.adapter.verify(target, intent, baseline, None))
        # Only the process that wrote an intent knows what it sent; whatever an adapter says, we do not.
        outcome = believed(tools, verdict)
    return replaced(incident, step.replace(outcome=outcome))


async def declared(incident: Incident, action: Action, tools: Tools) -> RemediationTarget | None:
    """The action's target as it is declared now, by uid."""
    targets = await tools.cluster.targets(incident.metadata.namespace)
    return next((each for each in targets if each.metadata.uid == action.target.uid), None)


def drifted(message: str, reason: Reason = Reason.PLAN_DRIFTED) -> Transition:
    """Back to drafting: nothing was sent."""
    return Transition(to=Phase.INVESTIGATED, reason=reason, message=message[:1024])
