"""The work queue: a key once at a time, bounded workers, delays, exponential backoff with jitter.

A key that is added while it waits is one key; one that is added while it is worked on is worked on again afterwards, as
what was read may be old. A delayed key that is added again comes at the earlier of the two times. Nothing is stored: at
start every object is listed and added.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import random
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from praxis.clock import Clock

log = logging.getLogger(__name__)

BACKOFF_FIRST_SECONDS = 1.0
BACKOFF_LONGEST_SECONDS = 120.0
BACKOFF_JITTER = 0.2
HEAP_SLACK = 64
"""So many outdated entries are let be before they are cleared out."""


class Key(NamedTuple):
    """An Incident by name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Later(NamedTuple):
    """When to look at a key again: after `seconds`, or, with None, when something happens."""

    seconds: float | None
    failed: bool = False


Work = Callable[[Key], Awaitable[Later]]


class WorkQueue:
    """Keys to be worked on."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._order = itertools.count()
        self._running: dict[Key, float] = {}
        self._again: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Condition()
        self._paused = True
        self.retries = 0

    @property
    def paused(self) -> bool:
        """Whether no keys are handed out."""
        return self._paused

    @property
    def depth(self) -> int:
        """How many keys wait for their turn now."""
        now = self._clock.boottime()
        return sum(due <= now for due in self._due.values())

    @property
    def longest_running(self) -> float:
        """Seconds since the key that is worked on longest was taken."""
        now = self._clock.boottime()
        return max((now - since for since in self._running.values()), default=0.0)

    def failures(self, key: Key) -> int:
        """How often in a row working on a key has failed."""
        return self._failures.get(key, 0)

    async def add(self, key: Key, after: float = 0.0) -> None:
        """Have a key worked on after so many seconds, or earlier if it is due earlier anyway."""
        async with self._changed:
            self._schedule(key, self._clock.boottime() + after)
            self._changed.notify_all()

    async def revisit(self, key: Key) -> None:
        """Have a key worked on though nothing is known to have happened to it: what backs off goes on doing so.

        A time that another side has named, and a backoff, would mean nothing if every resync cut them short.
        """
        async with self._changed:
            if key in self._running or (key in self._due and key in self._failures):
                return
            self._schedule(key, self._clock.boottime())
            self._changed.notify_all()

    async def pause(self, paused: bool) -> None:
        """Stop or go on handing out keys; keys being worked on are not disturbed."""
        async with self._changed:
            self._paused = paused
            self._changed.notify_all()

    async def idle(self) -> None:
        """Return once nothing is being worked on."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._running)

    async def worker(self, work: Work) -> None:
        """Take keys and work on them until cancelled. An error that `work` lets through is logged and backs off.

        So is a cancellation that is not this task's: somebody cancelled what `work` was waiting for, not the worker.
        """
        while True:
            key = await self._take()
            later = Later(None, failed=True)
            try:
                later = await work(key)
            except asyncio.CancelledError:
                if told_to_end():
                    raise
                log.exception("what a reconcile waited for was cancelled", extra={"incident": str(key)})
            except Exception:
                log.exception("reconcile failed unexpectedly", extra={"incident": str(key)})
            finally:
                await self._done(key, later)

    def _schedule(self, key: Key, due: float) -> None:
        if key in self._running:
            self._again[key] = min(due, self._again.get(key, due))
            return
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._heap, (due, next(self._order), key))
            # What was scheduled earlier leaves its later entry behind: a day's wait, looked at again each minute.
            if len(self._heap) > 2 * len(self._due) + HEAP_SLACK:
                self._heap = [(at, next(self._order), each) for each, at in self._due.items()]
                heapq.heapify(self._heap)

    async def _take(self) -> Key:
        async with self._changed:
            while True:
                key, wait = self._next()
                if key is not None:
                    return key
                try:
                    async with asyncio.timeout(wait):
                        await self._changed.wait()
                except TimeoutError:
                    continue

    def _next(self) -> tuple[Key | None, float | None]:
        now = self._clock.boottime()
        while self._heap:
            due, _, key = self._heap[0]
            if self._due.get(key) != due:
                heapq.heappop(self._heap)
                continue
            if self._paused:
                return None, None
            if due > now:
                return None, due - now
            heapq.heappop(self._heap)
            del self._due[key]
            self._running[key] = now
            return key, None
        return None, None

    async def _done(self, key: Key, later: Later) -> None:
        async with self._changed:
            self._running.pop(key, None)
            now = self._clock.boottime()
            if later.failed:
                self._failures[key] = self._failures.get(key, 0) + 1
                self.retries += 1
                self._schedule(key, now + max(later.seconds or 0.0, backoff(self._failures[key])))
            else:
                self._failures.pop(key, None)
                if later.seconds is not None:
                    self._schedule(key, now + later.seconds)
            if (again := self._again.pop(key, None)) is not None:
                # A failing key that keeps being added by its own Events must still back off.
                self._schedule(key, now + backoff(self._failures[key]) if later.failed else again)
            self._changed.notify_all()


def told_to_end() -> bool:
    """Whether this task itself was cancelled; a CancelledError alone may come from what it was waiting for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def backoff(failures: int) -> float:
    """Seconds to wait after so many failures in a row: doubling, bounded, jittered so that a herd spreads."""
    seconds = min(BACKOFF_FIRST_SECONDS * 2.0 ** min(failures - 1, 32), BACKOFF_LONGEST_SECONDS)
    return seconds * random.uniform(1 - BACKOFF_JITTER, 1 + BACKOFF_JITTER)  # noqa: S311  # no secret
