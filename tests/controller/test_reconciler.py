"""The reconciler on a real API server: whole lives by real phases, and what a person sees of what goes wrong.

Models, memory and functions are those of `tests.phases.world`; what is stored is what the API server takes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from prometheus_client import CollectorRegistry

from praxis.api.approval import Decision, IncidentApproval, IncidentReconciliation, Observed, Verdict
from praxis.api.base import IntentId
from praxis.api.incident import Incident, Result, Usage
from praxis.api.plan import ActionTarget
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.controller.events import EventRecorder
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.queue import Key, Later, WorkQueue
from praxis.controller.reconciler import Reconciler, Told
from praxis.controller.verdicts import Verdicts
from praxis.digest import first_broken
from praxis.errors import InvalidAnswer, NeedsPerson, RetryLater
from praxis.kube import Kube, path_of, resource_path
from praxis.machine import Phase
from praxis.phases.contract import Transition
from praxis.phases.outcome import replaced
from praxis.settings import OperatorSettings
from tests import builders
from tests.controller.conftest import NAMES, Stage
from tests.phases.world import COST, HandClock, Time, World, drafted, holder, proposed
from tests.proxy import answer, drop_before

pytestmark = pytest.mark.controlplane

HOUR = 3600.0


@dataclass
class Operator:
    """An operator on a stage; it looks when it is told to."""

    stage: Stage
    world: World
    clock: HandClock
    registry: CollectorRegistry
    incidents: Incidents
    queue: WorkQueue
    reconciler: Reconciler

    async def look(self, name: str = "inc-1") -> Later:
        """Once."""
        return await self.reconciler.reconcile(Key(self.stage.namespace, name))

    async def settle(self, name: str = "inc-1") -> Incident:
        """Until there is nothing to do at once."""
        for _ in range(20):
            later = await self.look(name)
            assert not later.failed, (await self.stage.stored(name)).status.message
            if later.seconds != 0:
                return await self.stage.stored(name)
        raise AssertionError("it never came to rest")

    def count(self, metric: str, **labels: str) -> float:
        """A counter's value."""
        return self.registry.get_sample_value(metric, labels) or 0.0


@pytest.fixture
async def operator(stage: Stage) -> Operator:
    """An operator as it is installed, over functions and models of a world."""
    clock, world = stage.clock, World()
    world.time = clock.time
    settings = OperatorSettings()
    registry, queue = CollectorRegistry(), WorkQueue(clock=clock)
    incidents = Incidents(clock=clock, deadlines=settings.deadlines)
    metrics = Metrics(registry=registry, incidents=incidents, queue=queue)
    events = EventRecorder(kube=stage.operator, clock=clock, instance="writer-a")
    tools = replace(world.tools(clock=clock, sightings=stage.intents), cluster=stage.cluster)
    return Operator(
        stage,
        world,
        clock,
        registry,
        incidents,
        queue,
        Reconciler(
            cluster=stage.cluster,
            writer=stage.writer,
            verdicts=Verdicts(
                kube=stage.operator,
                cluster=stage.cluster,
                clock=clock,
                quorum=settings.quorum,
                events=events,
                metrics=metrics,
            ),
            events=events,
            tools=tools,
            queue=queue,
            incidents=incidents,
            metrics=metrics,
            clock=clock,
        ),
    )


async def born(stage: Stage, name: str = "inc-1") -> Incident:
    """A new incident, as the gateway creates it."""
    return await stage.incident(Phase.NEW, name=name)


async def decide(
    operator: Operator, by: str = "alice", decision: Decision = Decision.APPROVE, **changes: Any
) -> IncidentApproval:
    """A person decides on the plan that stands, for an hour."""
    incident = await operator.stage.stored()
    given = builders.approval(
        by, of=incident, decision=decision, expires=operator.clock.now() + timedelta(hours=1), **changes
    )
    await operator.stage.say(given)
    return given


async def verdicts(stage: Stage) -> dict[str, tuple[str | None, str | None]]:
    """Verdict and reason of each approval, by person and decision."""
    reply = await stage.direct.get(path_of(IncidentApproval, stage.namespace))
    found = [IncidentApproval.model_validate(each) for each in reply.document["items"]]
    return {
        f"{each.spec.approver.username} {each.spec.decision}": (each.status.verdict, each.status.reason)
        for each in found
    }


async def told(stage: Stage) -> list[tuple[str, str]]:
    """Type and reason of every Event in the namespace, in their order."""
    reply = await stage.admin.get(resource_path("/apis/events.k8s.io/v1", "events", stage.namespace))
    ordered = sorted(reply.document["items"], key=lambda each: int(each["metadata"]["resourceVersion"]))
    return [(each["type"], each["reason"]) for each in ordered]


async def clear(stage: Stage) -> None:
    """The alerts clear."""
    incident = await stage.stored()
    await stage.respecify("inc-1", incident.replace(spec=incident.spec.replace(alerts=[builders.alert(firing=False)])))


async def target(stage: Stage) -> RemediationTarget:
    """The usual target as it is stored."""
    reply = await stage.admin.get(path_of(RemediationTarget, stage.namespace, "checkout-fn"))
    return RemediationTarget.model_validate(reply.document)


# Whole lives


async def test_a_whole_life_to_resolved(operator: Operator) -> None:
    """Every write of every phase is one that the API server takes; one restart, one memory, nothing held afterwards."""
    stage = operator.stage
    await stage.declare()
    await born(stage)
    waiting = await operator.settle()
    assert waiting.status.phase is Phase.AWAITING_APPROVAL
    await decide(operator)
    observing = await operator.settle()
    assert observing.status.phase is Phase.OBSERVING
    assert len(operator.world.function.sends) == 1
    assert (await target(stage)).status.holder is not None
    await clear(stage)
    done = await operator.settle()
    assert done.status.phase is Phase.RESOLVED
    assert done.status.condition("MemoryStored").status == "True"  # type: ignore[union-attr]
    assert list(operator.world.memory.records) == [done.metadata.uid]
    assert (await target(stage)).status.holder is None
    assert [(entry.phase, entry.reason) for entry in done.status.trail] == [
        ("Triaged", "Classified"),
        ("Investigated", "Diagnosed"),
        ("AwaitingApproval", "PlanProposed"),
        ("Executing", "Approved"),
        ("Executing", "Approved"),
        ("Executing", "IntentRecorded"),
        ("Executing", "Restarted"),
        ("Observing", "ActionsDone"),
        ("Resolved", "AlertCleared"),
    ]
    assert first_broken(done.metadata.uid, done.status.dump()["trail"]) is None
    assert await verdicts(stage) == {"alice Approve": ("Accepted", "Accepted")}
    assert [reason for _, reason in await told(stage)] == [
        "Classified",
        "Diagnosed",
        "PlanProposed",
        "Approved",
        "Accepted",
        "IntentRecorded",
        "Restarted",
        "ActionsDone",
        "AlertCleared",
    ]
    assert operator.count("praxis_dispatches_total") == 1
    assert operator.count("praxis_outcomes_total", result="Applied") == 1


async def test_a_life_with_a_reject_a_revision_and_dry_runs_only(operator: Operator) -> None:
    """Three plans; the last holds only dry runs, which is no remediation."""
    stage = operator.stage
    await stage.declare()
    await born(stage)
    await operator.settle()
    await decide(operator, "bob", Decision.REJECT, reason="wrong function")
    assert (await operator.settle()).status.corrections == ["wrong function"]
    await decide(operator, "carol", Decision.REVISE, reason="", name="second")
    dry = drafted("", proposed(id="scale", type="scale_service", tier="caution", parameters={"replicas": "3"}))
    operator.world.reasoner.queued["draft"].append(dry)
    third = await operator.settle()
    assert third.status.corrections == ["wrong function", "use a smaller scope"]
    assert third.status.plan is not None
    assert third.status.plan.revision == 3
    await decide(operator, name="third")
    done = await operator.settle()
    assert (done.status.phase, done.status.reason) == (Phase.CLOSED, "DryRunOnly")
    assert operator.world.function.sends == []
    assert await verdicts(stage) == {
        "bob Reject": ("Accepted", "Accepted"),
        "carol Revise": ("Accepted", "Accepted"),
        "alice Approve": ("Accepted", "Accepted"),
    }


async def test_an_unknown_outcome_holds_the_target_until_a_person_reconciles(operator: Operator) -> None:
    """The next incident on the same function waits, and goes on once somebody has looked."""
    stage = operator.stage
    await stage.declare()
    await born(stage)
    await operator.settle()
    await decide(operator)
    operator.world.function.rotates = False
    unknown = await operator.settle()
    assert unknown.status.phase is Phase.RECONCILIATION_REQUIRED
    assert unknown.status.condition("Reconciled").status == "False"  # type: ignore[union-attr]
    assert (await target(stage)).status.holder is not None
    step = unknown.status.steps[-1]
    assert step.intent is not None
    finding = builders.reconciliation(
        "alice", of=unknown, intent_id=step.intent.id, observed=Observed.APPLIED, note="new instances run"
    )
    path = stage.plane.kubeconfig("alice", [NAMES.approvers_group])
    async with await Kube.connect(path) as alice:
        await alice.create(path_of(IncidentReconciliation, stage.namespace), builders.manifest(finding))
    reconciled = await operator.settle()
    assert reconciled.status.phase is Phase.RECONCILIATION_REQUIRED
    assert reconciled.status.condition("Reconciled").status == "True"  # type: ignore[union-attr]
    assert reconciled.status.trail[-1].actor == "alice"
    assert (await target(stage)).status.holder is None
    reply = await stage.admin.get(path_of(IncidentReconciliation, stage.namespace, finding.metadata.name))
    assert reply.document["status"]["verdict"] == "Accepted"
    assert len(operator.world.function.sends) == 1


async def test_a_stale_approval_is_refused_and_says_why(operator: Operator) -> None:
    """On a plan that was revised since: refused for good, the incident waits on."""
    stage = operator.stage
    await stage.declare()
    await born(stage)
    first = await operator.settle()
    await decide(operator, "bob", Decision.REJECT)
    await operator.settle()
    await stage.say(builders.approval("alice", of=first, expires=operator.clock.now() + timedelta(hours=1)))
    assert (await operator.settle()).status.phase is Phase.AWAITING_APPROVAL
    assert (await verdicts(stage))["alice Approve"] == ("Refused", "PlanSuperseded")
    assert ("Warning", "PlanSuperseded") in await told(stage)


async def test_an_incident_waits_for_a_target_that_another_holds(operator: Operator) -> None:
    """Stalled while it waits, with who holds it; not any more once it acts."""
    stage = operator.stage
    await stage.declare()
    await born(stage)
    await operator.settle()
    await decide(operator)
    other = await stage.incident(Phase.EXECUTING, name="other-1")
    await claim(stage, other)
    held = await operator.settle()
    stalled = held.status.condition("Stalled")
    assert stalled is not None
    assert stalled.reason == "TargetHeld"
    assert stalled.message.startswith("target checkout-fn is held by incident other-1 until that ends; ")
    await stage.delete("other-1")
    await claim(stage, held)
    assert (await operator.settle()).status.condition("Stalled") is None
    assert len(operator.world.function.sends) == 1


async def claim(stage: Stage, by: Incident) -> None:
    """An incident holds the target."""
    claimed = holder(
        incident_uid=by.metadata.uid, incident_name=by.metadata.name, intent_id=f"intent-{by.metadata.name}"
    )
    await stage.cluster.claim(await target(stage), claimed)


# What goes wrong


def stalled(incident: Incident) -> tuple[str, str] | None:
    """Reason and message of the condition, if it is there."""
    condition = incident.status.condition("Stalled")
    return (condition.reason, condition.message) if condition is not None else None


async def fail(operator: Operator, *errors: Exception, asks: str = "classify") -> None:
    """The next questions to a model end so."""
    operator.world.reasoner.queued[asks].extend(errors)


async def looks_that_fail(operator: Operator, count: int) -> None:
    """As the queue would have it: each failure is counted before the next look."""
    key = Key(operator.stage.namespace, "inc-1")
    for _ in range(count):
        later = await operator.look()
        assert later.failed
        operator.queue._failures[key] = operator.queue.failures(key) + 1


async def test_invalid_answers_are_counted_with_their_cost_and_the_third_fails(operator: Operator) -> None:
    """Two attempts are noted and told; at the bound the incident ends where a person sees it."""
    stage = operator.stage
    await born(stage)
    for number in range(3):
        error = InvalidAnswer(f"no JSON {number}")
        error.usage = COST
        await fail(operator, error)
    assert await operator.look() == Later(None, failed=True)
    once = await stage.stored()
    assert (once.status.phase, once.status.attempts, once.status.usage) == (Phase.NEW, 1, COST)
    assert await operator.look() == Later(None, failed=True)
    twice = await stage.stored()
    assert (twice.status.attempts, twice.status.usage) == (
        2,
        Usage(model_calls=4, input_tokens=600, output_tokens=80, cost_micro_usd=1000),
    )
    assert await operator.look() == Later(0.0)
    failed = await stage.stored()
    assert (failed.status.phase, failed.status.reason) == (Phase.FAILED, "AttemptsExhausted")
    assert failed.status.message == "3 answers of the model did not hold; the last: no JSON 2"
    assert failed.status.usage == Usage(model_calls=6, input_tokens=900, output_tokens=120, cost_micro_usd=1500)
    assert [reason for _, reason in await told(stage)] == ["InvalidAnswer", "InvalidAnswer", "AttemptsExhausted"]


async def test_attempts_are_counted_anew_in_each_phase(operator: Operator) -> None:
    """A slip in New does not use up what Triaged may need."""
    await born(operator.stage)
    await fail(operator, InvalidAnswer("no JSON"))
    await operator.look()
    await operator.look()
    assert (await operator.stage.stored()).status.attempts is None


async def test_an_outage_stalls_when_it_lasts_and_keeps_what_was_spent(operator: Operator) -> None:
    """Twice it is only tried again; at the third failure in a row it is Stalled, and told once."""
    stage = operator.stage
    await born(stage)
    for _ in range(4):
        error = RetryLater("the model did not answer", after=7.0)
        error.usage = COST
        await fail(operator, error)
    assert await operator.look() == Later(7.0, failed=True)
    first = await stage.stored()
    assert (stalled(first), first.status.usage) == (None, COST)
    await looks_that_fail(operator, 3)
    lasting = await stage.stored()
    assert stalled(lasting) == ("Unavailable", "the model did not answer; it is tried again")
    assert lasting.status.usage is not None
    assert lasting.status.usage.model_calls == 8
    assert lasting.status.phase is Phase.NEW
    assert (await told(stage)).count(("Warning", "Unavailable")) == 1
    assert operator.count("praxis_reconcile_errors_total", phase="New", reason="Unavailable") == 4


async def test_an_error_that_nobody_expects_stalls_when_it_lasts_and_moves_nothing(
    operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    """Its kind is shown, not its text, which may hold anything; the log has all of it; it is told once."""
    stage = operator.stage
    await born(stage)
    await fail(operator, *(ZeroDivisionError("password=hunter2") for _ in range(4)))
    await looks_that_fail(operator, 2)
    assert stalled(await stage.stored()) is None
    await looks_that_fail(operator, 2)
    lasting = await stage.stored()
    said = "ZeroDivisionError in phase New: a defect; the operator's log shows where; it is tried again"
    assert stalled(lasting) == ("UnexpectedError", said)
    assert (lasting.status.phase, lasting.status.trail) == (Phase.NEW, [])
    assert (await told(stage)).count(("Warning", "UnexpectedError")) == 1
    assert operator.count("praxis_reconcile_errors_total", phase="New", reason="UnexpectedError") == 4
    assert "password=hunter2" in caplog.text
    await operator.look()
    assert (await stage.stored()).status.phase is Phase.TRIAGED


async def test_an_error_that_nobody_expects_after_a_decision_leaves_it_stored(operator: Operator) -> None:
    """What was decided stands; only what it led to failed."""
    stage = operator.stage
    await born(stage)
    stage.proxy.spoil(answer(200, '{"items": [{"spec": {}, "metadata": 7}]}'), method="GET", path="reconciliations")
    assert (await operator.look()).failed
    assert (await stage.stored()).status.phase is Phase.TRIAGED


async def test_an_incident_that_cannot_be_read_counts_as_an_error(operator: Operator) -> None:
    """Without an incident nothing can be shown on one; the queue backs off, and the metric counts."""
    await born(operator.stage)
    operator.stage.proxy.spoil(answer(200, '{"metadata": 7}'), method="GET", path="incidents/inc-1")
    assert (await operator.look()).failed
    assert operator.count("praxis_reconcile_errors_total", phase="New", reason="ActionRequired") == 1


async def test_an_error_that_nobody_expects_while_reading_counts(operator: Operator) -> None:
    """As above, and the queue is told of it: it logs it with what it was about."""
    await born(operator.stage)
    with (
        patch.object(operator.reconciler._cluster, "incident", side_effect=ZeroDivisionError),
        pytest.raises(ZeroDivisionError),
    ):
        await operator.look()
    assert operator.count("praxis_reconcile_errors_total", phase="New", reason="UnexpectedError") == 1


async def test_stalled_ends_with_the_next_decision(operator: Operator) -> None:
    """What was stalled on is over."""
    await born(operator.stage)
    await fail(operator, NeedsPerson("no key"))
    await operator.look()
    assert stalled(await operator.stage.stored()) == ("ActionRequired", "no key")
    await operator.look()
    after = await operator.stage.stored()
    assert (after.status.phase, stalled(after)) == (Phase.TRIAGED, None)


async def test_a_spent_budget_stalls_at_once(operator: Operator) -> None:
    """Trying again spends nothing and helps nothing."""
    await born(operator.stage)
    await fail(operator, RetryLater("400000 tokens are spent", reason="BudgetSpent"))
    assert (await operator.look()).failed
    assert stalled(await operator.stage.stored()) == ("BudgetSpent", "400000 tokens are spent; it is tried again")


async def test_what_only_a_person_can_mend_is_shown_and_told_once(operator: Operator) -> None:
    """It is looked at again every half minute, without another Event for the same reason in other words."""
    stage = operator.stage
    await born(stage)
    for number in range(3):
        await fail(operator, NeedsPerson(f"put a valid key into the file ({number})"))
        assert await operator.look() == Later(30.0, failed=True)
    assert stalled(await stage.stored()) == ("ActionRequired", "put a valid key into the file (2)")
    assert await told(stage) == [("Warning", "ActionRequired")]


async def test_a_plan_that_the_api_server_refuses_is_shown_with_what_it_cost(operator: Operator) -> None:
    """A model was paid for what could not be stored: it counts, or the budget would never end it."""
    stage = operator.stage
    await stage.declare()
    await stage.incident(Phase.INVESTIGATED)
    stage.proxy.spoil(answer(413), path="/status")
    assert await operator.look() == Later(30.0, failed=True)
    refused = await stage.stored()
    assert (refused.status.phase, refused.status.plan) == (Phase.INVESTIGATED, None)
    assert stalled(refused) is not None
    assert stalled(refused)[0] == "WriteRefused"  # type: ignore[index]
    assert refused.status.usage is not None
    assert refused.status.usage.model_calls == 3


async def test_an_operator_that_may_not_read_says_so(operator: Operator) -> None:
    """A role that is missing is shown on the incident, not only in a log."""
    stage = operator.stage
    await stage.incident(Phase.TRIAGED)
    stage.proxy.spoil(answer(403, '{"message": "targets are forbidden"}'), method="GET", path="remediationtargets")
    assert await operator.look() == Later(30.0, failed=True)
    assert stalled(await stage.stored()) == ("ActionRequired", "targets are forbidden")


@pytest.mark.parametrize(
    ("age", "overdue"), [(299.0, False), (300.0, False), (301.0, True)], ids=["below", "at", "above"]
)
async def test_an_incident_that_is_too_long_in_a_phase_is_stalled(
    operator: Operator, age: float, overdue: bool
) -> None:
    """Past the phase's deadline the first failure already shows; the message is the same at each look."""
    stage = operator.stage
    created = (await born(stage)).metadata.creation_timestamp
    assert created is not None
    operator.world.time.wall = datetime.fromisoformat(created) + timedelta(seconds=age)
    await fail(operator, RetryLater("out"), RetryLater("out"))
    await operator.look()
    first = await stage.stored()
    assert (stalled(first) is not None) is overdue
    operator.world.time.forward(5)
    await operator.look()
    if overdue:
        assert (await stage.stored()).metadata.resource_version == first.metadata.resource_version


async def test_waiting_too_long_is_written_once(operator: Operator) -> None:
    """A message that changed with each look would be written, and so wake us, each time."""
    stage = operator.stage
    intent = IntentId("intent-of-another")
    await stage.declare()
    opened = await open_intent(stage, intent)
    entered = opened.status.phase_times["Executing"]
    operator.world.time.wall = datetime.fromisoformat(entered) + timedelta(hours=1)
    await operator.look()
    first = await stage.stored()
    assert stalled(first) == ("DeadlinePassed", f"in Executing since {entered}, longer than 1800 s")
    operator.world.time.forward(5)
    await operator.look()
    assert (await stage.stored()).metadata.resource_version == first.metadata.resource_version


async def open_intent(stage: Stage, intent: IntentId) -> Incident:
    """An incident in Executing with another process' intent."""
    from tests.controller.test_writer import intended  # noqa: PLC0415  # the tests there are not to run here

    pinned = ActionTarget(
        name="checkout-fn", uid=(await target(stage)).metadata.uid, generation=1, state=builders.STATE
    )
    incident = await stage.incident(
        Phase.EXECUTING, draft=lambda **given: builders.plan(actions=[builders.action(target=pinned)], **given)
    )
    transition, effect = intended(incident)
    assert effect.step.intent is not None
    step = effect.step.replace(intent=effect.step.intent.replace(id=intent, writer="writer-b"))
    record = replace(transition.records[0], document=step.dump())
    written = replace(transition, changes={"steps": [step]}, records=[record], then=None)
    return await stage.writer.carry_out(incident, written)


async def test_anothers_intent_is_settled_after_the_wait_and_counted(operator: Operator) -> None:
    """A process that takes over: waits, reads, concludes; never sends."""
    stage = operator.stage
    await stage.declare()
    await open_intent(stage, IntentId("intent-of-another"))
    assert await operator.look() == Later(25.0)
    operator.world.time.forward(25)
    done = await operator.settle()
    assert done.status.phase is Phase.RECONCILIATION_REQUIRED
    assert operator.world.function.sends == []
    assert operator.count("praxis_outcomes_total", result="Unknown") == 1
    assert operator.count("praxis_dispatches_total") == 0
    assert ("Warning", "WriterLost") in await told(stage)


async def test_a_memory_that_cannot_be_embedded_stays_owed(operator: Operator) -> None:
    """A resolved incident cannot fail any more: it is tried again, and shown once that lasts."""
    stage = operator.stage
    await stage.incident(Phase.RESOLVED)
    operator.world.memory.errors.extend(InvalidAnswer("no usable vector") for _ in range(3))
    await looks_that_fail(operator, 3)
    owed = await stage.stored()
    assert (owed.status.phase, owed.status.attempts) == (Phase.RESOLVED, None)
    assert stalled(owed) == ("InvalidAnswer", "no usable vector; it is tried again")
    assert (await operator.look()).seconds == 0
    stored = await stage.stored()
    assert stored.status.condition("MemoryStored").status == "True"  # type: ignore[union-attr]
    assert stalled(stored) is None


async def test_who_lost_a_race_backs_off_and_looks_again(operator: Operator) -> None:
    """Superseded counts as a failure of the look: what is refused each time must not be tried in a tight loop."""
    stage = operator.stage
    await born(stage)
    stage.proxy.spoil(drop_before(), path="/status")
    assert await operator.look() == Later(None, failed=True)
    assert operator.count("praxis_reconcile_total", phase="New", result="superseded") == 1
    assert (await stage.stored()).status.phase is Phase.NEW
    assert await operator.look() == Later(0.0)


async def test_an_api_server_that_is_away_costs_a_look(operator: Operator) -> None:
    """Nothing is decided on what could not be read."""
    await born(operator.stage)
    operator.stage.proxy.spoil(answer(503), method="GET")
    assert await operator.look() == Later(None, failed=True)
    assert operator.count("praxis_reconcile_total", phase="New", result="error") == 1


async def test_a_verdict_that_cannot_be_given_yet_spoils_no_decision(operator: Operator) -> None:
    """The decision is stored; that the verdicts wait is said of what it led to, and is no lost race."""
    stage = operator.stage
    await born(stage)
    stage.proxy.spoil(answer(429), method="GET", path="incidentapprovals")
    assert await operator.look() == Later(None, failed=True)
    assert (await stage.stored()).status.phase is Phase.TRIAGED
    assert operator.count("praxis_reconcile_total", phase="New", result="superseded") == 0
    assert stage.proxy.count("PATCH", "/status") == 1


async def test_a_deleted_incident_is_forgotten_and_its_approvals_are_refused(operator: Operator) -> None:
    """Its series disappear, and whoever approved it is told."""
    stage = operator.stage
    await stage.incident(Phase.AWAITING_APPROVAL)
    await decide(operator)
    await stage.delete()
    assert await operator.look() == Later(None)
    assert operator.incidents.keys() == []
    assert await verdicts(stage) == {"alice Approve": ("Refused", "IncidentNotFound")}


async def test_an_event_that_cannot_be_made_does_not_cost_the_outcome() -> None:
    """What the effect did is given back whatever becomes of the telling; the metric counts what was acted on."""

    class Effect:
        intent = IntentId("intent-0001")

        async def run(self, stored: Incident) -> Transition:
            await asyncio.sleep(0)
            return replaced(stored, stored.status.steps[0])

        def never_sent(self, stored: Incident) -> Transition:
            raise AssertionError

    async def tell(stored: Incident) -> None:
        raise ValueError("no canonical JSON")

    clock = HandClock(Time())
    registry, queue = CollectorRegistry(), WorkQueue(clock=clock)
    incidents = Incidents(clock=clock, deadlines=OperatorSettings().deadlines)
    metrics = Metrics(registry=registry, incidents=incidents, queue=queue)
    stored = builders.incident(Phase.OBSERVING)
    following = await Told(Effect(), tell, metrics).run(stored)
    assert following.changes["steps"][0].outcome.result is Result.APPLIED
    assert registry.get_sample_value("praxis_dispatches_total") == 1


def test_every_reason_that_stalls_is_a_known_one() -> None:
    """The condition's reason is one of the table, so an error's own must be too."""
    for kind in (RetryLater, NeedsPerson, InvalidAnswer):
        assert kind.reason in set(Reason)
    assert Verdict.ACCEPTED == "Accepted"
