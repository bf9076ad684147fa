"""The one status writer: every write is fenced, and an effect runs after the 2xx of its write, or never.

Nothing else in the house writes an Incident's status.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from praxis.api.incident import Incident, IncidentStatus
from praxis.api.reasons import Reason
from praxis.clock import Clock
from praxis.controller.journal import Journal
from praxis.controller.queue import backoff
from praxis.controller.sightings import Intents
from praxis.controller.status import applied, difference, fence, updated
from praxis.errors import AnswerLost, NeedsPerson, PraxisError, Refused, Superseded
from praxis.kube import Kube, path_of
from praxis.phases.contract import Cluster, ConditionUpdate, Transition

log = logging.getLogger(__name__)

MISTAKES: Final = 5
"""So often is an outcome tried that an error of our own keeps from being stored; it would not end by itself."""


@dataclass(frozen=True)
class Committed:
    """A write that is stored; `acknowledged` says that its own 2xx arrived, in time to act on it."""

    incident: Incident
    acknowledged: bool


class StatusWriter:
    """Writes as one operator process."""

    def __init__(
        self, *, kube: Kube, cluster: Cluster, clock: Clock, actor: str, intents: Intents, journal: Journal
    ) -> None:
        self._journal = journal
        self._kube = kube
        self._cluster = cluster
        self._clock = clock
        self._actor = actor
        self._intents = intents

    async def carry_out(self, incident: Incident, transition: Transition) -> Incident:
        """Commit a transition; run the effect that it carries; store that effect's outcome. Returns what is stored.

        Raises:
            Superseded: somebody wrote first, or the object is gone; nothing was done.
            NeedsPerson: the API server's own rules refuse the write.
            RetryLater: the API server could not be asked; nothing was done.
        """
        effect = transition.then
        if effect is None:
            return (await self._commit(incident, transition)).incident
        try:
            committed = await self._commit(incident, transition)
        except BaseException:
            # Whatever became of the write, this process will not act on it: remembered, in case it is stored yet.
            self._intents.give_up(effect.intent)
            raise
        if committed.acknowledged:
            following = await effect.run(committed.incident)
        else:
            self._intents.give_up(effect.intent)
            following = effect.never_sent(committed.incident)
        return await self._until_stored(committed.incident, following)

    async def note(self, incident: Incident, conditions: list[ConditionUpdate], **changes: object) -> Incident:
        """Write conditions, or a count, that are no decision: same fence, no trail entry.

        Raises as `carry_out`, and AnswerLost: nothing hangs on whether it is stored, the next look says it again.
        """
        status = incident.status
        after = status.replace(
            **changes,
            conditions=updated(status.conditions, conditions, incident.metadata.generation, self._clock.now()),
        )
        if after == status:
            return incident
        return await self._write(incident, after, versioned=False)

    async def _commit(self, incident: Incident, transition: Transition) -> Committed:
        after = applied(incident, transition, actor=self._actor, now=self._clock.now())
        await self._journal.keep(incident, transition)
        try:
            stored = await self._write(incident, after, versioned=transition.then is not None)
            committed = Committed(stored, acknowledged=True)
        except AnswerLost:
            committed = await self._after_a_lost_answer(incident, after)
        log.info(
            "committed",
            extra={
                "incident": incident.key,
                "phase": str(after.phase),
                "reason": str(after.reason),
                "head": after.head,
                "acknowledged": committed.acknowledged,
            },
        )
        return committed

    async def _write(self, incident: Incident, after: IncidentStatus, *, versioned: bool) -> Incident:
        operations = [*fence(incident, versioned=versioned), *difference(incident.status, after)]
        path = path_of(Incident, incident.metadata.namespace, incident.metadata.name, "status")
        try:
            reply = await self._kube.json_patch(path, operations)
        except Refused as error:
            await self._explain(incident, error)
            raise
        return Incident.parse(reply.document)

    async def _after_a_lost_answer(self, incident: Incident, after: IncidentStatus) -> Committed:
        """Read until it is known whether the write is stored. An answer that comes by reading is no acknowledgement."""
        now = await self._read(incident)
        same_trail = now.status.head == after.head and now.status.phase == after.phase
        # Without an entry of its own the trail does not tell; then the write was about conditions.
        recorded = after.head != incident.status.head or now.status.conditions == after.conditions
        if same_trail and recorded:
            return Committed(now, acknowledged=False)
        raise Superseded(f"the write to {incident.key} was lost")

    async def _explain(self, incident: Incident, error: Refused) -> None:
        """Tell a refused fence from a refused write: raises Superseded for the first, NeedsPerson for the second."""
        if error.status == 401:
            return
        if error.conflict:
            raise Superseded(f"{incident.key} changes while it is written") from error
        now = await self._cluster.incident(incident.metadata.namespace, incident.metadata.name)
        unchanged = (
            now is not None
            and now.metadata.uid == incident.metadata.uid
            and now.metadata.resource_version == incident.metadata.resource_version
        )
        if not unchanged:
            raise Superseded(f"{incident.key} changed since it was read") from error
        raise NeedsPerson(f"the API server refused the status: {error}", reason=Reason.WRITE_REFUSED) from error

    async def _until_stored(self, base: Incident, following: Transition) -> Incident:
        """Store an outcome, however long it takes. Ends when the object is gone, or when it has another's outcome.

        Whatever the API server answers meanwhile may be mended, and nobody but this process knows what it did: given
        up, the best that anybody could still say is Unknown.
        """
        failures = mistakes = 0
        while True:
            try:
                return (await self._commit(base, following)).incident
            except PraxisError as error:
                failures += 1
                log.warning("outcome not stored yet", extra={"incident": base.key, "error": str(error)})
            except Exception:
                failures, mistakes = failures + 1, mistakes + 1
                log.exception("outcome not stored, unexpectedly", extra={"incident": base.key})
                if mistakes >= MISTAKES:
                    raise
            await self._clock.sleep(backoff(failures))
            now = await self._read(base)
            if all(getattr(now.status, name) == value for name, value in following.changes.items()):
                return now  # our own, by a write that had been taken for lost
            if now.status.head != base.status.head or now.status.steps != base.status.steps:
                raise Superseded(f"{base.key} has another's outcome")
            base = now

    async def _read(self, incident: Incident) -> Incident:
        """The incident as it is stored now, however long it takes. Raises Superseded when it is gone."""
        failures = 0
        while True:
            try:
                now = await self._cluster.incident(incident.metadata.namespace, incident.metadata.name)
                break
            except PraxisError as error:
                failures += 1
                log.warning("incident not read yet", extra={"incident": incident.key, "error": str(error)})
                await self._clock.sleep(backoff(failures))
        if now is None or now.metadata.uid != incident.metadata.uid:
            raise Superseded(f"{incident.key} is gone")
        return now
