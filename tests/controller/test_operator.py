"""What runs side by side in an operator process, and how each of it ends."""

from __future__ import annotations

import asyncio

import pytest

from praxis.clock import SystemClock
from praxis.controller import operator
from praxis.controller.operator import endless, work
from praxis.controller.queue import Key, Later, WorkQueue

A = Key("shop", "a")


class Slow:
    """A reconciler that works on a key until it is let go, or until it is cut off."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.ends: list[str] = []

    async def reconcile(self, key: Key) -> Later:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ends.append("cut off")
            raise
        self.ends.append("done")
        return Later(None)


async def working() -> tuple[Slow, asyncio.Task[None]]:
    """Two workers, one of which is working on a key."""
    queue, slow = WorkQueue(clock=SystemClock()), Slow()
    await queue.pause(False)
    await queue.add(A)
    task = asyncio.create_task(work(queue, slow, 2))  # type: ignore[arg-type]
    async with asyncio.timeout(20):
        await slow.begun.wait()
    return slow, task


async def test_a_stop_lets_what_is_being_worked_on_end() -> None:
    """A send that is on its way when the process is told to stop gets its outcome."""
    slow, task = await working()
    task.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    slow.go.set()
    async with asyncio.timeout(20):
        await asyncio.wait({task})
    assert slow.ends == ["done"]
    assert task.cancelled()


async def test_a_stop_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not end in time is cut off."""
    monkeypatch.setattr(operator, "FINISH_SECONDS", 0.01)
    slow, task = await working()
    task.cancel()
    async with asyncio.timeout(20):
        await asyncio.wait({task})
    assert slow.ends == ["cut off"]


async def cancelled_elsewhere() -> None:
    """Its own task was not cancelled."""
    raise asyncio.CancelledError


async def over() -> None:
    """It simply ends."""


@pytest.mark.parametrize("part", [cancelled_elsewhere, over])
async def test_a_part_that_ends_without_having_been_told_to_ends_the_others(part: object) -> None:
    """A task group alone would go on without it."""

    async def together() -> None:
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            group.create_task(endless("work", part()))  # type: ignore[operator]
            group.create_task(asyncio.Event().wait())

    with pytest.raises(ExceptionGroup) as raised:
        await together()
    assert [str(each) for each in raised.value.exceptions] == ["work ended without having been told to"]


async def test_a_part_that_is_told_to_end_raises_nothing_of_its_own() -> None:
    """Cancelled is cancelled."""
    task = asyncio.create_task(endless("work", asyncio.Event().wait()))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
