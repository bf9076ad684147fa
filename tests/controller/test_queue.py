"""The work queue: a key once at a time, delays, backoff, and nothing lost."""

from __future__ import annotations

import asyncio

import pytest

from praxis.clock import SystemClock
from praxis.controller import queue as queues
from praxis.controller.queue import Key, Later, WorkQueue

A, B = Key("shop", "a"), Key("shop", "b")


class HandClock(SystemClock):
    """Boot time that moves only when told."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def boottime(self) -> float:
        return self.seconds


async def started(clock: SystemClock | None = None) -> WorkQueue:
    queue = WorkQueue(clock=clock or SystemClock())
    await queue.pause(False)
    return queue


async def run(queue: WorkQueue, work: queues.Work, *, until: asyncio.Event, workers: int = 2) -> None:
    tasks = [asyncio.create_task(queue.worker(work)) for _ in range(workers)]
    async with asyncio.timeout(20):
        await until.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_key_is_never_worked_on_twice_at_once_and_again_after_it_changed() -> None:
    """A key that is added while it is worked on comes again, but only when the first work has ended."""
    queue, done = await started(), asyncio.Event()
    inside, seen, most = 0, 0, 0

    async def work(key: Key) -> Later:
        nonlocal inside, seen, most
        inside += 1
        most = max(most, inside)
        seen += 1
        if seen == 1:
            await queue.add(key)
            await queue.add(key)
            await asyncio.sleep(0)
        inside -= 1
        if seen == 2:
            done.set()
        return Later(None)

    await queue.add(A)
    await run(queue, work, until=done)
    assert (seen, most) == (2, 1)


async def test_two_keys_are_worked_on_side_by_side() -> None:
    """Bounded workers take different keys at once: each waits for the other here."""
    queue, done = await started(), asyncio.Event()
    both = asyncio.Barrier(2)

    async def work(key: Key) -> Later:
        await both.wait()
        done.set()
        return Later(None)

    await queue.add(A)
    await queue.add(B)
    await run(queue, work, until=done)


async def test_a_key_added_twice_while_it_waits_is_one_key() -> None:
    """Adding is idempotent: after the one turn of A comes B, and nothing else."""
    queue, done = await started(), asyncio.Event()
    turns: list[Key] = []

    async def work(key: Key) -> Later:
        turns.append(key)
        if key == B:
            done.set()
        return Later(None)

    for key in (A, A, A, B):
        await queue.add(key)
    await run(queue, work, until=done, workers=1)
    assert turns == [A, B]


async def test_the_earlier_of_two_times_counts() -> None:
    """A delayed key that is added without a delay comes at once, and not again at the later time."""
    clock = HandClock()
    queue, done = await started(clock), asyncio.Event()
    turns: list[Key] = []

    async def work(key: Key) -> Later:
        turns.append(key)
        if key == B:
            done.set()
        return Later(None)

    await queue.add(A, after=3600)
    await queue.add(A)
    assert queue.depth == 1
    clock.seconds += 7200
    await queue.add(B)
    await run(queue, work, until=done, workers=1)
    assert turns == [A, B]


async def test_while_paused_nothing_is_handed_out_and_nothing_is_lost() -> None:
    """Without the lease the keys are kept; with it they come."""
    queue, done = WorkQueue(clock=SystemClock()), asyncio.Event()

    async def work(key: Key) -> Later:
        done.set()
        return Later(None)

    await queue.add(A)
    task = asyncio.create_task(queue.worker(work))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not done.is_set()
    assert queue.depth == 1
    await queue.pause(False)
    async with asyncio.timeout(20):
        await done.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_unexpected_error_backs_off_and_the_worker_lives_on(caplog: pytest.LogCaptureFixture) -> None:
    """A bug in the work of one key costs that key a delay, not the queue its worker."""
    queue, done = await started(), asyncio.Event()

    async def work(key: Key) -> Later:
        if key == A:
            raise RuntimeError("a bug")
        done.set()
        return Later(None)

    await queue.add(A)
    await queue.add(B)
    await run(queue, work, until=done, workers=1)
    assert queue.failures(A) == 1
    assert queue.retries == 1
    assert queue.depth == 0, "A waits for its backoff"
    assert "reconcile failed unexpectedly" in caplog.text


@pytest.mark.parametrize(
    ("failures", "lowest", "highest"),
    [(1, 0.8, 1.2), (2, 1.6, 2.4), (7, 51.2, 76.8), (8, 96.0, 144.0), (5000, 96.0, 144.0)],
)
def test_backoff_doubles_to_a_bound(failures: int, lowest: float, highest: float) -> None:
    """1 s, 2 s, 4 s … up to 120 s, each a fifth more or less."""
    assert all(lowest <= queues.backoff(failures) <= highest for _ in range(50))


async def test_waits_that_are_cut_short_again_and_again_leave_nothing_behind() -> None:
    """An incident that waits a day for a person and is looked at each minute must not fill the memory."""
    clock = HandClock()
    queue = await started(clock)
    for _ in range(1000):
        await queue.add(A, after=86400.0)
        await queue.add(A)
        assert await queue._take() == A
        await queue._done(A, Later(86400.0))
        clock.seconds += 60.0
    assert len(queue._heap) <= 66
    await queue.add(B, after=1.0)
    clock.seconds += 86400.0
    assert {await queue._take(), await queue._take()} == {A, B}


async def test_a_look_without_news_cuts_no_backoff_short_but_every_other_wait() -> None:
    """A resync leaves a failing key to its backoff; news of it does not; a key that waits for a person is looked at."""
    clock = HandClock()
    queue = await started(clock)
    await queue.add(A)
    await queue.add(B)
    assert [await queue._take(), await queue._take()] == [A, B]
    await queue._done(A, Later(600.0, failed=True))
    await queue._done(B, Later(86400.0))
    await queue.revisit(A)
    await queue.revisit(B)
    assert await queue._take() == B
    assert queue.depth == 0, "A goes on backing off"
    await queue.add(A)
    assert await queue._take() == A


async def test_a_look_without_news_is_not_repeated_for_a_key_that_is_worked_on() -> None:
    """What is read right now is fresh; a new key is looked at."""
    queue = await started(HandClock())
    await queue.revisit(A)
    assert await queue._take() == A
    await queue.revisit(A)
    await queue._done(A, Later(None))
    assert queue.depth == 0


async def test_a_cancellation_of_what_is_waited_for_is_no_end_of_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody else cancels a future that the work of one key awaits: that key backs off, the next is worked on."""
    queue, done = await started(), asyncio.Event()

    async def work(key: Key) -> Later:
        if key == A:
            awaited = asyncio.get_running_loop().create_future()
            awaited.cancel()
            await awaited
        done.set()
        return Later(None)

    await queue.add(A)
    await queue.add(B)
    await run(queue, work, until=done, workers=1)
    assert queue.failures(A) == 1
    assert "what a reconcile waited for was cancelled" in caplog.text


async def test_a_worker_that_is_cancelled_ends() -> None:
    """Also while it works on a key."""
    queue, begun = await started(), asyncio.Event()

    async def work(key: Key) -> Later:
        begun.set()
        await asyncio.Event().wait()
        return Later(None)

    await queue.add(A)
    task = asyncio.create_task(queue.worker(work))
    async with asyncio.timeout(20):
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()
