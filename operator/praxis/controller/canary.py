"""The watches' canary: a watch that stays open and tells nothing is noticed, shown, and begun anew.

A watch cannot be trusted to say that it is broken. kopf reconnects one on which nothing at all arrives, bookmarks
included; that shows neither a watch whose bookmarks arrive and whose events do not, nor a reader that is stuck behind a
healthy connection. So what is stored is compared with what came out at the end: each object that a list shows must have
been told of at its resourceVersion, or be told of soon. Nothing is written for it, to nobody's objects, and a watch of
which nothing is owed cannot have cost anything.

Why the watch is begun anew, and not the process: docs/decisions/0009-a-silent-watch-is-begun-anew.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge

from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import Resource
from praxis.api.incident import Incident
from praxis.api.target import RemediationTarget
from praxis.clock import Clock
from praxis.controller.cluster import KubeCluster
from praxis.controller.queue import Key
from praxis.errors import PraxisError

log = logging.getLogger(__name__)

KINDS: Sequence[type[Resource]] = (Incident, IncidentApproval, IncidentReconciliation, RemediationTarget)
LOOKS = 4
"""Looks in a deadline: one that may just have been too early, one that finds something owed, two that find it still."""


@dataclass
class Watch:
    """What one watch has told: for each object the resourceVersion, and when. Times are seconds since boot."""

    current: float
    told: dict[Key, tuple[str, float]] = field(default_factory=dict)
    owed: dict[Key, float] = field(default_factory=dict)
    looked: float = 0.0

    def heard(self, key: Key, version: str | None, now: float) -> None:
        """It told of an object; without a version, that it is gone."""
        if version is None:
            self.told.pop(key, None)
        else:
            self.told[key] = (version, now)
        if self.owed.pop(key, None) is not None and not self.owed:
            self.current = self.looked

    def compare(self, stored: Mapping[Key, str], asked: float) -> None:
        """What it owes of what a list showed that was asked for at `asked`. What was told since then may be newer."""
        self.looked = asked
        owed = {key for key, version in stored.items() if self._owes(key, version, asked)}
        self.owed = {key: self.owed.get(key, asked) for key in owed}
        # Whose end was not told, as after a list of kopf's own, is none that the watch owes.
        self.told = {key: told for key, told in self.told.items() if key in stored or told[1] >= asked}
        if not self.owed:
            self.current = asked

    def _owes(self, key: Key, version: str, asked: float) -> bool:
        told = self.told.get(key)
        return told is None or (told[0] != version and told[1] < asked)


class Canary:
    """Compares, for each kind, what is stored with what the watch told.

    `deadline` is the longest from a change that a watch does not tell of to its notice, seconds.
    """

    def __init__(self, *, cluster: KubeCluster, clock: Clock, registry: CollectorRegistry, deadline: float) -> None:
        self._cluster = cluster
        self._clock = clock
        self._deadline = deadline
        self._watches = {kind.plural: Watch(clock.boottime()) for kind in KINDS}
        self.silent: Sequence[str] = ()
        age = Gauge(
            "praxis_watch_canary_age_seconds",
            "Seconds since the watch of a resource was last known to have told of everything that is stored.",
            ["resource"],
            registry=registry,
        )
        self._restarts = Counter(
            "praxis_watch_restarts_total",
            "Times that the watches were begun anew because that of a resource was silent.",
            ["resource"],
            registry=registry,
        )
        for plural in self._watches:
            age.labels(plural).set_function(lambda of=plural: self.age(of))  # type: ignore[misc]
            self._restarts.labels(plural)

    def age(self, plural: str) -> float:
        """Seconds since the watch of a kind was last known to have told everything."""
        return self._clock.boottime() - self._watches[plural].current

    def wrong(self) -> str | None:
        """What the probe says while a watch that was found silent has not told what it owed."""
        return f"the watch of {', '.join(self.silent)} is silent; it was begun anew" if self.silent else None

    def told(self, plural: str, event: Mapping[str, Any]) -> None:
        """An event came out of the watch."""
        metadata = event["object"]["metadata"]
        version = None if event["type"] == "DELETED" else metadata["resourceVersion"]
        key = Key(metadata.get("namespace", ""), metadata["name"])
        self._watches[plural].heard(key, version, self._clock.boottime())

    async def look(self) -> Sequence[str]:
        """Compare once; the kinds whose watch has owed something for half of the deadline.

        A kind that cannot be listed is left as it was, and its age grows: an API server that does not answer says
        nothing of the watch.
        """
        for kind in KINDS:
            asked = self._clock.boottime()
            try:
                stored = await self._cluster.versions(kind)
            except PraxisError as error:
                log.warning("not listed for the canary", extra={"resource": kind.plural, "error": str(error)})
                continue
            self._watches[kind.plural].compare(stored, asked)
        self.silent = [plural for plural in self.silent if self.age(plural) > self._deadline / 2]
        since = self._clock.boottime() - self._deadline / 2
        return [plural for plural, watch in self._watches.items() if any(at <= since for at in watch.owed.values())]

    async def until_silent(self) -> None:
        """Look again and again; return once a watch is silent, having said so."""
        while True:
            await self._clock.sleep(self._deadline / LOOKS)
            silent = await self.look()
            if silent:
                break
        for plural in silent:
            self._restarts.labels(plural).inc()
            owed = self._watches[plural].owed
            log.error(
                "the watch is silent and is begun anew",
                extra={"resource": plural, "owed": len(owed), "first": str(min(owed, key=owed.__getitem__))},
            )
        self.silent = silent

    def begun_anew(self) -> None:
        """The watches list everything again: what they owed before is asked for from now on."""
        for watch in self._watches.values():
            watch.told.clear()
            watch.owed.clear()


async def watched(canary: Canary, watch: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Watch until that ends by itself; `watch` is begun anew each time that the canary finds it silent.

    `watch` ends soon after the event that it is given is set.
    """
    while True:
        stop = asyncio.Event()
        watching = asyncio.ensure_future(watch(stop))
        looking = asyncio.create_task(canary.until_silent(), name="canary")
        try:
            await asyncio.wait({watching, looking}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                return watching.result()
            looking.result()
            stop.set()
            await asyncio.wait({watching})
        finally:
            looking.cancel()
            watching.cancel()
            await asyncio.gather(watching, looking, return_exceptions=True)
        canary.begun_anew()
