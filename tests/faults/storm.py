"""A storm on the line between an operator and the API server: faults drawn from a seed, kind of request by kind.

What is asked at start, whether the operator may too much, is left alone: an operator that never starts shows nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from aiohttp import web

from tests import watching
from tests.proxy import Exchange, Fault, answer, answer_after, doubled, drop_after, drop_before, first, is_watch

Draw = Callable[[random.Random], tuple[str, Fault]]
RETRY_AFTER = {"Retry-After": "1"}
SPARED = ("selfsubject",)


def delayed(seconds: float) -> Fault:
    """The request arrives later."""

    async def wait() -> None:
        await asyncio.sleep(seconds)

    return first(wait)


def delayed_answer(seconds: float) -> Fault:
    """The answer comes later."""

    async def fault(exchange: Exchange) -> web.Response:
        status, body = await exchange.forward()
        await asyncio.sleep(seconds)
        return web.Response(status=status, body=body, content_type="application/json")

    return fault


WATCHES: Sequence[Draw] = (
    lambda r: ("watch cut", watching.cut(r.randrange(4))),
    lambda r: ("watch silent", watching.silent(r.randrange(3))),
    lambda r: ("watch gone (410)", watching.gone(r.randrange(3))),
    lambda _: ("watch events doubled", watching.twice()),
    lambda _: ("watch events reordered", watching.swapped()),
    lambda r: ("watch events late", watching.late(r.uniform(0.1, 1.0))),
    lambda _: ("watch 429", answer(429, headers=RETRY_AFTER)),
    lambda _: ("watch 503", answer(503)),
)
READS: Sequence[Draw] = (
    lambda r: ("read delayed", delayed(r.uniform(0.05, 0.8))),
    lambda _: ("read dropped", drop_before()),
    lambda _: ("read 429", answer(429, headers=RETRY_AFTER)),
    lambda _: ("read 500", answer(500)),
    lambda _: ("read 503", answer(503)),
)
WRITES: Sequence[Draw] = (
    lambda r: ("write delayed", delayed(r.uniform(0.05, 0.8))),
    lambda r: ("write answered late", delayed_answer(r.choice([0.3, 1.0, 6.0]))),
    lambda _: ("write dropped before", drop_before()),
    lambda _: ("write dropped after", drop_after()),
    lambda _: ("write doubled, first answer", doubled()),
    lambda _: ("write doubled, second answer", doubled(answers=1)),
    lambda _: ("write 409", answer(409)),
    lambda _: ("write 429", answer(429, headers=RETRY_AFTER)),
    lambda _: ("write 500", answer(500)),
    lambda _: ("write 503", answer(503)),
    lambda _: ("write 500 after", answer_after(500)),
    lambda _: ("write 504 after", answer_after(504)),
)


@dataclass(frozen=True)
class Sort:
    """How often requests of a sort are hit, and by what."""

    chance: float
    faults: Sequence[Draw]


SORTS: Mapping[str, Sort] = MappingProxyType(
    {
        "watch": Sort(0.5, WATCHES),
        "status": Sort(0.25, WRITES),
        "write": Sort(0.1, WRITES),
        "read": Sort(0.02, READS),
    }
)


def sort_of(request: web.Request) -> str | None:
    """Which sort a request is of; None for what is spared."""
    if any(each in request.path for each in SPARED):
        return None
    if is_watch(request):
        return "watch"
    if request.method == "GET":
        return "read"
    return "status" if request.path.endswith("/status") else "write"


@dataclass
class Storm:
    """Draws while it rages; the n-th fault of a sort depends on the seed alone. `hits` counts what it did.

    `begun` is set by the first status that is written: until then operators only get started.
    """

    seed: str
    raging: bool = True
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    hits: Counter[str] = field(default_factory=Counter)
    _dice: dict[str, random.Random] = field(default_factory=dict)

    def draw(self, request: web.Request) -> Fault | None:
        """A fault for a request, or None: it passes."""
        name = sort_of(request)
        if name == "status":
            self.begun.set()
        if not self.raging or name is None:
            return None
        dice = self._dice.setdefault(name, random.Random(f"{self.seed}/{name}"))  # no secret
        sort = SORTS[name]
        if dice.random() >= sort.chance:
            return None
        called, fault = dice.choice(sort.faults)(dice)
        self.hits[called] += 1
        return fault
