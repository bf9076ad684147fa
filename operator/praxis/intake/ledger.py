"""Writes each notification into the Incident it belongs to: exactly one, whoever else writes at the same time.

**Finding the newest episode.** A list by label, metadata only, read consistently; the highest episode number in a name
counts. Probing names from 1 would stop at the first episode that was deleted and open a second one beside the newest.
The list only says where to look. What decides is the name: the next episode's is the same for everybody, so of several
gateways, peers and repetitions that want to open it one succeeds and the others are told AlreadyExists, read that one,
and merge. That holds when somebody has removed the labels, too.

**Merging** is a merge patch with the resourceVersion that was judged, so neither another gateway's alerts nor the end
of the episode in between can be overlooked: the API server answers 409, and everything is read and judged again.
A lost answer is handled the same way, because a merge that was stored after all changes nothing the second time.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

from praxis.api.base import API_VERSION
from praxis.api.incident import Incident, IncidentSpec
from praxis.clock import Clock
from praxis.errors import AnswerLost, Refused, RetryLater
from praxis.intake.episodes import Ignore, Join, Verdict, judge
from praxis.intake.group import Group
from praxis.intake.merging import opening
from praxis.intake.metrics import Metrics
from praxis.intake.payload import Notification
from praxis.intake.receipt import Cause, Receipt
from praxis.kube import Document, Kube, path_of
from praxis.machine import TERMINAL

log = logging.getLogger(__name__)

ATTEMPTS: Final = 10
"""How often a write is tried; each failure but a lost answer means that somebody else succeeded."""
PAUSE_SECONDS: Final = 0.02
"""Longest pause after the first failure; one more of it after each further one."""

RECORD_SECONDS: Final = 25.0
"""For one notification with everything that is tried; the sender is told to come again then."""
UNPROCESSABLE: Final = 422


class Ledger:
    """The Incidents of one namespace, as the gateway writes them."""

    def __init__(
        self, *, kube: Kube, namespace: str, clock: Clock, metrics: Metrics, seconds: float = RECORD_SECONDS
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._clock = clock
        self._metrics = metrics
        self._seconds = seconds
        self._locks: WeakValueDictionary[Group, asyncio.Lock] = WeakValueDictionary()

    async def record(self, notification: Notification) -> Receipt:
        """Create, merge into, or leave alone the Incident of the notification's group.

        Raises:
            RetryLater: the API server could not be asked, or others wrote first too often.
            Refused: it does not let this gateway write.
        """
        group = notification.group
        try:
            async with asyncio.timeout(self._seconds), self._alone(group):
                return await self._record(notification)
        except TimeoutError as error:
            raise RetryLater(f"no Incident of {group.name(1)} was written in {self._seconds:g} s") from error

    async def _record(self, notification: Notification) -> Receipt:
        group = notification.group
        taken, frozen = 0, ""
        for attempt in range(ATTEMPTS):
            if attempt:
                await self._pause(attempt)
            current = await self._current(group, taken)
            verdict = judge(current, notification, frozen=current is not None and current.metadata.uid == frozen)
            try:
                return await self._write(notification, current, verdict)
            except AnswerLost as error:
                log.warning("looking again after a lost answer", extra={"error": str(error)})
            except Refused as refusal:
                if not isinstance(verdict, Join):
                    if not refusal.conflict:
                        raise
                    taken = _episode(group, current) + 1
                elif refusal.status == UNPROCESSABLE and current and current.status.phase in TERMINAL and not frozen:
                    log.warning("the API server keeps an ended episode as it is", extra={"error": str(refusal)})
                    frozen = current.metadata.uid
                elif not (refusal.conflict or refusal.not_found):
                    raise
        raise RetryLater(f"others wrote first {ATTEMPTS} times, to Incidents of {group.name(1)}")

    async def reachable(self) -> None:
        """Ask the API server for what every notification needs. Raises as `record`."""
        await self._kube.metadata(path_of(Incident, self._namespace), {"limit": "1"})

    async def _current(self, group: Group, taken: int) -> Incident | None:
        """The newest episode, which is `taken` at least; None when there is none."""
        listed = await self._kube.metadata(path_of(Incident, self._namespace), {"labelSelector": group.selector})
        episodes = {taken, *(group.episode(each["name"]) for each in listed)}
        for episode in sorted(episodes - {0}, reverse=True):
            try:
                reply = await self._kube.get(path_of(Incident, self._namespace, group.name(episode)))
            except Refused as refusal:
                # Deleted since it was listed.
                if not refusal.not_found:
                    raise
            else:
                return Incident.parse(reply.document)
        return None

    async def _write(self, notification: Notification, current: Incident | None, verdict: Verdict) -> Receipt:
        if current is not None and isinstance(verdict, Join):
            return await self._join(current, verdict.spec)
        if isinstance(verdict, Ignore):
            return self._receipt(Cause.EPISODE_ENDED if current else Cause.NOTHING_FIRES, current)
        return await self._open(notification, current)

    async def _open(self, notification: Notification, previous: Incident | None) -> Receipt:
        episode = _episode(notification.group, previous) + 1
        spec = opening(notification, episode=episode, previous=previous.metadata.name if previous else None)
        document = self._document(notification.group, episode, spec)
        reply = await self._kube.create(path_of(Incident, self._namespace), document)
        return self._receipt(Cause.NEXT_EPISODE if previous else Cause.FIRST_EPISODE, Incident.parse(reply.document))

    async def _join(self, current: Incident, spec: IncidentSpec) -> Receipt:
        if spec == current.spec:
            return self._receipt(Cause.UNCHANGED, current)
        changed = spec.dump()
        await self._kube.merge_patch(
            path_of(Incident, self._namespace, current.metadata.name),
            {
                "metadata": {"resourceVersion": current.metadata.resource_version},
                "spec": {field: changed[field] for field in ("alerts", "truncatedAlerts")},
            },
        )
        return self._receipt(Cause.CHANGED, current)

    def _document(self, group: Group, episode: int, spec: IncidentSpec) -> Document:
        return {
            "apiVersion": API_VERSION,
            "kind": Incident.kind,
            "metadata": {"name": group.name(episode), "namespace": self._namespace, "labels": group.labels},
            "spec": spec.dump(),
        }

    def _receipt(self, cause: Cause, incident: Incident | None) -> Receipt:
        return Receipt(cause=cause, incident=f"{self._namespace}/{incident.metadata.name}" if incident else None)

    @asynccontextmanager
    async def _alone(self, group: Group) -> AsyncIterator[None]:
        """One notification of a group at a time in this process: they would only collide at the API server."""
        lock = self._locks.setdefault(group, asyncio.Lock())
        async with lock:
            yield

    async def _pause(self, attempt: int) -> None:
        self._metrics.repeated()
        # Spread out, not secret: replicas that collided once must not collide again.
        await self._clock.sleep(random.uniform(0, PAUSE_SECONDS * attempt))  # noqa: S311


def _episode(group: Group, incident: Incident | None) -> int:
    return group.episode(incident.metadata.name) if incident else 0
