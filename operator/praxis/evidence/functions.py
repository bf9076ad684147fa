"""What the service says of a declared function: its state, its last update, the names in its environment, instances.

Only fields that are named here are shown, whatever the reader gives: values of the environment never leave it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from praxis.api.target import RemediationTarget
from praxis.clock import Clock
from praxis.errors import Refused
from praxis.evidence.arguments import FunctionStatus
from praxis.evidence.contract import FunctionReader, Scope
from praxis.evidence.observation import Seen, one_line

FIELDS: Final = (
    "state",
    "stateReason",
    "lastUpdateStatus",
    "lastUpdateStatusReason",
    "lastModifiedTime",
)
"""Fields of the function that are shown, in this order, under the service's own names."""
INSTANCES: Final = 64
"""Instances that are shown, the oldest first."""
NAMES: Final = 64
"""Names of environment variables that are shown."""


async def status(reader: FunctionReader, clock: Clock, scope: Scope, asked: FunctionStatus) -> Seen:
    """The state of a target's function; raises what the reader raises, and Refused where no such target is declared."""
    target = _target(scope, asked.target)
    known = await asyncio.to_thread(reader.describe, target)
    function = target.spec.function_compute
    instances = sorted(known.get("instances") or [], key=lambda each: (_created(each), str(each.get("id"))))
    names = sorted(one_line(each) for each in known.get("environmentNames") or ())
    complete = known.get("allInstancesListed", True)
    lines = [
        f"function {function.function} in {function.region}, qualifier {function.qualifier}",
        *(f"{field}: {one_line(known[field])}" for field in FIELDS if known.get(field) not in (None, "")),
        f"environment names: {', '.join(names[:NAMES]) or 'none'}",
        f"active instances: {len(instances)}{'' if complete else ' or more'}",
        *(_instance(each, clock.now()) for each in instances[:INSTANCES]),
    ]
    return Seen("\n".join(lines), partial=not complete or len(instances) > INSTANCES or len(names) > NAMES)


def _target(scope: Scope, name: str | None) -> RemediationTarget:
    declared = {each.metadata.name: each for each in scope.targets if each.metadata.namespace == scope.namespace}
    if name is None and len(declared) == 1:
        return next(iter(declared.values()))
    if name is None or name not in declared:
        choice = ", ".join(sorted(declared)) or "none"
        raise Refused(f"name one of the incident's targets: {choice}", status=404)
    return declared[name]


def _created(instance: Mapping[str, Any]) -> int:
    created = instance.get("created")
    return created if isinstance(created, int) else 0


def _instance(instance: Mapping[str, Any], now: datetime) -> str:
    created = datetime.fromtimestamp(_created(instance) / 1000, UTC)
    age = int((now - created).total_seconds())
    return f"  {one_line(instance.get('id'))} created {created:%Y-%m-%dT%H:%M:%SZ} age {age}s"
