"""From a key to what is next: read fresh, ask the phase, write, and say what happened.

Errors leave the incident where it is. The worst that a bug here can do is to stop: what moves an incident is a
Transition that its phase returned and that the API server let through.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from praxis.api.base import IntentId
from praxis.api.incident import Incident, Usage
from praxis.api.reasons import ConditionType, Reason
from praxis.clock import Clock, parse_rfc3339
from praxis.controller.cluster import KubeCluster
from praxis.controller.events import EventRecorder
from praxis.controller.metrics import Incidents, Metrics, deadline_of
from praxis.controller.queue import Key, Later, WorkQueue
from praxis.controller.verdicts import Verdicts
from praxis.controller.writer import StatusWriter
from praxis.errors import InvalidAnswer, NeedsPerson, PraxisError, Refused, RetryLater, Superseded
from praxis.machine import Phase, allows
from praxis.phases import (
    awaiting_approval,
    ended,
    executing,
    holding,
    integrity,
    investigated,
    new,
    observing,
    reconciliation_required,
    resolved,
    triaged,
)
from praxis.phases.contract import ConditionUpdate, Effect, Reconcile, Tools, Transition, Wait
from praxis.phases.spending import added
from praxis.reasoning.contract import spent_on

log = logging.getLogger(__name__)

PHASES: Mapping[Phase, Reconcile] = MappingProxyType(
    {
        Phase.NEW: new.reconcile,
        Phase.TRIAGED: triaged.reconcile,
        Phase.INVESTIGATED: investigated.reconcile,
        Phase.AWAITING_APPROVAL: awaiting_approval.reconcile,
        Phase.EXECUTING: executing.reconcile,
        Phase.OBSERVING: observing.reconcile,
        Phase.RESOLVED: resolved.reconcile,
        Phase.CLOSED: ended.reconcile,
        Phase.FAILED: ended.reconcile,
        Phase.RECONCILIATION_REQUIRED: reconciliation_required.reconcile,
    }
)
STALLED_AFTER_FAILURES = 3
PERSON_RETRY_SECONDS = 30.0


@dataclass(frozen=True)
class Told:
    """An effect that also says, while it runs, that its intent is stored."""

    effect: Effect
    tell: Callable[[Incident], Awaitable[None]]
    metrics: Metrics

    @property
    def intent(self) -> IntentId:
        """The intent whose write carries it."""
        return self.effect.intent

    async def run(self, stored: Incident) -> Transition:
        """Carry it out; the Event is written meanwhile, as the dispatch window is already open.

        Whatever becomes of the Event, the outcome is what counts: it must reach whoever stores it.
        """
        self.metrics.dispatched()
        telling = asyncio.ensure_future(self.tell(stored))
        try:
            return await self.effect.run(stored)
        finally:
            (told,) = await asyncio.gather(telling, return_exceptions=True)
            if isinstance(told, Exception):
                log.warning("intent not told", extra={"incident": stored.key, "error": str(told)})

    def never_sent(self, stored: Incident) -> Transition:
        """What is to be written when it was not carried out."""
        return self.effect.never_sent(stored)


async def decide(incident: Incident, tools: Tools) -> Transition | Wait:
    """What its phase says is next. Raises what the phase raises, and NeedsPerson for a status that was changed."""
    integrity.examine(incident)
    decision = await PHASES[incident.status.phase](incident, tools)
    if isinstance(decision, Transition):
        integrity.permit(incident, decision)
    return decision


class Reconciler:
    """Works on one key at a time, as the queue hands them out."""

    def __init__(
        self,
        *,
        cluster: KubeCluster,
        writer: StatusWriter,
        verdicts: Verdicts,
        events: EventRecorder,
        tools: Tools,
        queue: WorkQueue,
        incidents: Incidents,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._writer = writer
        self._verdicts = verdicts
        self._events = events
        self._tools = tools
        self._queue = queue
        self._incidents = incidents
        self._metrics = metrics
        self._clock = clock

    async def reconcile(self, key: Key) -> Later:
        """Look at an incident once; returns when to look again."""
        started = self._clock.boottime()
        phase = Phase.NEW
        result = "error"
        try:
            incident = await self._cluster.incident(*key)
            if incident is None or incident.metadata.deletion_timestamp is not None:
                await self._gone(key, incident)
                result = "success"
                return Later(None)
            phase = incident.status.phase
            self._incidents.saw(incident)
            later = await self._guarded(key, incident)
            result = "error" if later.failed else ("requeue" if later.seconds is not None else "success")
        except Superseded as error:
            log.info("superseded", extra={"incident": str(key), "error": str(error)})
            result = "superseded"
            # As a failure, so that it backs off: what is refused each time anew must not be tried in a tight loop.
            return Later(None, failed=True)
        except PraxisError as error:
            log.warning("reconcile failed", extra={"incident": str(key), "error": str(error)})
            self._metrics.failed(phase, error.reason)
            return Later(error.after if isinstance(error, RetryLater) else None, failed=True)
        except Exception:
            # Without an incident that could say so; the queue logs it and backs off.
            self._metrics.failed(phase, Reason.UNEXPECTED_ERROR)
            raise
        else:
            return later
        finally:
            self._metrics.reconciled(phase, result, self._clock.boottime() - started)

    async def _gone(self, key: Key, incident: Incident | None) -> None:
        self._incidents.gone(key)
        if incident is None:
            await self._verdicts.settle(key, None)

    async def _guarded(self, key: Key, incident: Incident) -> Later:
        """Decide and write; what goes wrong becomes a condition that a person sees."""
        decision: Transition | Wait | None = None
        try:
            decision = await decide(incident, self._tools)
            if isinstance(decision, Transition):
                incident = await self._carry_out(incident, decision)
                decision = None  # it is stored: whatever fails from here on is about what it led to
                await self._verdicts.settle(key, incident)
                return Later(0.0)
            await self._verdicts.settle(key, incident)
            return await self._wait(incident, decision)
        except InvalidAnswer as error:
            return await self._attempt_failed(key, incident, error)
        except (NeedsPerson, Refused) as error:
            reason = error.reason if isinstance(error, NeedsPerson) else Reason.ACTION_REQUIRED
            self._metrics.failed(incident.status.phase, reason)
            await self._stall(incident, reason, str(error), usage=spent(incident, error, decision))
            return Later(PERSON_RETRY_SECONDS, failed=True)
        except RetryLater as error:
            await self._retry(key, incident, error, spent(incident, error, decision))
            return Later(error.after, failed=True)
        except Superseded:
            raise
        except Exception as error:  # a bug, or what a library raises: it must show on the incident, not only in a log
            log.exception("reconcile failed unexpectedly", extra={"incident": incident.key})
            await self._retry(key, incident, unexpected(incident, error), spent(incident, error, decision))
            return Later(None, failed=True)

    async def _carry_out(self, incident: Incident, transition: Transition) -> Incident:
        if transition.then is not None:
            told = Told(transition.then, lambda stored: self._tell(stored, transition), self._metrics)
            stored = await self._writer.carry_out(incident, replace(transition, then=told))
        else:
            stored = await self._writer.carry_out(incident, transition)
            await self._tell(stored, transition)
        self._incidents.saw(stored)
        await self._tell_outcomes(incident, stored)
        await self._release(incident, stored)
        return stored

    async def _tell(self, incident: Incident, transition: Transition) -> None:
        await self._events.record(
            incident, transition.reason, transition.message, once_per=incident.status.head or "", action=transition.to
        )

    async def _tell_outcomes(self, before: Incident, stored: Incident) -> None:
        known = {(step.revision, step.action) for step in before.status.steps if step.outcome is not None}
        for step in stored.status.steps:
            if step.outcome is None or (step.revision, step.action) in known:
                continue
            self._metrics.concluded(step.outcome)
            if step.intent is not None:
                proof = f" Proof: {step.outcome.proof}" if step.outcome.proof else ""
                said = step.outcome.message.rstrip(".")
                await self._events.record(
                    stored,
                    step.outcome.reason,
                    f"{step.outcome.result}: {said}.{proof}",
                    once_per=step.outcome.time,
                    action="Outcome",
                )

    async def _release(self, before: Incident, stored: Incident) -> None:
        """Free the target for people to see; the rules of the holder free it anyway."""
        left = before.status.phase in holding.HOLDING and stored.status.phase not in holding.HOLDING
        reconciled = stored.status.condition(ConditionType.RECONCILED)
        if stored.status.phase is Phase.RECONCILIATION_REQUIRED:
            left = reconciled is not None and reconciled.status == "True"
        if not left:
            return
        try:
            await holding.release(stored, self._tools)
        except PraxisError as error:
            log.info("holder not released", extra={"incident": stored.key, "error": str(error)})

    async def _wait(self, incident: Incident, wait: Wait) -> Later:
        conditions = list(wait.conditions)
        if wait.stalled:
            await self._stall(incident, wait.reason, wait.message)
            return Later(wait.seconds)
        overdue = self._overdue(incident)
        if overdue:
            await self._stall(incident, Reason.DEADLINE_PASSED, overdue)
        else:
            conditions.append(ConditionUpdate(ConditionType.STALLED, status=None, reason=Reason.PROGRESSING))
        await self._writer.note(incident, conditions)
        return Later(wait.seconds)

    async def _retry(self, key: Key, incident: Incident, error: PraxisError, usage: Usage | None) -> None:
        """Keep what was spent, and say that work does not go on once that lasts."""
        self._metrics.failed(incident.status.phase, error.reason)
        lasts = self._queue.failures(key) + 1 >= STALLED_AFTER_FAILURES
        if lasts or error.reason == Reason.BUDGET_SPENT or self._overdue(incident):
            await self._stall(incident, error.reason, f"{error}; it is tried again", usage=usage)
        elif usage != incident.status.usage:
            await self._writer.note(incident, [], usage=usage)
        log.info("retry later", extra={"incident": incident.key, "error": str(error)})

    async def _attempt_failed(self, key: Key, incident: Incident, error: InvalidAnswer) -> Later:
        """Count the attempt, with what it cost; too many of them end the incident where a person sees it.

        What has ended cannot fail any more: a memory that cannot be embedded stays owed.
        """
        usage = spent(incident, error, None)
        if not allows(incident.status.phase, Phase.FAILED):
            await self._retry(key, incident, error, usage)
            return Later(None, failed=True)
        attempts = (incident.status.attempts or 0) + 1
        self._metrics.failed(incident.status.phase, error.reason)
        if attempts >= self._tools.settings.attempts:
            await self._carry_out(
                incident,
                Transition(
                    to=Phase.FAILED,
                    reason=Reason.ATTEMPTS_EXHAUSTED,
                    message=f"{attempts} answers of the model did not hold; the last: {error}"[:1024],
                    changes={"usage": usage},
                ),
            )
            return Later(0.0)
        await self._events.record(
            incident, error.reason, str(error), once_per=f"{incident.status.head}-{attempts}", action="Attempt"
        )
        await self._writer.note(incident, [], attempts=attempts, usage=usage)
        return Later(None, failed=True)

    async def _stall(self, incident: Incident, reason: str, message: str, *, usage: Usage | None = None) -> None:
        """Say, once, that work does not go on and what to do."""
        former = incident.status.condition(ConditionType.STALLED)
        update = ConditionUpdate(ConditionType.STALLED, status=True, reason=Reason(reason), message=message)
        stored = await self._writer.note(incident, [update], usage=usage or incident.status.usage)
        self._incidents.saw(stored)
        if former is None or former.reason != reason:
            condition = stored.status.condition(ConditionType.STALLED)
            assert condition is not None
            await self._events.record(
                stored, reason, message, once_per=condition.last_transition_time, action="Stalled"
            )

    def _overdue(self, incident: Incident) -> str | None:
        """What to say of an incident that is in its phase for longer than it should be; None while it is not."""
        limit = deadline_of(self._tools.settings.deadlines, incident.status.phase)
        entered = incident.status.phase_times.get(incident.status.phase) or incident.metadata.creation_timestamp
        if limit is None or entered is None:
            return None
        age = (self._clock.now() - parse_rfc3339(entered)).total_seconds()
        # Since when, not for how long: a message that changes with each look would be written, and wake us, each time.
        return f"in {incident.status.phase} since {entered}, longer than {limit:g} s" if age > limit else None


def unexpected(incident: Incident, error: Exception) -> PraxisError:
    """What to say of an error that nobody expects: its kind alone, as its text may hold anything."""
    return PraxisError(
        f"{type(error).__name__} in phase {incident.status.phase}: a defect; the operator's log shows where",
        reason=Reason.UNEXPECTED_ERROR,
    )


def spent(incident: Incident, error: Exception, decision: Transition | Wait | None) -> Usage | None:
    """What the models have cost the incident by now, though nothing came of it; None when they never cost anything."""
    if isinstance(decision, Transition) and isinstance(usage := decision.changes.get("usage"), Usage):
        return usage
    wasted = spent_on(error)
    return incident.status.usage if wasted == Usage() else added(incident, wasted)
