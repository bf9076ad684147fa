"""The one send: what the permit refuses, what an outcome may say, and that nothing can call it back or repeat it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from praxis.actions.contract import Dispatch, Sent
from praxis.api.incident import Incident, Outcome, Result
from praxis.api.reasons import Reason
from praxis.errors import RetryLater
from praxis.machine import Phase
from praxis.phases import executing
from praxis.phases.contract import Transition
from praxis.phases.send import Send, on_own_thread
from tests.phases.world import Answer, World, held, holder
from tests.phases.world import executing as executing_world

NOW = "2026-01-31T12:01:00.000000Z"


async def ready() -> tuple[World, Incident, Send]:
    """A world in which the intent is stored, and the send that its write carried."""
    world, incident = executing_world()
    decision = await executing.reconcile(incident, world.tools())
    assert isinstance(decision, Transition)
    assert isinstance(decision.then, Send)
    stored = incident.replace(status=incident.status.replace(steps=decision.changes["steps"]))
    return world, world.keep(stored), decision.then


async def outcome_of(send: Send, stored: Incident) -> Outcome:
    decision = await send.run(stored)
    (step,) = decision.changes["steps"]
    assert (decision.to, decision.then) == (Phase.EXECUTING, None)
    assert step.intent == stored.status.steps[0].intent
    assert step.outcome is not None
    assert step.outcome.writer == "writer-a"
    return step.outcome


async def test_a_request_is_sent_once_and_proven() -> None:
    """Applied, with the marker as proof and what runs now."""
    world, stored, send = await ready()
    outcome = await outcome_of(send, stored)
    assert outcome == Outcome(
        result=Result.APPLIED,
        reason="Restarted",
        message="every instance is new",
        proof=f"PRAXIS_RESTART_ID={send.intent}",
        instances_after=list(world.function.instances),
        writer="writer-a",
        time=NOW,
    )
    assert world.function.sends == [send.intent]


@pytest.mark.parametrize(
    ("answer", "rotates", "result", "reason", "landed"),
    [
        (Answer.REJECTED, True, Result.NOT_APPLIED, Reason.REJECTED_BY_SERVICE, 0),
        (Answer.LOST_BEFORE, True, Result.UNKNOWN, Reason.NOT_PROVEN, 0),
        (Answer.LOST_AFTER, True, Result.APPLIED, Reason.RESTARTED, 1),
        (Answer.ACCEPTED, False, Result.UNKNOWN, Reason.NOT_PROVEN, 1),
        (Answer.LOST_AFTER, False, Result.UNKNOWN, Reason.NOT_PROVEN, 1),
    ],
    ids=["rejected", "lost before", "lost after", "accepted, never rotates", "lost after, never rotates"],
)
async def test_what_is_known_of_a_request_that_left(
    answer: Answer, rotates: bool, result: Result, reason: Reason, landed: int
) -> None:
    """A definite no is NotApplied, proof is Applied, and everything between is Unknown; sent once in every case."""
    world, stored, send = await ready()
    world.function.answer, world.function.rotates = answer, rotates
    outcome = await outcome_of(send, stored)
    assert (outcome.result, outcome.reason) == (result, reason)
    assert (len(world.function.sends), len(world.function.landed)) == (1, landed)


async def test_a_function_that_goes_dark_after_the_send_leaves_it_unknown() -> None:
    """The deadline passes without an answer."""
    world, stored, send = await ready()
    world.on_send = lambda target, intent: setattr(world.function, "dark", True)
    assert (await outcome_of(send, stored)).result is Result.UNKNOWN
    assert len(world.function.sends) == 1


async def test_applied_without_proof_is_unknown() -> None:
    """Whatever the adapter says, an outcome that nobody could check is not success."""
    world, stored, send = await ready()
    world.adapter.proof = False
    outcome = await outcome_of(send, stored)
    assert (outcome.result, outcome.reason, outcome.proof) == (Result.UNKNOWN, "NotProven", "")


async def test_a_function_that_changed_since_the_baseline_is_not_sent_to() -> None:
    """NotApplied: this process knows that nothing left it."""
    world, stored, send = await ready()
    world.function.config = "v2"
    outcome = await outcome_of(send, stored)
    assert (outcome.result, outcome.reason) == (Result.NOT_APPLIED, Reason.BASELINE_CHANGED)
    assert world.function.sends == []


@pytest.mark.parametrize(
    ("passed", "sent"),
    [(14.9, True), (15.0, True), (15.1, False), (3600.0, False)],
    ids=["below", "at", "above", "far"],
)
async def test_the_dispatch_window_counts_from_before_the_write(passed: float, sent: bool) -> None:
    """15 s on the boot clock from before the intent's write: past it, nothing is sent, and that is known."""
    world, stored, send = await ready()
    world.time.boot += passed
    outcome = await outcome_of(send, stored)
    assert (world.function.sends != []) is sent
    if not sent:
        assert (outcome.result, outcome.reason) == (Result.NOT_APPLIED, Reason.NEVER_SENT)
        assert outcome.message == f"the dispatch window passed {passed - 15:.1f} s ago"


async def test_the_window_is_looked_at_after_everything_that_could_wait() -> None:
    """Time that passes in the adapter's re-read, or in the read of the holder, counts."""
    for wait in ("re-read", "holder"):
        world, stored, send = await ready()
        if wait == "re-read":
            world.adapter.before_permit = lambda world=world: setattr(world.time, "boot", world.time.boot + 16)  # type: ignore[misc]
        else:
            world.cluster.before("targets", lambda world=world: world.time.forward(16))  # type: ignore[misc]
        outcome = await outcome_of(send, stored)
        assert (outcome.reason, world.function.sends) == (Reason.NEVER_SENT, []), wait


async def test_a_wall_clock_that_jumps_neither_opens_nor_closes_the_window() -> None:
    """The window is on the boot clock."""
    world, stored, send = await ready()
    world.time.wall = world.time.wall.replace(year=2030)
    await outcome_of(send, stored)
    assert len(world.function.sends) == 1


async def test_a_process_that_is_no_longer_the_holder_sends_nothing() -> None:
    """Another claim, ours under another intent, or none at all: the permit refuses."""
    mine = {"incident_uid": "11111111-1111-4111-8111-111111111111"}
    for by in (holder(), holder(**mine, intent_id="praxis-later"), None):
        world, stored, send = await ready()
        (target,) = world.targets.values()
        world.declare(held(target, by))
        outcome = await outcome_of(send, stored)
        assert (outcome.result, outcome.reason, outcome.message) == (
            Result.NOT_APPLIED,
            "NeverSent",
            "another claim holds the target by now",
        )
        assert world.function.sends == []


async def test_a_target_that_is_gone_is_not_sent_to() -> None:
    """What was declared is declared no more."""
    world, stored, send = await ready()
    world.targets.clear()
    assert (await outcome_of(send, stored)).reason == "NeverSent"
    assert world.function.sends == []


@pytest.mark.parametrize("error", [RetryLater("away"), RuntimeError("a bug")])
async def test_a_holder_that_cannot_be_read_is_not_us(error: Exception) -> None:
    """The permit fails closed."""
    world, stored, send = await ready()
    world.cluster.fail("targets", error)
    outcome = await outcome_of(send, stored)
    assert (outcome.result, outcome.message) == (
        Result.NOT_APPLIED,
        f"the target's holder could not be read: {type(error).__name__}",
    )
    assert world.function.sends == []


@pytest.mark.parametrize("error", [RuntimeError("a bug"), ValueError("too long"), TimeoutError()])
async def test_an_adapter_that_raises_leaves_the_outcome_unknown(error: Exception) -> None:
    """A bug past the intent ends as Unknown, where a person sees it, never in silence."""
    world, stored, send = await ready()
    world.adapter.error = error
    outcome = await outcome_of(send, stored)
    assert (outcome.result, outcome.reason, outcome.message) == (
        Result.UNKNOWN,
        "NotProven",
        f"the send ended in {type(error).__name__}",
    )


async def test_more_instances_than_a_status_holds_do_not_lose_the_outcome() -> None:
    """What does not fit is Unknown at worst; it is never an exception that leaves the intent open."""
    world, stored, send = await ready()
    world.function.rotates = False
    world.on_send = lambda target, intent: setattr(
        world.function, "instances", tuple(replace_id(world, number) for number in range(65))
    )
    assert (await outcome_of(send, stored)).result is Result.UNKNOWN
    assert len(world.function.sends) == 1


def replace_id(world: World, number: int) -> Any:
    return world.function.instances[0].replace(id=f"i-many-{number}")


async def test_a_lost_answer_says_that_nothing_was_sent() -> None:
    """The writer stored the intent but could not know it in time: this process knows that it did not send."""
    world, stored, send = await ready()
    decision = send.never_sent(stored)
    (step,) = decision.changes["steps"]
    assert step.outcome == Outcome(
        result=Result.NOT_APPLIED,
        reason="NeverSent",
        message="the answer to the intent's write was lost, so nothing was sent",
        writer="writer-a",
        time=NOW,
    )
    assert (decision.to, decision.then, world.function.sends) == (Phase.EXECUTING, None, [])


async def test_cancelling_does_not_stop_what_is_being_sent_and_concludes_nothing() -> None:
    """The task ends without an outcome, so the intent stays open; the thread's request leaves all the same."""
    world, stored, send = await ready()
    entered, go_on, left = threading.Event(), threading.Event(), threading.Event()

    class Slow:
        def dispatch(self, *_: Any) -> Dispatch:
            entered.set()
            go_on.wait(20)
            left.set()
            return Dispatch(Sent.ACCEPTED, Reason.ACCEPTED, "")

    slow = replace(send, tools=replace(send.tools, adapter=Slow()))  # type: ignore[arg-type]
    task = asyncio.create_task(slow.run(stored))
    await asyncio.to_thread(entered.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not left.is_set()
    go_on.set()
    assert await asyncio.to_thread(left.wait, 20)
    assert world.incidents[("shop", "checkout-latency-1")].status.open_step is not None


async def test_each_send_has_a_thread_of_its_own() -> None:
    """A pool that is full of others must not hold a send back past its window."""
    names = await asyncio.gather(*(on_own_thread(lambda: threading.current_thread().name) for _ in range(3)))
    assert names == ["praxis-send"] * 3


async def test_an_error_from_outside_is_not_handed_on_while_the_thread_may_still_send() -> None:
    """Found by `make chaos`: Unknown was stored, and then the request arrived."""
    go_on, ended = threading.Event(), threading.Event()

    def send() -> None:
        go_on.wait(20)
        ended.set()

    waiting = on_own_thread(send)
    waiting.send(None)
    still = waiting.throw(RuntimeError("nobody expects this"))  # it does not come out yet
    assert not ended.is_set()
    go_on.set()
    still._asyncio_future_blocking = False
    await still
    assert ended.is_set()
    with pytest.raises(RuntimeError, match="nobody expects this"):
        waiting.send(None)


def test_a_thread_that_outlives_its_loop_ends_in_silence() -> None:
    """At the end of the process the answer has nobody left to go to."""
    entered, go_on, thread = threading.Event(), threading.Event(), []

    def late() -> None:
        thread.append(threading.current_thread())
        entered.set()
        go_on.wait(20)

    async def abandon() -> None:
        task = asyncio.create_task(on_own_thread(late))
        await asyncio.to_thread(entered.wait, 20)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(abandon())
    go_on.set()
    thread[0].join(20)
    assert not thread[0].is_alive()
