"""Whether a restart happened: read until it is proven that our request was applied, or until the deadline.

    our marker in the environment and the update in force    our request landed, and new instances start with it
    no instance that is old, or might be, twice running       the old ones are gone
    one that is surely newer runs                             Applied (Restarted)
    none runs                                                 Applied (Drained): the next request starts afresh
    the deadline passes                                       Unknown

Which instance is surely newer is decided by the service's clocks alone, never by ours:

- it is not in the list that was read before the request was sent, and
- when the answer to the request said that the update is in force: it was created at least a second after
  `lastModifiedTime`, which counts whole seconds;
- else: at least a second after the `Date` of the first answer that said so, whole seconds too. What started while the
  update was in progress may run with the former configuration;
- or it has answered at the target's health path with our marker, whatever the clocks say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from praxis.actions.catalogue import MARKER
from praxis.actions.contract import Dispatch, Verdict
from praxis.actions.function_compute.service import SUCCESSFUL, FunctionState, Service
from praxis.api import bounds
from praxis.api.base import IntentId
from praxis.api.incident import Baseline, Instance, Result
from praxis.api.reasons import Reason
from praxis.clock import Clock, parse_rfc3339
from praxis.errors import PraxisError
from praxis.settings import ActionSettings

WHOLE_SECOND_MS: Final = 1000
CLEAN_LISTINGS: Final = 2
"""Absent from one listing is not gone: so many complete ones in a row must show no old instance."""
HEALTH_CALLS: Final = 3
"""Invocations of the health path in one look, as several may reach the same instance."""
NAMED: Final = 5
"""How many instances a message names."""


class Age(StrEnum):
    """What is known of an instance relative to the update."""

    OLD = "old"
    UNSURE = "unsure"
    NEW = "new"


def age_of(instance: Instance, *, before: frozenset[str], bound: int | None, proven: frozenset[str]) -> Age:
    """Whether an instance was started with the updated configuration.

    `before` are the ids that ran before the request, `bound` the service's time in milliseconds from which on every
    start is surely with the new configuration (None: not known), `proven` the ids that answered with our marker.
    """
    if instance.id in before:
        return Age.OLD
    if instance.id in proven or (bound is not None and instance.created >= bound):
        return Age.NEW
    return Age.UNSURE


def bound_of(function: FunctionState, *, settled_at_once: bool) -> int | None:
    """The service's time, in milliseconds, from which on every instance has the update; None when it did not say."""
    modified = _milliseconds(function.last_modified)
    if settled_at_once:
        return None if modified is None else modified + WHOLE_SECOND_MS
    if function.server_time is None:
        return None
    said = int(function.server_time.astimezone(UTC).timestamp()) * 1000
    return max(said, modified or 0) + WHOLE_SECOND_MS


def _milliseconds(time: str) -> int | None:
    try:
        return int(parse_rfc3339(time).timestamp() * 1000)
    except ValueError:
        return None


@dataclass(frozen=True)
class Question:
    """What is to be settled: this intent, on this function, and what ran before. `dispatch` as in the contract."""

    intent: IntentId
    function: str
    health_path: str | None
    baseline: Baseline
    dispatch: Dispatch | None

    @property
    def before(self) -> frozenset[str]:
        """The ids of every instance that was seen before the request."""
        seen = [*self.baseline.instances, *(self.dispatch.before if self.dispatch else ())]
        return frozenset(each.id for each in seen)


class Verification:
    """One verification, from the first look to the verdict."""

    def __init__(
        self,
        *,
        question: Question,
        connect: Callable[[], AbstractContextManager[Service]],
        settings: ActionSettings,
        clock: Clock,
        pause: Callable[[float], None],
    ) -> None:
        self._question = question
        self._connect = connect
        self._settings = settings
        self._clock = clock
        self._pause = pause
        self._bound: int | None = None
        self._in_force = False
        self._proven: frozenset[str] = frozenset()
        self._clean = 0
        self._seen: tuple[Instance, ...] = ()
        self._open = "the service was not asked yet"

    def run(self) -> Verdict:
        """Look again and again. Outages are waited out; raises nothing."""
        deadline = self._clock.boottime() + self._settings.verify_deadline
        while (verdict := self._look()) is None:
            if self._clock.boottime() + self._settings.poll_interval > deadline:
                return self._unknown()
            self._pause(self._settings.poll_interval)
        return verdict

    def _look(self) -> Verdict | None:
        try:
            with self._connect() as service:
                return self._look_with(service)
        except PraxisError as error:
            self._clean = 0
            self._open = str(error)
            return None

    def _look_with(self, service: Service) -> Verdict | None:
        function = service.get_function()
        if not self._is_in_force(function):
            self._clean = 0
            return None
        listing = service.list_instances()
        self._seen = listing.instances
        if not listing.complete:
            self._clean = 0
            self._open = "the service did not list all instances"
            return None
        self._ask_the_unsure(service)
        return self._judge(function)

    def _is_in_force(self, function: FunctionState) -> bool:
        if function.environment.get(MARKER) != self._question.intent:
            self._open = f"the function does not carry {MARKER}={self._question.intent}"
            return False
        if function.last_update_status != SUCCESSFUL:
            self._open = (
                f"the function carries our {MARKER}, but its update is {function.last_update_status or 'unsaid'}"
            )
            return False
        if not self._in_force:
            self._in_force = True
            dispatch = self._question.dispatch
            self._bound = bound_of(function, settled_at_once=dispatch is not None and dispatch.settled_at_once)
        return True

    def _ask_the_unsure(self, service: Service) -> None:
        path = self._question.health_path
        if path is None:
            return
        for _ in range(HEALTH_CALLS):
            if not self._of_age(Age.UNSURE):
                return
            answer = service.health(path)
            if answer is not None and answer.restart_id == self._question.intent:
                self._proven |= {answer.instance_id}

    def _judge(self, function: FunctionState) -> Verdict | None:
        remaining = [*self._of_age(Age.OLD), *self._of_age(Age.UNSURE)]
        if remaining:
            self._clean = 0
            self._open = f"instances that are old, or might be, are still active: {_names(remaining)}"
            return None
        self._clean += 1
        if self._clean < CLEAN_LISTINGS:
            self._open = "the old instances were absent from one listing only"
            return None
        return self._applied(function)

    def _applied(self, function: FunctionState) -> Verdict:
        landed = (
            f"{self._question.function} carries {MARKER}={self._question.intent} and its update is in force "
            f"(lastModifiedTime {function.last_modified}, request {function.request_id}); "
            f"none of the {len(self._question.before)} instances from before is active"
        )
        new = self._of_age(Age.NEW)
        if not new:
            return Verdict(
                result=Result.APPLIED,
                reason=Reason.DRAINED,
                message="The old instances are gone and none runs; the next request starts one afresh.",
                proof=f"{landed}, and no other is.",
            )
        shown = [f"{each.id} ({self._why_new(each)})" for each in new[:NAMED]]
        return Verdict(
            result=Result.APPLIED,
            reason=Reason.RESTARTED,
            message=f"The old instances are gone; {len(new)} started with the new configuration.",
            proof=f"{landed}; newer: {', '.join(shown)}."[:1024],
            after=self._seen[: bounds.INSTANCES],
        )

    def _why_new(self, instance: Instance) -> str:
        if instance.id in self._proven:
            return f"answered with {MARKER} of this intent"
        created = datetime.fromtimestamp(instance.created / 1000, UTC)
        return f"created {created.isoformat(timespec='milliseconds').replace('+00:00', 'Z')}"

    def _unknown(self) -> Verdict:
        lost = self._question.dispatch is None
        return Verdict(
            result=Result.UNKNOWN,
            reason=Reason.WRITER_LOST if lost else Reason.NOT_PROVEN,
            message=f"Not proven within {self._settings.verify_deadline:g} s: {self._open}."[:1024],
            after=self._seen[: bounds.INSTANCES],
        )

    def _of_age(self, age: Age) -> list[Instance]:
        before = self._question.before
        return [
            each for each in self._seen if age_of(each, before=before, bound=self._bound, proven=self._proven) is age
        ]


def _names(instances: Iterable[Instance]) -> str:
    ids = [each.id for each in instances]
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return ", ".join(ids[:NAMED]) + more
