"""The world of the model: copied at each step, its objects shared, and told apart by what they say.

Objects are interned by content, so that two ways to the same object give the same one. A resourceVersion counts the
writes of its own object: which write came first elsewhere makes no difference to who is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from praxis.api.approval import IncidentApproval
from praxis.api.base import Resource
from praxis.api.incident import EntryKind, Incident
from praxis.api.target import RemediationTarget
from praxis.clock import parse_rfc3339
from praxis.controller.metrics import deadline_of
from praxis.errors import Refused
from praxis.kube import Document
from praxis.settings import Deadlines
from tests import builders
from tests.phases.processes import Api
from tests.phases.world import R, Time, World, versioned

NAMES = re.compile(r"praxis-[0-9a-f]{32}|writer-\d+")
Written = Callable[[Incident, Incident], None]
DEADLINES = Deadlines()
_objects: dict[str, Any] = {}
_patched: dict[tuple[int, int], Any] = {}
_texts: dict[int, tuple[Resource, str]] = {}
_kept: list[Any] = []
"""What is remembered by identity must not be collected."""


def forget() -> None:
    """Forget all objects: nobody has any of them any more."""
    for memory in (_objects, _patched, _texts, _kept):
        memory.clear()


class ModelWorld(World):
    """A world that can be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.late: tuple[tuple[str, Sequence[Document]], ...] = ()
        self.gone: tuple[Incident, ...] = ()
        self.wrong: list[str] = []

    def copy(self) -> ModelWorld:
        """Another world in which the same is the case."""
        made = ModelWorld()
        made.time = Time(self.time.wall, self.time.boot)
        made.incidents, made.approvals = dict(self.incidents), dict(self.approvals)
        made.reconciliations, made.targets = dict(self.reconciliations), dict(self.targets)
        made.guards, made.late, made.gone = list(self.guards), self.late, self.gone
        made.functions = {
            name: replace(each, sends=[*each.sends], landed=[*each.landed], under_way=[*each.under_way])
            for name, each in self.functions.items()
        }
        return made

    def _stored(self, before: Resource | None, after: R) -> R:
        version = int(before.metadata.resource_version or 0) + 1 if before is not None else 1
        return interned(versioned(after, version))

    def incident(self, name: str) -> Incident | None:
        """As stored."""
        return self.incidents.get((builders.NAMESPACE, name))

    def expect(self, holds: bool, what: str) -> None:
        """Note what does not hold."""
        if not holds:
            self.wrong.append(what)

    @property
    def versions(self) -> dict[str, str]:
        """The resourceVersion of each object, by uid."""
        stored: Iterable[Resource] = (*self.incidents.values(), *self.approvals.values(), *self.targets.values())
        return {each.metadata.uid: each.metadata.resource_version for each in stored}

    @property
    def text(self) -> str:
        """All that can make a difference to what happens from here on."""
        function = self.function
        parts = [
            f"{[each.generation for each in self.guards]}",
            *(f"{text_of(each)} {self._ages(each)}" for each in self.incidents.values()),
            *(f"{text_of(each)} {self._age(each.spec.expires_at) >= 0}" for each in self.approvals.values()),
            *(text_of(each) for each in self.reconciliations.values()),
            *(text_of(each) for each in self.targets.values()),
            f"{function.config} {function.marker} {[each.id for each in function.instances]} {function.sends}",
            f"{function.landed} {function.under_way} {function.dark} {function.rotates}",
            *(self._late_text(path, operations) for path, operations in self.late),
            *(each.metadata.uid for each in self.gone),
        ]
        return "\n".join(parts)

    def _age(self, time: str) -> float:
        """Seconds since then."""
        return (self.time.wall - moment(time)).total_seconds()

    def _ages(self, incident: Incident) -> tuple[float | None, bool]:
        """How old an open intent is, while that matters, and whether the incident is in its phase for too long."""
        status = incident.status
        opened = status.open_step
        since = status.phase_times.get(status.phase)
        limit = deadline_of(DEADLINES, status.phase)
        return (
            min(self._age(opened.intent.time), 60.0) if opened is not None and opened.intent is not None else None,
            since is not None and limit is not None and self._age(since) > limit,
        )

    def _late_text(self, path: str, operations: Sequence[Document]) -> str:
        """Of a write that is on its way: what it would do, and whether its tests would still hold."""
        incident = self.incident(path.split("/")[-2])
        versions = [each["value"] for each in operations if each["path"] == "/metadata/resourceVersion"]
        heads = [each["value"] for each in operations if each["op"] == "test" and each["path"] == "/status/head"]
        current = incident is not None and versions in ([], [incident.metadata.resource_version])
        behind = [] if incident is None else [entry.hash for entry in incident.status.trail].index(heads[0])
        return f"{path} {current} {behind} {[each['path'] for each in operations]} {steps_in(operations)}"


def steps_in(operations: Sequence[Document]) -> str:
    """The steps that a patch would store."""
    return json.dumps([each["value"] for each in operations if each["path"] == "/status/steps"])


class ModelApi(Api):
    """Status writes, each computed once."""

    def __init__(self, world: ModelWorld, written: Written) -> None:
        super().__init__(world, written)

    def _patched(self, kind: type[R], stored: R | None, operations: Sequence[Document]) -> R:
        key = (id(stored), id(operations))
        if key not in _patched:
            _kept.append((stored, operations))
            try:
                _patched[key] = super()._patched(kind, stored, operations)
            except Refused as error:
                _patched[key] = error
        found = _patched[key]
        if isinstance(found, Refused):
            raise Refused(str(found), status=found.status)
        return found  # type: ignore[no-any-return]


def interned(made: R) -> R:
    """The one object of this content."""
    return _objects.setdefault(f"{type(made).__name__}{made.model_dump_json()}", made)  # type: ignore[no-any-return]


def canonical(parts: Sequence[str]) -> str:
    """A text in which processes and intents are named by the order in which they are first spoken of."""
    names: dict[str, str] = {}
    return NAMES.sub(lambda found: names.setdefault(found[0], f"#{len(names)}"), "\n".join(parts))


def text_of(stored: Resource) -> str:
    """What an object says that anybody goes by."""
    return _texts[id(stored)][1] if id(stored) in _texts else _new_text(stored)


def _new_text(stored: Resource) -> str:
    if isinstance(stored, Incident):
        said = incident_text(stored)
    elif isinstance(stored, RemediationTarget):
        holder = stored.status.holder
        said = f"{stored.metadata.generation} {holder and (holder.incident_name, holder.revision, holder.intent_id)}"
    elif isinstance(stored, IncidentApproval):
        said = f"{stored.spec.decision} {stored.spec.plan_digest} {stored.spec.expires_at} {stored.status.verdict}"
    else:
        said = f"{stored.dump()['spec']}"
    _texts[id(stored)] = (stored, f"{stored.metadata.uid} {said}")
    return _texts[id(stored)][1]


def incident_text(incident: Incident) -> str:
    """Phase, plan, approvals, steps, conditions; of the trail its length, by which alone fences tell it apart."""
    status = incident.status
    plan = (status.plan.digest, status.plan.recomputed(incident.metadata.uid)) if status.plan else None
    steps = [
        (
            step.revision,
            step.action,
            step.intent and (step.intent.id, step.intent.writer, step.intent.baseline.dump()),
            step.outcome and (step.outcome.result, step.outcome.reason, step.outcome.writer, step.outcome.proof),
        )
        for step in status.steps
    ]
    decided = [entry.digest for entry in status.trail if entry.kind is EntryKind.DECIDED]
    conditions = [(each.type, each.status, each.reason) for each in status.conditions]
    return (
        f"{status.phase} {status.reason} {incident.spec.firing} {plan} {[each.uid for each in status.approvals]}"
        f" {steps} {conditions} {len(status.trail)} {decided}"
        f" {[each.generation for each in status.guards]}"
    )


@lru_cache(maxsize=4096)
def moment(time: str) -> datetime:
    """The moment that a time names."""
    return parse_rfc3339(time)
