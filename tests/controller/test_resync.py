"""The periodic look at everything: what may be missed is looked at each time, what has ended now and then."""

from __future__ import annotations

import asyncio
from collections import Counter

from praxis.api.base import Resource
from praxis.clock import SystemClock
from praxis.controller.metrics import Incidents
from praxis.controller.operator import SETTLED_ROUNDS, resync
from praxis.controller.queue import Key, Later, WorkQueue
from praxis.machine import Phase
from praxis.settings import Deadlines
from tests import builders

OPEN, ENDED, UNSEEN = Key("shop", "open"), Key("shop", "ended"), Key("shop", "unseen")


class Listed:
    """A cluster that lists three incidents, one of which no watch has told of."""

    def __init__(self, *, rounds: int) -> None:
        self.rounds = 0
        self.enough = asyncio.Event()
        self._last = rounds

    async def versions(self, kind: type[Resource]) -> dict[Key, str]:
        """As it is asked once a round."""
        self.rounds += 1
        if self.rounds > self._last:
            self.enough.set()
            await asyncio.Event().wait()
        return dict.fromkeys([OPEN, ENDED, UNSEEN], "1")


async def test_a_settled_incident_is_looked_at_in_one_of_thirty_rounds() -> None:
    """In the first round and in the thirty-first; an open one in each, and one that was never told of too."""
    clock, turns = SystemClock(), Counter[Key]()
    incidents, queue = Incidents(clock=clock, deadlines=Deadlines()), WorkQueue(clock=clock)
    incidents.saw(builders.incident(Phase.EXECUTING, name="open"))
    incidents.saw(builders.incident(Phase.CLOSED, name="ended"))
    cluster = Listed(rounds=SETTLED_ROUNDS + 1)

    async def count(key: Key) -> Later:
        turns[key] += 1
        return Later(None)

    await queue.pause(False)
    tasks = [
        asyncio.create_task(queue.worker(count)),
        asyncio.create_task(resync(queue, cluster, incidents, 0.001)),  # type: ignore[arg-type]
    ]
    async with asyncio.timeout(20):
        await cluster.enough.wait()
        while queue.depth:  # noqa: ASYNC110  # the queue tells nobody when it is empty
            await asyncio.sleep(0)
        await queue.idle()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert turns[ENDED] == 2
    assert turns[OPEN] > 10
    assert turns[UNSEEN] > 10
