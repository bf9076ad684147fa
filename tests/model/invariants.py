"""What must hold in every state that can be reached: invariants 1 to 5 of the design, each where it could be broken.

At each status write, at each send, whenever a request takes effect, and when nothing happens any more. What is wrong is
noted in `world.wrong`, in words that a test can expect.
"""

from __future__ import annotations

from datetime import timedelta

from praxis.api.approval import Decision
from praxis.api.incident import Incident, Result, Step
from praxis.api.reasons import ConditionType
from praxis.clock import parse_rfc3339
from praxis.machine import TERMINAL, Phase, allows
from tests.model.looks import SETTINGS, Look
from tests.model.situation import ModelWorld

WINDOW = SETTINGS.actions.dispatch_window
QUIET = TERMINAL | {Phase.OBSERVING, Phase.AWAITING_APPROVAL}


def written(world: ModelWorld, before: Incident, after: Incident) -> None:
    """A status was stored."""
    old, new = before.status, after.status
    world.expect(allows(old.phase, new.phase), f"{old.phase} to {new.phase}")
    world.expect(new.trail[: len(old.trail)] == old.trail, "the trail was rewritten")
    world.expect(sum(step.open for step in new.steps) <= 1, "two open intents")
    world.expect(new.phase is Phase.EXECUTING or new.open_step is None, f"an open intent in {new.phase}")
    for index, step in enumerate(old.steps):
        step_stays(world, step, new.steps[index] if index < len(new.steps) else None)
    known = {step.intent.id for step in old.steps if step.intent and step.outcome}
    for step in new.steps:
        if step.intent is not None and step.outcome is not None and step.intent.id not in known:
            outcome_stored(world, step)
    if new.open_step is not None and old.open_step is None:
        world.expect(before.spec.firing, "an intent when nothing fires")
    if new.phase is old.phase:
        return
    if new.phase is Phase.EXECUTING:
        door_opened(world, after)
    results = {step.outcome.result for step in new.steps_of(new.plan.revision) if step.outcome} if new.plan else set()
    if old.phase is Phase.EXECUTING and new.phase in {Phase.INVESTIGATED, Phase.CLOSED}:
        world.expect(not results & {Result.APPLIED, Result.UNKNOWN}, "walked back")
    if new.phase is Phase.OBSERVING:
        world.expect(Result.APPLIED in results and Result.UNKNOWN not in results, "success without an applied action")


def step_stays(world: ModelWorld, before: Step, after: Step | None) -> None:
    """A step only ever gains its outcome."""
    same = after is not None and (after.revision, after.action, after.intent) == (
        before.revision,
        before.action,
        before.intent,
    )
    world.expect(same and (before.outcome is None or after == before), "a step changed")


def outcome_stored(world: ModelWorld, step: Step) -> None:
    """Applied is what really landed, with its proof; NotApplied what never does, by who knows it."""
    assert step.intent is not None
    assert step.outcome is not None
    landed = step.intent.id in world.function.landed
    if step.outcome.result is Result.APPLIED:
        world.expect(landed, "Applied, and nothing landed")
        world.expect(step.outcome.proof != "", "Applied without proof")
    if step.outcome.result is Result.NOT_APPLIED:
        world.expect(not landed, "NotApplied, and it landed")
        world.expect(step.intent.id not in world.function.under_way, "NotApplied, and it is under way")
        world.expect(step.outcome.writer == step.intent.writer, "NotApplied by another process")


def door_opened(world: ModelWorld, incident: Incident) -> None:
    """Executing: by enough people, on this very plan, and nobody had said no on it."""
    status = incident.status
    assert status.plan is not None
    people = {each.approver for each in status.approvals}
    needed = max(status.approvals_required or 1, SETTINGS.quorum.of(status.plan.tier))
    world.expect(len(people) >= needed, "too few people")
    world.expect(len(people) == len(status.approvals), "somebody counted twice")
    digest = status.plan.recomputed(incident.metadata.uid)
    world.expect(all(each.plan_digest == digest for each in status.approvals), "another plan was approved")


def landed(world: ModelWorld, intent: str) -> None:
    """A request takes effect."""
    for incident in world.incidents.values():
        for step in incident.status.steps:
            if step.intent is not None and step.intent.id == intent and step.outcome is not None:
                world.expect(step.outcome.result is not Result.NOT_APPLIED, "NotApplied, and it landed later")


def sent(world: ModelWorld, look: Look) -> None:
    """A request leaves a process: everything that makes it right is looked at where it is stored, and in what it read.

    Called before the function has it.
    """
    assert look.ask is not None
    assert look.ask.target is not None
    intent, uid = look.ask.intent, look.ask.target.metadata.uid
    world.expect(intent not in world.function.sends, "an action was sent twice")
    found = next(
        (
            (incident, step)
            for incident in world.incidents.values()
            for step in incident.status.steps
            if step.intent is not None and step.intent.id == intent
        ),
        None,
    )
    if found is None:
        world.wrong.append("a send without a stored intent")
        return
    incident, step = found
    assert step.intent is not None
    world.expect(step.outcome is None, "a send after its outcome")
    world.expect(step.intent.writer == look.process, "a send by another process")
    world.expect(any(each.label == "answer" for each in look.log), "a send without the intent's 2xx")
    age = world.time.wall - parse_rfc3339(step.intent.time)
    world.expect(age <= timedelta(seconds=WINDOW), "a send past its window")
    target = world.targets.get(uid)
    holder = target.status.holder if target is not None else None
    world.expect(holder is not None and holder.intent_id == intent, "a send by who does not hold the target")
    world.expect(incident.status.phase is Phase.EXECUTING, f"a send in {incident.status.phase}")
    for other in world.incidents.values():
        world.expect(other is incident or other.status.open_step is None, "two incidents act on one function")
    world.expect(not unreconciled(world), "a send while an outcome is unknown")
    still_approved(world, look, incident, step)


def unreconciled(world: ModelWorld) -> bool:
    """Whether the outcome of an intent is unknown, and no person has said yet what became of it."""
    found = {each.spec.intent_id for each in world.reconciliations.values()}
    for incident in (*world.incidents.values(), *world.gone):
        reconciled = incident.status.condition(ConditionType.RECONCILED)
        settled = reconciled is not None and reconciled.status == "True"
        for step in incident.status.steps:
            unknown = step.intent is not None and step.outcome is not None and step.outcome.result is Result.UNKNOWN
            if unknown and not settled and not (incident in world.gone and step.intent and step.intent.id in found):
                return True
    return False


def still_approved(world: ModelWorld, look: Look, incident: Incident, step: Step) -> None:
    """What runs is what was approved; and what the gate must look at was good when this very look read it."""
    status = incident.status
    assert status.plan is not None
    digest = status.plan.recomputed(incident.metadata.uid)
    world.expect(digest == status.plan.digest, "the plan is not what was approved")
    action = next(each for each in status.plan.actions if each.id == step.action)
    assert look.ask is not None
    assert look.ask.target is not None
    world.expect(action.target.uid == look.ask.target.metadata.uid, "another target than was approved")
    world.expect(action.target.state == world.function.state, "another state than was approved")
    world.expect(status.guards == look.told("guards"), "the policies had changed")
    listed = look.told("approvals")
    if listed is None:
        world.wrong.append("nobody looked at the approvals")
        return
    since = next(each.boot for each in reversed(look.log) if each.label == "approvals")
    world.expect(world.time.boot - since <= 2 * WINDOW, "the gate's look was too old")
    approvals = {each.metadata.uid: each for each in listed[0]}
    for each in approvals.values():
        no = each.spec.decision is not Decision.APPROVE and each.spec.plan_digest == digest
        world.expect(not no or parse_rfc3339(each.spec.expires_at) <= listed[1], "somebody had said no")
    for bound in status.approvals:
        stored = approvals.get(bound.uid)
        world.expect(stored is not None, "an approval had been withdrawn")
        world.expect(parse_rfc3339(bound.expires_at) > listed[1], "an approval had expired")
    read = look.told("read")
    world.expect(read is None or read.spec.firing, "the alert had cleared")


def quiet(world: ModelWorld, incident: Incident) -> bool:
    """Whether an incident has ended, waits for people or for its alerts, or says that it does not go on."""
    stalled = incident.status.condition(ConditionType.STALLED)
    return incident.status.phase in QUIET or (stalled is not None and stalled.status == "True")
