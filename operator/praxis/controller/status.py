"""What a Transition makes of a status, and the JSON patch that says so. Pure: no I/O, no clock of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from praxis.api import bounds
from praxis.api.base import Condition
from praxis.api.incident import EntryKind, Incident, IncidentStatus, TrailEntry
from praxis.api.reasons import ConditionType, Reason
from praxis.api.records import fields_of, fields_record
from praxis.clock import rfc3339
from praxis.digest import canonical, genesis, link
from praxis.errors import NeedsPerson
from praxis.machine import Phase, allows
from praxis.phases.contract import ConditionUpdate, Record, Transition
from praxis.redaction import fit

MESSAGE = 1024
"""Longest message of a status or a condition, characters."""


def applied(incident: Incident, transition: Transition, *, actor: str, now: datetime) -> IncidentStatus:
    """The status that the transition leads to.

    Raises:
        AssertionError: the table has no such edge, which is a bug: the API server would refuse it too.
        NeedsPerson: the status would be larger than an object may be.
    """
    before = incident.status
    assert allows(before.phase, transition.to), f"no transition from {before.phase} to {transition.to}"
    changes: dict[str, Any] = dict(transition.changes)
    # A decision is progress: whatever work was stalled on is over, unless the transition says otherwise.
    progress = ConditionUpdate(ConditionType.STALLED, status=None, reason=Reason.PROGRESSING)
    conditions = [progress, *transition.conditions]
    if transition.to is not before.phase:
        changes |= entered(before, transition.to, now)
        if transition.to is Phase.INVESTIGATED:
            # People approved the former plan. Left standing, the condition would pass for theirs on the next one.
            conditions.insert(0, ConditionUpdate(ConditionType.APPROVED, status=None, reason=Reason.PENDING))
    trail = extended(incident, transition, actor=actor, now=now)
    after = before.replace(
        **changes,
        phase=transition.to,
        reason=transition.reason,
        message=fit(transition.message, MESSAGE),
        observed_generation=incident.metadata.generation,
        conditions=updated(before.conditions, conditions, incident.metadata.generation, now),
        trail=trail,
        head=trail[-1].hash if trail else None,
    )
    if transition.to is Phase.AWAITING_APPROVAL and len(canonical(after.dump())) > bounds.STATUS_BYTES:
        raise NeedsPerson(
            f"the status would exceed {bounds.STATUS_BYTES} bytes; fewer alerts or less evidence are needed",
            reason=Reason.STATUS_TOO_LARGE,
        )
    return after


def entered(before: IncidentStatus, phase: Phase, now: datetime) -> dict[str, Any]:
    """What entering a phase sets."""
    return {
        "phase_times": {**before.phase_times, phase: rfc3339(now)},
        "waiting_since": rfc3339(now) if phase is Phase.AWAITING_APPROVAL else None,
        "attempts": None,
    }


def extended(incident: Incident, transition: Transition, *, actor: str, now: datetime) -> list[TrailEntry]:
    """The trail with the transition's records, and with its change of phase."""
    trail = list(incident.status.trail)
    prev = trail[-1].hash if trail else genesis(incident.metadata.uid)
    for record in recorded(incident, transition):
        entry: dict[str, Any] = {
            "seq": len(trail),
            "time": rfc3339(now),
            "actor": record.actor or actor,
            "kind": record.kind,
            "phase": transition.to,
            "reason": record.reason,
            "digest": record.digest,
        }
        linked = link(prev, entry)
        trail.append(TrailEntry.model_validate(linked))
        prev = str(linked["hash"])
    return trail


def recorded(incident: Incident, transition: Transition) -> list[Record]:
    """The transition's records, and that of its change of phase: what it decides, as it will be stored."""
    records = list(transition.records)
    if transition.to is not incident.status.phase:
        known = IncidentStatus(**dict(transition.changes)).dump()
        decides = fields_record(known, fields_of(transition.to, transition.reason))
        records.append(Record(EntryKind.PHASE_CHANGED, transition.reason, document=decides))
    return records


def updated(
    conditions: Sequence[Condition], updates: Sequence[ConditionUpdate], generation: int, now: datetime
) -> list[Condition]:
    """The conditions with the updates made: in a stable order, the time moved only when the status changes."""
    by_type = {condition.type: condition for condition in conditions}
    for update in updates:
        if update.status is None:
            by_type.pop(update.type, None)
            continue
        status = "True" if update.status else "False"
        former = by_type.get(update.type)
        by_type[update.type] = Condition(
            type=update.type,
            status=status,
            reason=update.reason,
            message=fit(update.message, MESSAGE),
            last_transition_time=former.last_transition_time if former and former.status == status else rfc3339(now),
            observed_generation=generation,
        )
    return sorted(by_type.values(), key=lambda condition: condition.type)


def fence(incident: Incident, *, versioned: bool) -> list[dict[str, Any]]:
    """The tests of the patch: this very object, still in this phase, with this trail; `versioned`: wholly unchanged.

    A resourceVersion alone would refuse a write whenever the gateway merges an alert; phase and head are what a second
    writer changes.
    """
    status = incident.status
    tests: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": incident.metadata.uid},
        {"op": "test", "path": "/status/phase", "value": status.phase},
    ]
    if status.head is None:
        tests.append({"op": "test", "path": "/status/trail", "value": []})
    else:
        tests.append({"op": "test", "path": "/status/head", "value": status.head})
    if versioned:
        tests.append({"op": "test", "path": "/metadata/resourceVersion", "value": incident.metadata.resource_version})
    return tests


def difference(before: IncidentStatus, after: IncidentStatus) -> list[dict[str, Any]]:
    """The operations that turn one status into the other; the trail is only ever appended to."""
    old, new = before.dump(), after.dump()
    operations: list[dict[str, Any]] = []
    for name in sorted(old.keys() | new.keys()):
        path = f"/status/{name}"
        if name == "trail":
            appended = new[name][len(old.get(name, [])) :]
            operations += [{"op": "add", "path": f"{path}/-", "value": entry} for entry in appended]
        elif name not in new:
            operations.append({"op": "remove", "path": path})
        elif old.get(name) != new[name]:
            operations.append({"op": "add", "path": path, "value": new[name]})
    return operations
