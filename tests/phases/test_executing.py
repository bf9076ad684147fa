"""Executing: the approved actions in their order, the intent before anything leaves, and what others' intents mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from praxis.actions.contract import Verdict
from praxis.api.base import IntentId
from praxis.api.incident import Baseline, EntryKind, Incident, Instance, Intent, Outcome, Result, Step, TrailEntry
from praxis.api.plan import ActionType
from praxis.api.reasons import Reason
from praxis.api.records import intent_digest, outcome_digest
from praxis.controller.sightings import Intents
from praxis.digest import link
from praxis.errors import RetryLater
from praxis.machine import Phase
from praxis.phases import executing
from praxis.phases.contract import Record, Transition, Wait
from praxis.phases.send import Send
from tests import builders
from tests.phases.world import HandClock, World
from tests.phases.world import executing as executing_world

RESTART = "restart-function"
CONFIG = "update-config"
NOW = "2026-01-31T12:01:00.000000Z"
OLD = Instance(id="i-old", created=1769860000000)


def plan_of(*types: ActionType) -> Callable[..., Any]:
    """Drafts a plan of these actions, in this order."""
    return lambda **given: builders.plan(actions=[builders.action(each) for each in types], **given)


BOTH = plan_of(ActionType.UPDATE_CONFIG, ActionType.RESTART_FUNCTION)


def outcome(result: Result, **changes: Any) -> Outcome:
    fields: dict[str, Any] = {
        "result": result,
        "reason": {"Applied": "Restarted", "NotApplied": "RejectedByService", "Unknown": "NotProven"}.get(
            result, "DryRun"
        ),
        "message": f"it is {result}",
        "proof": "PRAXIS_RESTART_ID" if result is Result.APPLIED else "",
        "writer": "writer-a",
        "time": NOW,
    }
    return Outcome(**{**fields, **changes})


def intent(writer: str = "writer-b", id_: str = "intent-of-another") -> Intent:
    return Intent(id=id_, writer=writer, time=NOW, baseline=Baseline(state=builders.STATE, instances=[OLD]))


def step(action: str, result: Result | None, *, revision: int = 1) -> Step:
    real = action == RESTART
    return Step(
        revision=revision,
        action=action,
        intent=intent() if real else None,
        outcome=outcome(result) if result else None,
    )


def with_steps(incident: Incident, *steps: Step, **spec: Any) -> Incident:
    """With these steps, recorded as the operator's writer records them."""
    status = incident.status
    trail = list(status.trail)
    for each in steps:
        made = each.dump()
        kinds = [(EntryKind.INTENT_RECORDED, intent_digest(made))] if each.intent else []
        kinds += [(EntryKind.OUTCOME_RECORDED, outcome_digest(made))] if each.outcome else []
        for kind, bound in kinds:
            entry: dict[str, Any] = {"seq": len(trail), "time": NOW, "actor": builders.OPERATOR, "phase": status.phase}
            trail.append(
                TrailEntry.model_validate(
                    link(trail[-1].hash, {**entry, "kind": kind, "reason": kind, "digest": bound})
                )
            )
    return incident.replace(
        spec=incident.spec.replace(**spec),
        status=status.replace(steps=list(steps), trail=trail, head=trail[-1].hash),
    )


async def decided(world: World, incident: Incident, **tools: Any) -> Transition:
    decision = await executing.reconcile(incident, world.tools(**tools))
    assert isinstance(decision, Transition)
    return decision


async def test_an_intent_is_written_before_anything_leaves() -> None:
    """The write names intent, process, baseline and carries the send; nothing was sent yet, and the target is ours."""
    world, incident = executing_world()
    decision = await decided(world, incident)
    (written,) = decision.changes["steps"]
    assert written.intent is not None
    assert written == Step(
        revision=1,
        action=RESTART,
        intent=Intent(
            id=written.intent.id,
            writer="writer-a",
            time=NOW,
            baseline=Baseline(state=builders.STATE, last_modified="2026-01-31T11:00:00Z", instances=[OLD]),
        ),
    )
    (target,) = world.targets.values()
    assert decision == Transition(
        to=Phase.EXECUTING,
        reason=Reason.INTENT_RECORDED,
        message="about to act: Sets PRAXIS_RESTART_ID in the environment of function checkout, as there is no restart "
        "call.",
        changes={"steps": [written]},
        records=[Record(EntryKind.INTENT_RECORDED, Reason.INTENT_RECORDED, document=written.dump())],
        then=decision.then,
    )
    assert isinstance(decision.then, Send)
    assert (decision.then.target, decision.then.step, decision.then.window_opened) == (target, written, 1000.0)
    assert target.status.holder is not None
    assert target.status.holder.intent_id == written.intent.id
    assert world.function.sends == []


async def test_every_intent_has_an_id_of_its_own() -> None:
    """A decision that was not written is made anew under another id."""
    world, incident = executing_world()
    first, second = await decided(world, incident), await decided(world, incident)
    assert first.then is not None
    assert second.then is not None
    assert first.then.intent != second.then.intent
    assert first.then.intent.startswith("praxis-")
    assert len(first.then.intent) == len("praxis-") + 32


async def test_the_window_opens_after_the_last_look_and_before_the_write() -> None:
    """However long the write takes counts against the window; how long the looks took does not."""
    world, incident = executing_world()
    world.cluster.before("claim", lambda: world.time.forward(10))
    decision = await decided(world, incident)
    assert isinstance(decision.then, Send)
    assert decision.then.window_opened == 1010.0


@pytest.mark.parametrize(
    ("passed", "goes_on"), [(14.0, True), (15.0, True), (15.5, False)], ids=["below", "at", "above"]
)
async def test_what_the_gate_saw_long_ago_is_not_acted_on(passed: float, goes_on: bool) -> None:
    """A process that is stopped right after the gate must not act on approvals that ran out while it was."""
    world, incident = executing_world()
    world.cluster.before("claim", lambda: world.time.forward(passed))
    decision = await executing.reconcile(incident, world.tools())
    assert isinstance(decision, Transition) is goes_on
    if not goes_on:
        assert decision == Wait(0.0, message="what the gate saw is too old by now; looking again")


async def test_a_dry_run_sends_nothing_and_says_so() -> None:
    """A caution action's outcome is DryRun; the function is not even looked at."""
    world, incident = executing_world(draft=BOTH)
    decision = await decided(world, incident)
    recorded = Step(
        revision=1,
        action=CONFIG,
        outcome=Outcome(
            result=Result.DRY_RUN,
            reason="DryRun",
            message="DRY RUN: nothing is sent; update_config is only recorded.",
            writer="writer-a",
            time=NOW,
        ),
    )
    assert decision == Transition(
        to=Phase.EXECUTING,
        reason=Reason.DRY_RUN,
        message="DRY RUN: nothing is sent; update_config is only recorded.",
        changes={"steps": [recorded]},
        records=[Record(EntryKind.OUTCOME_RECORDED, Reason.DRY_RUN, document=recorded.dump())],
    )
    assert (world.function.looks, world.function.sends) == (0, [])
    assert world.targets[builders.TARGET_UID].status.holder is None


@pytest.mark.parametrize(
    ("order", "done", "following"),
    [
        (BOTH, [], CONFIG),
        (BOTH, [step(CONFIG, Result.DRY_RUN)], RESTART),
        (plan_of(ActionType.RESTART_FUNCTION, ActionType.UPDATE_CONFIG), [], RESTART),
        (
            plan_of(ActionType.RESTART_FUNCTION, ActionType.UPDATE_CONFIG),
            [step(RESTART, Result.APPLIED)],
            CONFIG,
        ),
    ],
    ids=["dry run first", "then the restart", "restart first", "then the dry run"],
)
async def test_actions_are_carried_out_in_the_order_of_the_plan(
    order: Callable[..., Any], done: list[Step], following: str
) -> None:
    """What was approved is a sequence; what was done before is kept as it is."""
    world, incident = executing_world(draft=order)
    decision = await decided(world, with_steps(incident, *done))
    steps = decision.changes["steps"]
    assert steps[:-1] == done
    assert steps[-1].action == following
    assert (decision.then is not None) is (following == RESTART)


async def test_steps_of_an_earlier_plan_are_kept_and_do_not_count() -> None:
    """Each approved revision is carried out on its own."""
    earlier = step(RESTART, Result.NOT_APPLIED, revision=1)
    world, incident = executing_world(draft=lambda **given: builders.plan(revision=2, **given))
    decision = await decided(world, with_steps(incident, earlier))
    assert decision.changes["steps"][0] == earlier
    assert decision.changes["steps"][1].revision == 2
    assert decision.then is not None


async def test_a_plan_of_dry_runs_never_ends_as_remediated() -> None:
    """Closed as DryRunOnly, in so many words."""
    world, incident = executing_world(draft=plan_of(ActionType.UPDATE_CONFIG, ActionType.SCALE_SERVICE))
    steps = [step(CONFIG, Result.DRY_RUN), step("scale-service", Result.DRY_RUN)]
    assert await decided(world, with_steps(incident, *steps)) == Transition(
        to=Phase.CLOSED,
        reason=Reason.DRY_RUN_ONLY,
        message="every action was a DRY RUN: nothing was changed and nothing is remediated",
    )


async def test_an_applied_plan_is_observed() -> None:
    """Applied is not resolved: the alert decides that."""
    world, incident = executing_world()
    assert await decided(world, with_steps(incident, step(RESTART, Result.APPLIED))) == Transition(
        to=Phase.OBSERVING, reason=Reason.ACTIONS_DONE, message="applied: it is Applied"
    )


async def test_what_was_definitely_not_applied_is_drafted_anew() -> None:
    """Nothing was changed, so another plan may be tried, by another approval."""
    world, incident = executing_world(draft=BOTH)
    steps = [step(CONFIG, Result.DRY_RUN), step(RESTART, Result.NOT_APPLIED)]
    assert await decided(world, with_steps(incident, *steps)) == Transition(
        to=Phase.INVESTIGATED,
        reason=Reason.NOT_APPLIED,
        message="the action was definitely not applied: it is NotApplied",
    )


@pytest.mark.parametrize("order", [plan_of(ActionType.RESTART_FUNCTION), BOTH])
async def test_an_unknown_outcome_goes_to_a_person_and_nowhere_else(order: Callable[..., Any]) -> None:
    """Never retried, never called success, whatever is left of the plan and whether or not the alert fires."""
    world, incident = executing_world(draft=order)
    spoilt = with_steps(incident, step(RESTART, Result.UNKNOWN), alerts=[builders.alert(firing=False)])
    assert await decided(world, spoilt) == Transition(
        to=Phase.RECONCILIATION_REQUIRED,
        reason=Reason.OUTCOME_UNKNOWN,
        message="whether the action was applied is not known: it is Unknown",
    )
    assert world.function.sends == []


async def test_after_the_one_real_action_the_rest_is_shown_even_if_the_alert_cleared() -> None:
    """What was applied cannot be walked back, so the gate does not stand after it."""
    world, incident = executing_world(draft=plan_of(ActionType.RESTART_FUNCTION, ActionType.UPDATE_CONFIG))
    world.approvals.clear()
    done = with_steps(incident, step(RESTART, Result.APPLIED), alerts=[builders.alert(firing=False)])
    decision = await decided(world, done)
    assert (decision.to, decision.reason) == (Phase.EXECUTING, Reason.DRY_RUN)


async def test_between_a_dry_run_and_the_restart_the_gate_stands() -> None:
    """The alert cleared after the first action: the second is not carried out."""
    world, incident = executing_world(draft=BOTH)
    decision = await decided(
        world, with_steps(incident, step(CONFIG, Result.DRY_RUN), alerts=[builders.alert(firing=False)])
    )
    assert (decision.to, decision.reason) == (Phase.CLOSED, Reason.SELF_RESOLVED)


async def test_a_function_that_is_not_what_the_plan_was_drafted_on_is_not_touched() -> None:
    """Somebody changed it meanwhile: people are asked about what is there now."""
    world, incident = executing_world()
    world.function.config = "v2"
    assert await decided(world, incident) == Transition(
        to=Phase.INVESTIGATED,
        reason=Reason.PLAN_DRIFTED,
        message="function checkout changed since the plan was proposed",
    )
    assert world.function.sends == []


async def test_a_function_that_changed_is_told_by_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """People are told what differs, by name."""
    pinned = builders.action().target.replace(parts=["cpu=1", "environmentVariables.MODE=2"])
    world, incident = executing_world(
        draft=lambda **life: builders.plan(actions=[builders.action().replace(target=pinned)], **life)
    )
    now = Baseline(state="another", parts=["cpu=1", "environmentVariables.MODE=3"])
    monkeypatch.setattr(world.adapter, "observe", lambda target: now)
    decision = await decided(world, incident)
    assert (
        decision.message == "function checkout changed since the plan was proposed: environmentVariables.MODE changed"
    )


async def test_nothing_running_is_refused_before_an_intent() -> None:
    """A restart of nothing would look like success."""
    world, incident = executing_world()
    world.function.instances = ()
    assert await decided(world, incident) == Transition(
        to=Phase.INVESTIGATED, reason=Reason.NOTHING_RUNNING, message="no instance is running"
    )


async def test_a_target_that_goes_after_the_gate_is_drift() -> None:
    """The gate's look and the claim's are two reads."""
    world, incident = executing_world()
    world.cluster.before("targets", world.targets.clear)
    assert await decided(world, incident) == Transition(
        to=Phase.INVESTIGATED, reason=Reason.PLAN_DRIFTED, message="target checkout-fn is gone"
    )


async def test_a_service_that_does_not_answer_before_the_intent_decides_nothing() -> None:
    """No intent, no outcome: the incident stays, and its own next claim goes over the former."""
    world, incident = executing_world()
    world.function.dark = True
    with pytest.raises(RetryLater, match="the service does not answer"):
        await executing.reconcile(incident, world.tools())
    world.function.dark = False
    assert (await decided(world, incident)).then is not None


# Somebody's intent without an outcome


def open_intent(**life: Any) -> tuple[World, Incident]:
    world, incident = executing_world(**life)
    return world, with_steps(incident, step(RESTART, None))


async def settled(world: World, incident: Incident, sightings: Intents, clock: HandClock | None = None) -> Any:
    return await executing.reconcile(incident, world.tools(clock=clock, sightings=sightings))


@pytest.mark.parametrize(
    ("waited", "remaining"), [(0.0, 25.0), (24.0, 1.0), (24.5, 0.5)], ids=["at first", "below", "just below"]
)
async def test_anothers_intent_is_left_alone_until_its_writer_can_no_longer_send(
    waited: float, remaining: float
) -> None:
    """The dispatch window and the request's time-out, 15 s and 10 s, pass before anything is read."""
    world, incident = open_intent()
    sightings = Intents(clock=HandClock(world.time))
    first = await settled(world, incident, sightings)
    assert isinstance(first, Wait)
    world.time.forward(waited)
    decision = await settled(world, incident, sightings)
    assert isinstance(decision, Wait)
    assert (decision.seconds, decision.reason, decision.stalled) == (remaining, Reason.VERIFYING, False)
    assert world.function.looks == 0


@pytest.mark.parametrize("waited", [25.0, 26.0], ids=["at", "above"])
async def test_then_it_is_only_read(waited: float) -> None:
    """Without proof the outcome is Unknown; nothing is ever sent for another's intent."""
    world, incident = open_intent()
    sightings = Intents(clock=HandClock(world.time))
    await settled(world, incident, sightings)
    world.time.forward(waited)
    decision = await settled(world, incident, sightings)
    concluded = incident.status.steps[0].replace(
        outcome=Outcome(
            result=Result.UNKNOWN,
            reason="WriterLost",
            message="the deadline passed without proof",
            writer="writer-a",
            time=decision.changes["steps"][0].outcome.time,
        )
    )
    assert decision == Transition(
        to=Phase.EXECUTING,
        reason=Reason.WRITER_LOST,
        message="Unknown: the deadline passed without proof",
        changes={"steps": [concluded]},
        records=[Record(EntryKind.OUTCOME_RECORDED, Reason.WRITER_LOST, document=concluded.dump())],
    )
    assert world.function.sends == []


async def test_anothers_intent_that_is_proven_is_applied() -> None:
    """The marker says that the request landed, whoever reads it."""
    world, incident = open_intent()
    sightings = Intents(clock=HandClock(world.time))
    await settled(world, incident, sightings)
    world.time.forward(25)
    world.function.land("intent-of-another")
    decision = await settled(world, incident, sightings)
    (concluded,) = decision.changes["steps"]
    assert concluded.intent == incident.status.steps[0].intent
    assert (concluded.outcome.result, concluded.outcome.proof) == (
        Result.APPLIED,
        "PRAXIS_RESTART_ID=intent-of-another",
    )
    assert concluded.outcome.writer == "writer-a"


@pytest.mark.parametrize("hours", [-9, -1, 1, 9])
async def test_the_wait_is_on_our_own_boot_clock_whatever_the_wall_clocks_say(hours: int) -> None:
    """The intent's time is another machine's, which may be hours off either way; it decides nothing."""
    world, incident = open_intent()
    clock = HandClock(world.time, off=timedelta(hours=hours), booted=500.0)
    sightings = Intents(clock=clock)
    first = await settled(world, incident, sightings, clock)
    assert isinstance(first, Wait)
    assert first.seconds == 25.0
    world.time.wall += timedelta(hours=5)
    assert isinstance(await settled(world, incident, sightings, clock), Wait)
    world.time.boot += 25
    assert isinstance(await settled(world, incident, sightings, clock), Transition)


async def test_a_process_that_is_restarted_waits_anew() -> None:
    """First sight is this process' own; what a former one saw is gone with it."""
    world, incident = open_intent()
    former = Intents(clock=HandClock(world.time))
    await settled(world, incident, former)
    world.time.forward(25)
    decision = await settled(world, incident, Intents(clock=HandClock(world.time)))
    assert isinstance(decision, Wait)
    assert decision.seconds == 25.0


class Says:
    """An adapter that says what it is told to say of another's intent."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def verify(self, *_: Any) -> Verdict:
        return self._verdict


@pytest.mark.parametrize(
    ("verdict", "result", "reason"),
    [
        (Verdict(Result.NOT_APPLIED, Reason.REJECTED_BY_SERVICE, "no"), Result.UNKNOWN, Reason.NOT_PROVEN),
        (Verdict(Result.APPLIED, Reason.RESTARTED, "yes"), Result.UNKNOWN, Reason.NOT_PROVEN),
        (Verdict(Result.UNKNOWN, Reason.WRITER_LOST, "?"), Result.UNKNOWN, Reason.WRITER_LOST),
        (Verdict(Result.APPLIED, Reason.DRAINED, "yes", proof="marker"), Result.APPLIED, Reason.DRAINED),
    ],
    ids=["not applied", "applied without proof", "unknown", "applied with proof"],
)
async def test_of_anothers_intent_only_proof_is_believed(verdict: Verdict, result: Result, reason: Reason) -> None:
    """Only the process that wrote an intent knows what it sent: whatever an adapter says, no other says NotApplied."""
    world, incident = open_intent()
    sightings = Intents(clock=HandClock(world.time))
    await settled(world, incident, sightings)
    world.time.forward(25)
    tools = replace(world.tools(sightings=sightings), adapter=Says(verdict))  # type: ignore[arg-type]
    decision = await executing.reconcile(incident, tools)
    assert isinstance(decision, Transition)
    (concluded,) = decision.changes["steps"]
    assert (concluded.outcome.result, concluded.outcome.reason) == (result, reason)


async def test_a_target_that_is_gone_leaves_the_outcome_unknown() -> None:
    """Nothing can be read without the declaration and its credentials."""
    world, incident = open_intent()
    world.targets.clear()
    sightings = Intents(clock=HandClock(world.time))
    await settled(world, incident, sightings)
    world.time.forward(25)
    (concluded,) = (await settled(world, incident, sightings)).changes["steps"]
    assert (concluded.outcome.result, concluded.outcome.reason, concluded.outcome.message) == (
        Result.UNKNOWN,
        "NotProven",
        "target checkout-fn is gone; nothing can be read",
    )


async def test_our_own_write_that_was_given_up_was_never_sent() -> None:
    """Its answer was lost, so it was not acted on; should it turn up stored, this process knows that, at once."""
    world, incident = open_intent()
    sightings = Intents(clock=HandClock(world.time))
    sightings.give_up(IntentId("intent-of-another"))
    decision = await settled(world, incident, sightings)
    concluded = incident.status.steps[0].replace(
        outcome=Outcome(
            result=Result.NOT_APPLIED,
            reason="NeverSent",
            message="the intent's write was not acknowledged in time",
            writer="writer-a",
            time=NOW,
        )
    )
    assert decision == Transition(
        to=Phase.EXECUTING,
        reason=Reason.NEVER_SENT,
        message="NotApplied: the intent's write was not acknowledged in time",
        changes={"steps": [concluded]},
        records=[Record(EntryKind.OUTCOME_RECORDED, Reason.NEVER_SENT, document=concluded.dump())],
    )
    assert world.function.looks == 0


async def test_an_open_intent_comes_before_everything_else() -> None:
    """Neither a cleared alert nor a lapsed approval ends an incident whose request may be under way."""
    world, incident = open_intent()
    world.approvals.clear()
    spoilt = incident.replace(spec=incident.spec.replace(alerts=[builders.alert(firing=False)]))
    assert isinstance(await executing.reconcile(spoilt, world.tools()), Wait)


async def test_an_outcome_changes_no_other_step() -> None:
    """The dry run before it, and the earlier plan's steps, are as they were."""
    earlier = step(RESTART, Result.NOT_APPLIED, revision=1)
    world, incident = executing_world(
        draft=lambda **given: builders.plan(
            revision=2, actions=[builders.action(ActionType.UPDATE_CONFIG), builders.action()], **given
        )
    )
    dry, opened = step(CONFIG, Result.DRY_RUN, revision=2), step(RESTART, None, revision=2)
    other = opened.replace(intent=intent(id_="intent-of-plan-2"))
    incident = with_steps(incident, earlier, dry, other)
    sightings = Intents(clock=HandClock(world.time))
    sightings.give_up(IntentId("intent-of-plan-2"))
    decision = await settled(world, incident, sightings)
    assert decision.changes["steps"][:2] == [earlier, dry]
    assert decision.changes["steps"][2].outcome.result is Result.NOT_APPLIED
