"""The status writer on a real API server, with a proxy before it that loses, delays and invents answers.

An effect runs after the 2xx of its write, once; whatever else happens to that write, it never runs at all.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from praxis.api.base import IntentId
from praxis.api.incident import Baseline, EntryKind, Incident, Instance, Intent, Outcome, Result, Step, Usage
from praxis.api.reasons import ConditionType, Reason
from praxis.clock import rfc3339
from praxis.controller.journal import Journal
from praxis.controller.sightings import Intents
from praxis.controller.writer import StatusWriter
from praxis.digest import first_broken
from praxis.errors import AnswerLost, NeedsPerson, RetryLater, Superseded
from praxis.kube import Kube
from praxis.machine import Phase
from praxis.phases import executing
from praxis.phases.contract import ConditionUpdate, Record, Transition
from praxis.phases.outcome import replaced
from tests import builders
from tests.controller.conftest import Stage
from tests.phases.world import CLASSIFICATION, HandClock, Time, World
from tests.proxy import Fault, Late, answer, answer_after, drop_after, drop_before, first
from tests.records import HeldRecords, journal

pytestmark = pytest.mark.controlplane

INTENT = "intent-written-1"
STATUS = "/status"
Happens = Callable[[], Awaitable[Any]]


async def nothing() -> None:
    """No more happens."""


@dataclass
class Acts:
    """An effect that counts, and says what it did; `meanwhile` happens while it acts."""

    step: Step
    meanwhile: Happens = nothing
    ran: list[Incident] = field(default_factory=list)

    @property
    def intent(self) -> IntentId:
        """The intent whose write carries it."""
        assert self.step.intent is not None
        return IntentId(self.step.intent.id)

    async def run(self, stored: Incident) -> Transition:
        """Act."""
        self.ran.append(stored)
        await self.meanwhile()
        return replaced(stored, concluded(self.step, Result.APPLIED, "Restarted"))

    def never_sent(self, stored: Incident) -> Transition:
        """Did not act."""
        return replaced(stored, concluded(self.step, Result.NOT_APPLIED, "NeverSent"))


def concluded(step: Step, result: Result, reason: str, writer: str = "writer-a") -> Step:
    return step.replace(
        outcome=Outcome(
            result=result,
            reason=reason,
            message=f"it is {result}",
            proof="PRAXIS_RESTART_ID" if result is Result.APPLIED else "",
            writer=writer,
            time="2026-01-31T12:02:00.000000Z",
        )
    )


def intended(incident: Incident, **more: Any) -> tuple[Transition, Acts]:
    """The write of an intent, and the effect that it carries."""
    step = Step(
        revision=1,
        action="restart-function",
        intent=Intent(
            id=INTENT,
            writer="writer-a",
            time="2026-01-31T12:01:00.000000Z",
            baseline=Baseline(state=builders.STATE, instances=[Instance(id="i-old", created=1)]),
        ),
    )
    effect = Acts(step, **more)
    transition = Transition(
        to=Phase.EXECUTING,
        reason=Reason.INTENT_RECORDED,
        message="about to act",
        changes={"steps": [*incident.status.steps, step]},
        records=[Record(EntryKind.INTENT_RECORDED, Reason.INTENT_RECORDED, document=step.dump())],
        then=effect,
    )
    return transition, effect


def classified(**changes: Any) -> Transition:
    return Transition(
        to=Phase.TRIAGED,
        reason=Reason.CLASSIFIED,
        message="MemoryLeak",
        changes={"classification": CLASSIFICATION, **changes},
    )


def outcome(incident: Incident) -> tuple[Result, str]:
    (step,) = incident.status.steps
    assert step.outcome is not None
    return step.outcome.result, step.outcome.reason


async def test_an_effect_runs_once_after_its_write_is_acknowledged(stage: Stage) -> None:
    """While it runs the intent is stored and open; then its outcome is stored, each with its trail entry."""
    incident = await stage.incident(Phase.EXECUTING)
    seen: list[Incident] = []

    async def look() -> None:
        seen.append(await stage.stored())

    transition, effect = intended(incident, meanwhile=look)
    stored = await stage.writer.carry_out(incident, transition)
    assert len(effect.ran) == 1
    assert seen[0].status.open_step == effect.step
    assert outcome(stored) == (Result.APPLIED, "Restarted")
    assert stored == await stage.stored()
    kinds = [entry.kind for entry in stored.status.trail[-2:]]
    assert kinds == [EntryKind.INTENT_RECORDED, EntryKind.OUTCOME_RECORDED]
    assert first_broken(stored.metadata.uid, stored.status.dump()["trail"]) is None
    assert stage.proxy.count("PATCH", STATUS) == 2


LOST_AFTER = [
    drop_after(),
    answer_after(500),
    answer_after(504),
    answer_after(503, "<html>"),
    answer_after(200, "<html>"),
]
LOST_AFTER_IDS = ["connection cut", "500", "504", "503 HTML", "200 HTML"]


@pytest.mark.parametrize(
    "fault", [*LOST_AFTER, answer_after(200, "<html>hello</html>")], ids=[*LOST_AFTER_IDS, "200 HTML"]
)
async def test_an_intent_whose_answer_was_lost_is_never_acted_on(stage: Stage, fault: Fault) -> None:
    """It is stored, which only reading shows: too late to act. The outcome says that nothing was sent."""
    incident = await stage.incident(Phase.EXECUTING)
    transition, effect = intended(incident)
    stage.proxy.spoil(fault, path=STATUS)
    stored = await stage.writer.carry_out(incident, transition)
    assert effect.ran == []
    assert outcome(stored) == (Result.NOT_APPLIED, "NeverSent")
    assert stored == await stage.stored()
    assert stage.intents.never_sent(INTENT)


LOST_BEFORE = [drop_before(), answer(500), answer(502, "<html>bad gateway</html>"), answer(504)]


@pytest.mark.parametrize("fault", LOST_BEFORE, ids=["connection cut", "500", "502 HTML", "504"])
async def test_an_intent_that_was_never_stored_is_superseded(stage: Stage, fault: Fault) -> None:
    """Nothing is stored, nothing runs; the incident is looked at anew."""
    incident = await stage.incident(Phase.EXECUTING)
    transition, effect = intended(incident)
    stage.proxy.spoil(fault, path=STATUS)
    with pytest.raises(Superseded, match="was lost"):
        await stage.writer.carry_out(incident, transition)
    assert effect.ran == []
    assert await stage.stored() == incident
    assert stage.proxy.count("PATCH", STATUS) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [(409, Superseded), (429, RetryLater), (401, Exception), (403, NeedsPerson), (413, NeedsPerson)],
)
async def test_an_intent_that_was_refused_is_not_acted_on(stage: Stage, status: int, error: type[Exception]) -> None:
    """Each refusal has its consequence, and none of them is a 2xx."""
    incident = await stage.incident(Phase.EXECUTING)
    transition, effect = intended(incident)
    stage.proxy.spoil(answer(status), path=STATUS)
    with pytest.raises(error):
        await stage.writer.carry_out(incident, transition)
    assert effect.ran == []
    assert await stage.stored() == incident
    assert stage.intents.never_sent(INTENT)
    assert stage.proxy.count("PATCH", STATUS) == 1


async def test_an_api_server_that_cannot_be_reached_stores_nothing(stage: Stage, tmp_path: Any) -> None:
    """A refused connection is known not to have been sent."""
    incident = await stage.incident(Phase.EXECUTING)
    transition, effect = intended(incident)
    nowhere = tmp_path / "nowhere.yaml"
    nowhere.write_text(stage.proxy.kubeconfig.read_text().replace("http://127.0.0.1:", "http://127.0.0.1:1#"))
    async with await Kube.connect(nowhere) as kube:
        writer = StatusWriter(
            kube=kube,
            cluster=stage.cluster,
            clock=stage.clock,
            actor=builders.OPERATOR,
            intents=stage.intents,
            journal=journal(),
        )
        with pytest.raises(RetryLater):
            await writer.carry_out(incident, transition)
    assert effect.ran == []


async def test_a_given_up_intent_that_is_stored_later_is_known_never_to_have_been_sent(stage: Stage) -> None:
    """The write arrives when nobody waits for it any more: the process that wrote it settles it at once."""
    incident = await stage.incident(Phase.EXECUTING)
    transition, effect = intended(incident)
    late = Late()
    stage.proxy.spoil(late, path=STATUS)
    with pytest.raises(Superseded):
        await stage.writer.carry_out(incident, transition)
    assert await late.land() == 200
    landed = await stage.stored()
    assert landed.status.open_step == effect.step
    settled = await executing.reconcile(landed, World().tools(sightings=stage.intents))
    assert isinstance(settled, Transition)
    stored = await stage.writer.carry_out(landed, settled)
    assert outcome(stored) == (Result.NOT_APPLIED, "NeverSent")
    assert effect.ran == []


async def test_a_late_write_is_refused_once_somebody_else_wrote(stage: Stage) -> None:
    """The fence outlives the request: what was looked at anew is not disturbed by what was given up."""
    incident = await stage.incident(Phase.NEW)
    late = Late()
    stage.proxy.spoil(late, path=STATUS)
    with pytest.raises(Superseded):
        await stage.writer.carry_out(incident, classified())
    again = await stage.writer.carry_out(incident, classified())
    assert await late.land() == 422
    assert await stage.stored() == again


async def test_a_cancelled_write_is_given_up(stage: Stage) -> None:
    """Whether it is stored nobody knows; that it was not acted on, this process does."""
    incident = await stage.incident(Phase.EXECUTING)
    transition, effect = intended(incident)
    arrived, never = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        arrived.set()
        await never.wait()

    stage.proxy.spoil(first(wait), path=STATUS)
    task = asyncio.create_task(stage.writer.carry_out(incident, transition))
    await asyncio.wait_for(arrived.wait(), 20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    never.set()
    assert task.cancelled()
    assert effect.ran == []
    assert stage.intents.never_sent(INTENT)


async def test_a_lost_answer_is_asked_for_until_the_api_server_reads(stage: Stage) -> None:
    """Whether the write is stored can only be read, however long that takes."""
    incident = await stage.incident(Phase.NEW)
    stage.proxy.spoil(drop_after(), path=STATUS)
    stage.proxy.spoil(answer(503), method="GET", times=3)
    stored = await stage.writer.carry_out(incident, classified())
    assert stored.status.phase is Phase.TRIAGED
    assert stage.proxy.count("PATCH", STATUS) == 1


AWAY: list[list[Fault]] = [
    [answer(500), answer(503), answer(504)],
    [drop_before(), drop_before()],
    [answer(403), answer(401), answer(409)],
    [answer(429), answer(413)],
]


@pytest.mark.parametrize("faults", AWAY, ids=["5xx", "cut", "refused", "throttled, too large"])
@pytest.mark.parametrize("reads", [0, 2], ids=["reads answered", "reads fail"])
async def test_an_outcome_is_stored_however_long_it_takes(stage: Stage, faults: list[Fault], reads: int) -> None:
    """Only this process knows what it did: whatever is answered meanwhile, it goes on until that is stored."""
    incident = await stage.incident(Phase.EXECUTING)

    async def trouble() -> None:
        for fault in faults:
            stage.proxy.spoil(fault, path=STATUS)
        stage.proxy.spoil(answer(500), method="GET", times=reads)
        stage.proxy.spoil(answer(403), method="GET", times=reads)

    transition, effect = intended(incident, meanwhile=trouble)
    stored = await stage.writer.carry_out(incident, transition)
    assert len(effect.ran) == 1
    assert outcome(stored) == (Result.APPLIED, "Restarted")
    assert stage.proxy.count("PATCH", STATUS) == 2 + len(faults)


class Mistaken(Journal):
    """A journal with a mistake of its own, from when it is told to; `left` more times."""

    def __init__(self) -> None:
        super().__init__(recorder=HeldRecords(), registry=CollectorRegistry())
        self.left = 0

    async def keep(self, incident: Incident, transition: Transition) -> None:
        if self.left:
            self.left -= 1
            raise RuntimeError("dictionary changed size during iteration")
        await super().keep(incident, transition)


@pytest.mark.parametrize(("mistakes", "left"), [(4, 0), (1000, 995)], ids=["that end", "that do not"])
async def test_a_mistake_of_our_own_costs_no_outcome_at_once_and_keeps_no_worker(
    stage: Stage, mistakes: int, left: int
) -> None:
    """It may pass, so it is tried again; what does not pass after five times is logged by who called."""
    incident, mistaken = await stage.incident(Phase.EXECUTING), Mistaken()
    writer = StatusWriter(
        kube=stage.operator,
        cluster=stage.cluster,
        clock=stage.clock,
        actor=builders.OPERATOR,
        intents=stage.intents,
        journal=mistaken,
    )

    async def begin() -> None:
        mistaken.left = mistakes

    transition, effect = intended(incident, meanwhile=begin)
    if left:
        with pytest.raises(RuntimeError, match="changed size"):
            await writer.carry_out(incident, transition)
        assert (await stage.stored()).status.open_step == effect.step
    else:
        assert outcome(await writer.carry_out(incident, transition)) == (Result.APPLIED, "Restarted")
    assert mistaken.left == left
    assert len(effect.ran) == 1


async def test_an_outcome_whose_answer_is_lost_is_stored_once(stage: Stage) -> None:
    """It is read back, not written again."""
    incident = await stage.incident(Phase.EXECUTING)

    async def trouble() -> None:
        stage.proxy.spoil(drop_after(), path=STATUS)

    transition, _ = intended(incident, meanwhile=trouble)
    stored = await stage.writer.carry_out(incident, transition)
    assert outcome(stored) == (Result.APPLIED, "Restarted")
    assert stage.proxy.count("PATCH", STATUS) == 2


async def test_an_outcome_that_is_stored_late_is_our_own(stage: Stage) -> None:
    """A write that had been taken for lost lands before the next attempt: it is not taken for another's."""
    incident = await stage.incident(Phase.EXECUTING)
    late = Late()

    class Lands(HandClock):
        async def sleep(self, seconds: float) -> None:
            if late.exchange is not None:
                assert await late.land() == 200
            await super().sleep(seconds)

    async def trouble() -> None:
        stage.proxy.spoil(late, path=STATUS)

    writer = StatusWriter(
        kube=stage.operator,
        cluster=stage.cluster,
        clock=Lands(Time()),
        actor=builders.OPERATOR,
        intents=stage.intents,
        journal=journal(),
    )
    transition, _ = intended(incident, meanwhile=trouble)
    stored = await writer.carry_out(incident, transition)
    assert outcome(stored) == (Result.APPLIED, "Restarted")
    assert stage.proxy.count("PATCH", STATUS) == 2


async def test_storing_an_outcome_ends_when_the_incident_is_gone(stage: Stage) -> None:
    """Nothing is left to write it to. The policy lets nobody delete it now; a binding that was removed might."""
    incident = await stage.incident(Phase.EXECUTING)

    async def gone() -> None:
        stage.proxy.spoil(answer(404), path=STATUS)
        stage.proxy.spoil(answer(404), method="GET", times=2)

    transition, effect = intended(incident, meanwhile=gone)
    with pytest.raises(Superseded, match="is gone"):
        await stage.writer.carry_out(incident, transition)
    assert len(effect.ran) == 1
    assert stage.proxy.count("PATCH", STATUS) == 2


async def test_a_namesake_gets_no_outcome_that_is_not_its_own(stage: Stage) -> None:
    """Deleted and created anew under the same name: another incident."""
    incident = await stage.incident(Phase.EXECUTING)

    async def anew() -> None:
        now = await stage.stored()
        namesake = now.replace(metadata=now.metadata.replace(uid="uid-of-a-namesake"))
        stage.proxy.spoil(answer(422), path=STATUS)
        stage.proxy.spoil(answer(200, json.dumps(namesake.dump())), method="GET", times=2)

    transition, _ = intended(incident, meanwhile=anew)
    with pytest.raises(Superseded, match="is gone"):
        await stage.writer.carry_out(incident, transition)
    assert stage.proxy.count("PATCH", STATUS) == 2


async def test_anothers_outcome_stands(stage: Stage) -> None:
    """A process that took over has settled the intent as Unknown: that is what stays."""
    incident = await stage.incident(Phase.EXECUTING)
    other = StatusWriter(
        kube=stage.direct,
        cluster=stage.cluster,
        clock=stage.clock,
        actor=builders.OPERATOR,
        intents=Intents(clock=stage.clock),
        journal=journal(),
    )

    async def settled() -> None:
        now = await stage.stored()
        (step,) = now.status.steps
        await other.carry_out(now, replaced(now, concluded(step, Result.UNKNOWN, "WriterLost", "writer-b")))

    transition, _ = intended(incident, meanwhile=settled)
    with pytest.raises(Superseded, match="has another's outcome"):
        await stage.writer.carry_out(incident, transition)
    assert outcome(await stage.stored()) == (Result.UNKNOWN, "WriterLost")


async def test_of_two_writers_exactly_one_wins(stage: Stage) -> None:
    """The same transition decided twice is stored once."""
    incident = await stage.incident(Phase.NEW)
    results = await asyncio.gather(
        *(stage.writer.carry_out(incident, classified()) for _ in range(4)), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in results) == ["Incident", "Superseded", "Superseded", "Superseded"]
    assert len((await stage.stored()).status.trail) == 1


async def test_of_two_intents_exactly_one_is_acted_on(stage: Stage) -> None:
    """Two operators that both see an approved plan: one sends."""
    incident = await stage.incident(Phase.EXECUTING)
    (one, acts), (two, also) = intended(incident), intended(incident)
    results = await asyncio.gather(
        stage.writer.carry_out(incident, one), stage.writer.carry_out(incident, two), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in results) == ["Incident", "Superseded"]
    assert len(acts.ran) + len(also.ran) == 1


async def test_a_merge_into_the_spec_disturbs_no_transition_but_stops_an_intent(stage: Stage) -> None:
    """What an intent rests on must be wholly as it was read; everything else goes by phase and trail."""
    incident = await stage.incident(Phase.NEW, name="inc-1")
    await stage.merge_an_alert("inc-1")
    assert (await stage.writer.carry_out(incident, classified())).status.phase is Phase.TRIAGED
    approved = await stage.incident(Phase.EXECUTING, name="inc-2")
    await stage.merge_an_alert("inc-2")
    transition, effect = intended(approved)
    with pytest.raises(Superseded, match="changed since it was read"):
        await stage.writer.carry_out(approved, transition)
    assert effect.ran == []
    assert (await stage.stored("inc-2")).status == approved.status


async def test_a_merge_while_the_effect_runs_does_not_disturb_its_outcome(stage: Stage) -> None:
    """The outcome is fenced by phase and trail only."""
    incident = await stage.incident(Phase.EXECUTING)
    transition, _ = intended(incident, meanwhile=stage.merge_an_alert)
    stored = await stage.writer.carry_out(incident, transition)
    assert outcome(stored) == (Result.APPLIED, "Restarted")
    assert len(stored.spec.alerts) == 2


async def test_what_the_api_servers_rules_refuse_needs_a_person(stage: Stage) -> None:
    """A write that no second look would mend: it says which rule, and the incident stays as it is."""
    incident = await stage.incident(Phase.NEW)
    with pytest.raises(NeedsPerson, match="Triaged needs a classification") as raised:
        await stage.writer.carry_out(incident, classified(classification=None))
    assert raised.value.reason == "WriteRefused"
    assert await stage.stored() == incident


async def test_an_incident_that_is_gone_is_superseded(stage: Stage) -> None:
    """Nothing to write to."""
    incident = await stage.incident(Phase.NEW)
    await stage.delete()
    with pytest.raises(Superseded):
        await stage.writer.carry_out(incident, classified())


def stalled(message: str = "it is held") -> ConditionUpdate:
    return ConditionUpdate(ConditionType.STALLED, status=True, reason=Reason.TARGET_HELD, message=message)


async def test_a_note_leaves_no_trail_entry_and_is_not_written_twice(stage: Stage) -> None:
    """Conditions and counts are no decisions; what is there already costs no write."""
    incident = await stage.incident(Phase.NEW)
    noted = await stage.writer.note(incident, [stalled()], attempts=1, usage=Usage(model_calls=1))
    assert noted == await stage.stored()
    assert noted.status.trail == incident.status.trail
    condition = noted.status.condition("Stalled")
    assert condition is not None
    assert (condition.reason, condition.message) == ("TargetHeld", "it is held")
    assert (noted.status.attempts, noted.status.usage) == (1, Usage(model_calls=1))
    assert await stage.writer.note(noted, [stalled()]) is noted
    assert stage.proxy.count("PATCH", STATUS) == 1


@pytest.mark.parametrize(("fault", "there"), [(drop_before(), False), (drop_after(), True)], ids=["before", "after"])
async def test_a_note_whose_answer_is_lost_is_not_taken_for_stored(stage: Stage, fault: Fault, there: bool) -> None:
    """Nothing hangs on it: the next look says it again."""
    incident = await stage.incident(Phase.NEW)
    stage.proxy.spoil(fault, path=STATUS)
    with pytest.raises(AnswerLost):
        await stage.writer.note(incident, [stalled()])
    assert ((await stage.stored()).status.condition("Stalled") is not None) is there


async def test_a_note_is_fenced_too(stage: Stage) -> None:
    """What was seen of a phase that is over is not written into the next."""
    incident = await stage.incident(Phase.NEW)
    await stage.writer.carry_out(incident, classified())
    with pytest.raises(Superseded):
        await stage.writer.note(incident, [stalled()])


@pytest.mark.parametrize("fault", [drop_before(), drop_after()], ids=["before", "after"])
async def test_a_decision_without_a_trail_entry_is_known_by_its_conditions(stage: Stage, fault: Fault) -> None:
    """That the memory is stored leaves no entry; a lost write of it must not pass for stored."""
    incident = await stage.incident(Phase.RESOLVED)
    remembered = Transition(
        to=Phase.RESOLVED,
        reason=Reason.ALERT_CLEARED,
        message="",
        conditions=[
            ConditionUpdate(ConditionType.MEMORY_STORED, status=True, reason=Reason.STORED, message="remembered")
        ],
    )
    stage.proxy.spoil(fault, path=STATUS)
    try:
        stored = await stage.writer.carry_out(incident, remembered)
    except Superseded:
        assert (await stage.stored()).status.condition("MemoryStored") is None
    else:
        assert stored.status.condition("MemoryStored") is not None
        assert stored == await stage.stored()


def test_times_are_written_as_the_schema_wants_them() -> None:
    """What the hand clock shows is what the API server takes."""
    assert rfc3339(HandClock(Time()).now()) == "2026-01-31T12:01:00.000000Z"
