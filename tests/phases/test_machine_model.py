"""Two operators, two incidents, one function, and everything that can happen to them, in any order.

After every step the invariants of the design hold: one door, the approved plan, intent before dispatch, one send at
most, three outcomes, one holder, a trail that only grows. The API server's own rules are not asked to help, but for the
three that look at alerts which were merged a moment ago (see `processes.Api`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from praxis.api.approval import Decision, IncidentApproval
from praxis.api.incident import Incident, Result, Step
from praxis.api.plan import ActionType
from praxis.api.reasons import ConditionType
from praxis.api.target import RemediationTarget
from praxis.cli.verification import verify
from praxis.clock import parse_rfc3339, rfc3339
from praxis.machine import TERMINAL, Phase, allows
from praxis.settings import OperatorSettings
from tests import builders
from tests.phases.processes import Api, Fate, Process
from tests.phases.world import GUARD, Answer, World, renamed

NAMES = ("inc-1", "inc-2")
PEOPLE = ("alice", "bob", "carol")
WINDOW = OperatorSettings().actions.dispatch_window
STALE_AFTER = 2 * WINDOW
"""Seconds: what the gate saw may be a window old when the intent's window opens, and that one may run out."""

SEAMS = (
    "approvals",
    "claim",
    "write",
    "answer",
    "thread: before the send",
    "thread: after the send",
    "thread: before the proof",
    "release",
)
LAPSES = ("no", "withdraw", "expire", "policies", "drift", "declare")
incidents = st.sampled_from(NAMES)
which = st.integers(0, 1)


class Operators(RuleBasedStateMachine):
    """The rules are what may happen; `wrong` collects what must not have."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world = World()
        self.world.on_send = self.sent
        self.api = Api(self.world, self.written)
        self.wrong: list[str] = []
        self.sends: Counter[tuple[str, int, str]] = Counter()
        self.concluded: dict[str, Result] = {}
        self.guards_changed = self.world.time.wall - timedelta(days=1)
        self.withdrawn: dict[str, datetime] = {}
        self.unknown: dict[str, Incident] = {}
        self.found: set[str] = set()
        self.stored: dict[str, float] = {}
        self.deletions = 1
        self.born = 0
        self.said = 0
        self.processes = [self.process(timedelta(0)), self.process(timedelta(minutes=7))]

    def process(self, off: timedelta) -> Process:
        """A new one, with a name that no other ever had."""
        self.born += 1

        async def made() -> Process:
            return Process(f"writer-{self.born}", self.world, self.api, self.loop, off=off)

        return self.loop.run_until_complete(made())

    def teardown(self) -> None:
        """Everything ends."""
        for each in self.processes:
            each.kill()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def incident(self, name: str) -> Incident | None:
        """As stored."""
        return self.world.incidents.get((builders.NAMESPACE, name))

    @initialize(
        dry=st.booleans(),
        people=st.sampled_from([("alice",), ("alice", "bob")]),
        approved=st.sampled_from([2, 2, 2, 1, 0]),
        answer=st.sampled_from(Answer),
    )
    def begin(self, dry: bool, people: tuple[str, ...], approved: int, answer: Answer) -> None:
        """Both have a plan of a restart, one of them with a dry run before it; some are approved already."""
        self.world.function.answer = answer
        restart, config = builders.action(), builders.action(ActionType.UPDATE_CONFIG)
        self.world.declare(builders.target())
        for number, name in enumerate(NAMES):
            actions = [config, restart] if dry and number else [restart]
            self.world.keep(
                builders.incident(
                    Phase.AWAITING_APPROVAL,
                    name=name,
                    uid=f"uid-{name}",
                    approvers=people,
                    draft=lambda actions=actions, **given: builders.plan(actions=actions, **given),
                )
            )
            if number < approved:
                self.approve(name, 60)
                self.work(0, name, 1)

    # What operators do

    @rule(which=which, name=incidents)
    def look(self, which: int, name: str) -> None:
        """An operator that has nothing to do begins to look at an incident."""
        if not self.processes[which].busy:
            self.processes[which].start(name)

    @rule(which=which)
    def advance(self, which: int) -> None:
        """An operator gets one step further."""
        if self.processes[which].busy:
            self.processes[which].advance()

    @rule(which=which)
    def finish(self, which: int) -> None:
        """An operator gets to the end of its look."""
        if self.processes[which].busy:
            self.processes[which].finish()

    @rule(which=which, name=incidents, looks=st.integers(1, 4))
    def work(self, which: int, name: str, looks: int) -> None:
        """An operator works undisturbed."""
        for _ in range(looks):
            self.look(which, name)
            self.finish(which)

    @rule(which=which, name=incidents, seam=st.sampled_from(SEAMS), times=st.integers(1, 2))
    def pause_at(self, which: int, name: str, seam: str, times: int) -> None:
        """An operator gets to a certain place, and is stopped there."""
        self.look(which, name)
        while self.processes[which].busy and times:
            times -= self.processes[which].at == seam
            if times:
                self.processes[which].advance()

    @rule(which=which, name=incidents, seam=st.sampled_from(SEAMS))
    def crash_at(self, which: int, name: str, seam: str) -> None:
        """An operator is killed at a certain place."""
        self.pause_at(which, name, seam, 1)
        self.crash(which)

    @rule(which=which, name=incidents)
    def take_over(self, which: int, name: str) -> None:
        """An operator waits until the writer of an intent can no longer send, and settles it."""
        self.work(which, name, 1)
        self.time_passes(26)
        self.work(which, name, 2)

    def made_ready(self, which: int, name: str) -> None:
        """What stands in an incident's way is done, so that there is something to disturb."""
        self.finish(which)
        for _ in range(2):
            incident = self.incident(name)
            if incident is not None and incident.status.phase is Phase.INVESTIGATED:
                self.work(which, name, 1)
            if incident is not None and incident.status.phase is Phase.AWAITING_APPROVAL:
                self.approve(name, 60)
                self.work(which, name, 1)

    @rule(which=which, name=incidents, seam=st.sampled_from(SEAMS), times=st.integers(1, 2))
    def stop_and_take_over(self, which: int, name: str, seam: str, times: int) -> None:
        """An operator is stopped at a certain place, the other takes over, and the first one wakes up."""
        self.made_ready(which, name)
        self.pause_at(which, name, seam, times)
        self.take_over(1 - which, name)
        self.finish(which)

    @rule(which=which, name=incidents, seam=st.sampled_from(SEAMS), how=st.sampled_from(LAPSES))
    def stop_and_lapse(self, which: int, name: str, seam: str, how: str) -> None:
        """An operator is stopped at a certain place until what was approved is void."""
        self.made_ready(which, name)
        self.pause_at(which, name, seam, 1)
        self.lapse(name, how)
        self.finish(which)

    @rule(which=which, name=incidents, seam=st.sampled_from(SEAMS))
    def crash_and_take_over(self, which: int, name: str, seam: str) -> None:
        """An operator is killed at a certain place, and the other takes over."""
        self.made_ready(which, name)
        self.crash_at(which, name, seam)
        self.take_over(1 - which, name)

    @rule(which=which)
    def crash(self, which: int) -> None:
        """An operator is killed where it stands; another process takes its place."""
        self.processes[which].kill()
        self.processes[which] = self.process(timedelta(minutes=7 * (self.born % 5 - 2)))

    @rule(which=which, fate=st.sampled_from(Fate))
    def answer_of_next_write(self, which: int, fate: Fate) -> None:
        """The next status write is answered, or not."""
        self.processes[which].fate = fate

    @precondition(lambda self: self.api.late)
    @rule()
    def late_write_lands(self) -> None:
        """A write that was given up arrives."""
        self.api.land_late()

    # What people, alerts and time do

    @rule(name=incidents, by=st.sampled_from(PEOPLE), decision=st.sampled_from(Decision), stale=st.booleans())
    def decide(self, name: str, by: str, decision: Decision, stale: bool) -> None:
        """Somebody decides on the plan, or on another."""
        self.say(name, by, decision, minutes=60, **({"plan_digest": "sha256:" + "0" * 64} if stale else {}))

    @rule(name=incidents, minutes=st.sampled_from([60, 600, 0.5]), seen=st.sampled_from([True, True, False]))
    def approve(self, name: str, minutes: float, seen: bool = False) -> None:
        """Enough people approve the plan, and an operator may see it at once."""
        for by in ("alice", "bob"):
            self.say(name, by, Decision.APPROVE, minutes=minutes)
        if seen:
            self.work(0, name, 1)

    def say(self, name: str, by: str, decision: Decision, *, minutes: float, **changes: Any) -> None:
        """An approval as the API server stores it."""
        incident = self.incident(name)
        if incident is None or incident.status.plan is None:
            return
        self.said += 1
        now = self.world.time.wall
        self.world.say(
            builders.approval(
                by,
                of=incident,
                decision=decision,
                name=f"approval-{self.said}",
                created=now,
                expires=now + timedelta(minutes=minutes),
                **changes,
            )
        )

    def withdraw(self, name: str) -> None:
        """Somebody deletes the approvals of an incident."""
        for uid, each in list(self.world.approvals.items()):
            if each.spec.incident_ref.name == name:
                del self.world.approvals[uid]
                self.withdrawn[uid] = self.world.time.wall

    @rule(name=incidents, firing=st.booleans())
    def alert(self, name: str, firing: bool) -> None:
        """The gateway merges a notification; an episode that has ended takes no more firing ones."""
        incident = self.incident(name)
        if incident is None or incident.status.phase in TERMINAL:
            return
        alerts = [builders.alert(firing=firing)]
        generation = incident.metadata.generation + 1
        self.world.keep(
            incident.replace(
                spec=incident.spec.replace(alerts=alerts), metadata=incident.metadata.replace(generation=generation)
            )
        )

    @rule(answer=st.sampled_from(Answer), rotates=st.booleans())
    def function_behaves(self, answer: Answer, rotates: bool) -> None:
        """What becomes of the next request."""
        self.world.function.answer, self.world.function.rotates = answer, rotates

    def function_goes_dark(self) -> None:
        """The service stops answering, or answers again."""
        self.world.function.dark = not self.world.function.dark

    def function_drifts(self) -> None:
        """Somebody changes the function."""
        self.world.function.config += "."

    @precondition(lambda self: self.world.function.under_way)
    @rule()
    def late_request_lands(self) -> None:
        """A request that timed out takes effect."""
        self.land(self.world.function.under_way.pop(0))

    def target_is_declared_anew(self) -> None:
        """An admin replaces the target, which the policy lets nobody do while it is held."""
        (target,) = self.world.targets.values()
        if target.status.holder is None:
            self.said += 1
            self.world.targets.clear()
            self.world.declare(renamed(builders.target(), uid=f"uid-target-{self.said}"))

    def policies_change(self) -> None:
        """A policy is replaced by one that says the same."""
        self.world.guards = [GUARD.replace(generation=self.world.guards[0].generation + 1)]
        self.guards_changed = self.world.time.wall

    @rule(kind=st.sampled_from(["withdraw", "dark", "drift", "declare", "policies", "delete"]), name=incidents)
    def trouble(self, kind: str, name: str) -> None:
        """What comes seldom."""
        {
            "withdraw": lambda: self.withdraw(name),
            "dark": self.function_goes_dark,
            "drift": self.function_drifts,
            "declare": self.target_is_declared_anew,
            "policies": self.policies_change,
            "delete": lambda: self.delete(name),
        }[kind]()

    @rule(seconds=st.sampled_from([1, 14, 16, 26, 40, 400, 4000]))
    def time_passes(self, seconds: int) -> None:
        """For everybody."""
        self.world.time.forward(seconds)

    @rule(name=incidents, how=st.sampled_from(LAPSES))
    def lapse(self, name: str, how: str) -> None:
        """Something voids what was approved, and time passes until no look before it is recent any more."""
        if how == "no":
            self.say(name, "carol", Decision.REJECT, minutes=600)
        elif how != "expire":
            self.trouble(how, name)
        self.time_passes(4000 if how == "expire" else 40)

    def delete(self, name: str) -> None:
        """Somebody deletes an incident, which the policy lets nobody do while an intent is open."""
        incident = self.incident(name)
        if incident is not None and incident.status.open_step is None and self.deletions:
            self.deletions -= 1
            del self.world.incidents[(builders.NAMESPACE, name)]

    @rule(name=incidents)
    def person_reconciles(self, name: str) -> None:
        """Somebody says what happened; also of an incident that is gone, whose claim is all that is left of it."""
        for intent, owner in self.unknown.items():
            if owner.metadata.name == name:
                self.said += 1
                self.world.find(
                    builders.reconciliation(
                        "alice", of=self.incident(name) or owner, name=f"finding-{self.said}", intent_id=intent
                    )
                )
                self.found.add(intent)

    # What must not happen

    @invariant()
    def nothing_is_wrong(self) -> None:
        """None of what is checked at each write and each send."""
        assert self.wrong == []

    def expect(self, holds: bool, what: str) -> None:
        """Note what does not hold."""
        if not holds:
            self.wrong.append(what)

    def written(self, before: Incident, after: Incident) -> None:
        """A status was stored."""
        old, new = before.status, after.status
        self.expect(allows(old.phase, new.phase), f"{old.phase} to {new.phase}")
        self.expect(list(new.trail[: len(old.trail)]) == list(old.trail), "the trail was rewritten")
        problems = verify(after.dump()).problems
        self.expect(not problems, f"the trail does not hold: {problems}")
        self.expect(sum(step.open for step in new.steps) <= 1, "two open intents")
        self.expect(new.phase is Phase.EXECUTING or new.open_step is None, f"an open intent in {new.phase}")
        for index, step in enumerate(old.steps):
            self.step_stays(step, new.steps[index] if index < len(new.steps) else None)
        for step in new.steps:
            if step.intent is not None:
                self.stored.setdefault(step.intent.id, self.world.time.boot)
            if step.intent is not None and step.outcome is not None and step.intent.id not in self.concluded:
                self.outcome_stored(step)
        if new.phase is Phase.EXECUTING and old.phase is not Phase.EXECUTING:
            self.door_opened(after)
        results = (
            {step.outcome.result for step in new.steps_of(new.plan.revision) if step.outcome} if new.plan else set()
        )
        if old.phase is Phase.EXECUTING and new.phase in {Phase.INVESTIGATED, Phase.CLOSED}:
            self.expect(not results & {Result.APPLIED, Result.UNKNOWN}, "walked back")
        condition = new.condition(ConditionType.RECONCILED)
        if condition is not None and condition.status == "True":
            self.unknown = {intent: owner for intent, owner in self.unknown.items() if owner.key != after.key}
        for step in new.steps:
            if step.intent and step.outcome and step.outcome.result is Result.UNKNOWN and old != new:
                known = step in old.steps
                self.unknown |= {} if known else {step.intent.id: after}

    def step_stays(self, before: Step, after: Step | None) -> None:
        """A step only ever gains its outcome."""
        same = after is not None and (after.revision, after.action, after.intent) == (
            before.revision,
            before.action,
            before.intent,
        )
        self.expect(same and (before.outcome is None or after == before), "a step changed")

    def outcome_stored(self, step: Step) -> None:
        """Applied is what really landed, NotApplied what never does."""
        assert step.intent is not None
        assert step.outcome is not None
        landed = step.intent.id in self.world.function.landed
        self.concluded[step.intent.id] = step.outcome.result
        if step.outcome.result is Result.APPLIED:
            self.expect(landed, "Applied, and nothing landed")
        if step.outcome.result is Result.NOT_APPLIED:
            self.expect(not landed, "NotApplied, and it landed")
            self.expect(step.outcome.writer == step.intent.writer, "NotApplied by another process")

    def door_opened(self, incident: Incident) -> None:
        """Executing: by enough people, on this very plan."""
        status = incident.status
        assert status.plan is not None
        people = {each.approver for each in status.approvals}
        self.expect(len(people) >= (status.approvals_required or 1), "too few people")
        self.expect(len(people) == len(status.approvals), "somebody counted twice")
        digest = status.plan.recomputed(incident.metadata.uid)
        self.expect(all(each.plan_digest == digest for each in status.approvals), "another plan was approved")

    def land(self, intent: str) -> None:
        """A request takes effect."""
        self.world.function.land(intent)
        self.expect(self.concluded.get(intent) is not Result.NOT_APPLIED, "NotApplied, and it landed later")

    def sent(self, target: RemediationTarget, intent: str) -> None:
        """A request leaves a process. Everything that makes it right is looked at where it is stored."""
        sender = next((each for each in self.processes if each.sending), None)
        owner = next(
            (
                (incident, step)
                for incident in self.world.incidents.values()
                for step in incident.status.steps
                if step.intent is not None and step.intent.id == intent
            ),
            None,
        )
        if owner is None:
            self.wrong.append("a send without a stored intent")
            return
        incident, step = owner
        assert step.intent is not None
        self.sends[(incident.metadata.uid, step.revision, step.action)] += 1
        self.expect(max(self.sends.values()) == 1, "an action was sent twice")
        self.expect(step.outcome is None, "a send after its outcome")
        self.expect(self.world.time.boot - self.stored[intent] <= WINDOW, "a send past its window")
        self.expect(sender is not None and step.intent.writer == sender.name, "a send by another process")
        self.expect(sender is not None and intent in sender.acknowledged, "a send without the intent's 2xx")
        held = self.world.targets[target.metadata.uid].status.holder
        self.expect(held is not None and held.intent_id == intent, "a send by who does not hold the target")
        self.expect(incident.status.phase is Phase.EXECUTING, f"a send in {incident.status.phase}")
        for other in self.world.incidents.values():
            self.expect(other is incident or other.status.open_step is None, "two incidents act on one function")
        # A finding on an incident that is gone frees its function at once; on another, once the incident shows it.
        names = {each.metadata.uid for each in self.world.incidents.values()}
        for unknown, whose in self.unknown.items():
            gone = whose.metadata.uid not in names
            self.expect(gone and unknown in self.found, "a send while an outcome is unknown")
        self.still_approved(incident, step, target)

    def still_approved(self, incident: Incident, step: Step, target: RemediationTarget) -> None:
        """What the gate looks at held at most two windows ago."""
        status, then = incident.status, self.world.time.wall - timedelta(seconds=STALE_AFTER)
        assert status.plan is not None
        digest = status.plan.recomputed(incident.metadata.uid)
        self.expect(digest == status.plan.digest, "the plan is not what was approved")
        (action,) = (each for each in status.plan.actions if each.id == step.action)
        self.expect(action.target.uid == target.metadata.uid, "another target than was approved")
        self.expect(action.target.state == self.world.function.state, "another state than was approved")
        for bound in status.approvals:
            self.expect(parse_rfc3339(bound.expires_at) > then, "an approval had expired")
            self.expect(self.withdrawn.get(bound.uid, self.world.time.wall) > then, "an approval had been deleted")
        self.expect(status.guards == self.world.guards or self.guards_changed >= then, "the policies had changed")
        self.expect(not any(self.objects(each, incident, then) for each in self.world.approvals.values()), "a no")

    def objects(self, approval: IncidentApproval, incident: Incident, then: Any) -> bool:
        """Whether somebody's no had stood for longer than a gate's look may be old."""
        assert incident.status.plan is not None
        return (
            approval.spec.decision is not Decision.APPROVE
            and approval.spec.incident_ref.uid == incident.metadata.uid
            and approval.spec.plan_digest == incident.status.plan.digest
            and parse_rfc3339(approval.metadata.creation_timestamp or rfc3339(self.world.time.wall)) < then
            # In doubt on a clock that is hours ahead it does not count as an objection that is surely in time.
            and parse_rfc3339(approval.spec.expires_at) > self.world.time.wall
        )


TestOperators = Operators.TestCase
TestOperators.pytestmark = [pytest.mark.timeout(900)]  # half a minute on an idle machine
TestOperators.settings = settings(
    max_examples=200, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
