"""The Function Compute emulator as a witness, and what must hold of an incident after its life in a storm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from praxis.api.incident import Incident, Result
from praxis.cli.verification import verify
from praxis.controlplane import ControlPlane
from praxis.demo.function_compute import Emulator, Seed
from praxis.demo.function_compute.signature import Request
from praxis.kube import path_of
from praxis.machine import TERMINAL, Phase
from praxis.recorder.contract import Record

Document = dict[str, Any]


@dataclass(frozen=True)
class Dispatch:
    """A request that arrived, with what the incident said of its intent at that moment, by a consistent read."""

    marker: str
    intended: bool
    concluded: bool
    phase: str


class Witness(Emulator):
    """Functions are named as the incidents that act on them; it asks the API server itself, not through the storm."""

    def __init__(self, seed: Seed, *, plane: ControlPlane, namespace: str) -> None:
        super().__init__(seed)
        self._plane = plane
        self._namespace = namespace
        self.seen: dict[str, list[Dispatch]] = {}

    def _record(self, operation: str, function: str, request: Request) -> int:
        number = super()._record(operation, function, request)
        arrival = self._arrivals[number]
        if arrival.mutating:
            self.seen.setdefault(function, []).append(self._look(function, str(arrival.marker)))
        return number

    def _look(self, function: str, marker: str) -> Dispatch:
        incident = self._plane.request("GET", path_of(Incident, self._namespace, function))
        steps = [each for each in incident["status"].get("steps", []) if each.get("intent", {}).get("id") == marker]
        return Dispatch(marker, bool(steps), any("outcome" in each for each in steps), incident["status"]["phase"])

    def applied(self, function: str) -> set[str]:
        """The markers that took effect."""
        return {str(each.marker) for each in self.dispatches(function) if each.applied}


def violations(
    document: Document, witness: Witness, *, statements: Sequence[Mapping[str, Any]], records: Sequence[Record]
) -> Iterator[str]:
    """Every property that does not hold, in words."""
    incident = Incident.parse(document)
    name = incident.metadata.name
    yield from _dispatches(incident, witness.seen.get(name, []))
    yield from _outcomes(incident, witness.applied(name))
    if incident.status.phase not in TERMINAL:
        yield f"lost in {incident.status.phase}: {incident.status.reason} {incident.status.message}"
    if incident.status.open_step is not None:
        yield "an intent without an outcome"
    yield from verify(document, [dict(each) for each in statements], records).problems


def _dispatches(incident: Incident, seen: Sequence[Dispatch]) -> Iterator[str]:
    """At most one for each action of an approved revision, its intent stored before, none after its outcome."""
    for step in incident.status.steps:
        sent = [each for each in seen if step.intent is not None and each.marker == step.intent.id]
        if len(sent) > 1:
            yield f"{len(sent)} dispatches of {step.action} of revision {step.revision}"
    intents = {step.intent.id for step in incident.status.steps if step.intent is not None}
    for each in seen:
        if not each.intended or each.marker not in intents:
            yield f"dispatch {each.marker} without a stored intent"
        if each.concluded:
            yield f"dispatch {each.marker} after its outcome"
        if each.phase != Phase.EXECUTING:
            yield f"dispatch {each.marker} when the incident was in {each.phase}"


def _outcomes(incident: Incident, applied: set[str]) -> Iterator[str]:
    """Applied only with proof and if it was, by the service's own account; NotApplied only if it was not."""
    for step in incident.status.steps:
        if step.intent is None or step.outcome is None:
            continue
        if step.outcome.result is Result.APPLIED and not (step.outcome.proof and step.intent.id in applied):
            yield f"Applied, with the proof {step.outcome.proof!r}; the service applied {sorted(applied)}"
        if step.outcome.result is Result.NOT_APPLIED and step.intent.id in applied:
            yield f"NotApplied ({step.outcome.reason}), but the service applied it"
