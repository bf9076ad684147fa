"""What must hold after every run, said of what is stored, of what the service received, and of who holds the target."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from praxis.actions.catalogue import MARKER
from praxis.api.incident import Incident, Result, Step
from praxis.api.target import RemediationTarget
from praxis.digest import first_broken
from praxis.machine import Phase
from tests.chaos.replica import is_stalled
from tests.chaos.run import Ended

PLACES = frozenset({Phase.OBSERVING, Phase.INVESTIGATED, Phase.RECONCILIATION_REQUIRED})


@dataclass(frozen=True)
class Facts:
    """Everything that is known after a run. `function` is the witness' description."""

    incident: Incident
    target: RemediationTarget
    function: dict[str, Any]
    ended: Ended

    @property
    def dispatches(self) -> list[dict[str, Any]]:
        """What the service received, with what the incident said at that moment."""
        found: list[dict[str, Any]] = self.function["dispatches"]
        return found

    @property
    def real(self) -> Step | None:
        """The step of the one real action."""
        return next((each for each in self.incident.status.steps if each.intent is not None), None)

    @property
    def foreign_claim(self) -> bool:
        """Whether the target is held under a claim that never became an intent."""
        holder, step = self.target.status.holder, self.real
        return (
            holder is not None and step is not None and step.intent is not None and holder.intent_id != step.intent.id
        )

    @property
    def place(self) -> str:
        """Where the incident ended, for the table."""
        phase = self.incident.status.phase
        if phase is not Phase.EXECUTING:
            return str(phase)
        return "Stalled" if is_stalled(self.incident) else "Executing"


def violations(facts: Facts) -> list[str]:
    """Every property that does not hold, in words."""
    return [*facts.ended.faults, *_dispatches(facts), *_outcome(facts), *_place(facts), *_holder(facts)]


def _dispatches(facts: Facts) -> Iterator[str]:
    """At most one for each action of an approved revision, its intent stored before, and none after its outcome."""
    if len(facts.dispatches) > 1:
        yield f"{len(facts.dispatches)} dispatches of one action"
    for each in facts.dispatches:
        if not each["intended"]:
            yield f"dispatch {each['marker']} arrived without a stored intent"
        if each["concluded"]:
            yield f"dispatch {each['marker']} arrived after its outcome {each['concluded'][0]} was stored"
        if each["phase"] != Phase.EXECUTING:
            yield f"dispatch {each['marker']} arrived when the incident was in {each['phase']}"
    intents = {each.intent.id for each in facts.incident.status.steps if each.intent is not None}
    if unknown := {each["marker"] for each in facts.dispatches} - intents:
        yield f"dispatches without an intent in the end: {sorted(unknown)}"


def _outcome(facts: Facts) -> Iterator[str]:
    """Applied only if it was, by the service's own account; NotApplied only if it was not."""
    step = facts.real
    if step is None or step.intent is None or step.outcome is None:
        return
    received = [each for each in facts.dispatches if each["marker"] == step.intent.id]
    match step.outcome.result:
        case Result.APPLIED:
            if not step.outcome.proof:
                yield "Applied without a proof"
            if not any(each["applied"] for each in received):
                yield "Applied, but the service applied nothing"
            if facts.function["environmentVariables"].get(MARKER) != step.intent.id:
                yield "Applied, but the function does not carry the marker"
            before = {each.id for each in step.intent.baseline.instances}
            for each in facts.function["running"]:
                if each["id"] in before or each["environment"].get(MARKER) != step.intent.id:
                    yield f"Applied, but instance {each['id']} is not new"
        case Result.NOT_APPLIED:
            if any(each["applied"] for each in received):
                yield f"NotApplied ({step.outcome.reason}), but the service applied it"
            if step.outcome.reason == "NeverSent" and received:
                yield "NeverSent, but the service received it"


def _place(facts: Facts) -> Iterator[str]:
    """The phase that the outcome leads to, an unbroken trail, and nothing that waits in silence."""
    incident = facts.incident
    phase = incident.status.phase
    result = facts.real.outcome.result if facts.real is not None and facts.real.outcome is not None else None
    expected = {
        Result.APPLIED: Phase.OBSERVING,
        Result.NOT_APPLIED: Phase.INVESTIGATED,
        Result.UNKNOWN: Phase.RECONCILIATION_REQUIRED,
    }
    if phase in PLACES and (result is None or expected[result] is not phase):
        yield f"in {phase} with the outcome {result} ({incident.status.reason}: {incident.status.message})"
    if phase is Phase.EXECUTING and not is_stalled(incident):
        yield "still in Executing, and not stalled"
    if phase not in PLACES | {Phase.EXECUTING}:
        yield f"ended in {phase}"
    if facts.place == "Stalled" and incident.status.open_step is not None and not facts.ended.faults:
        yield "an open intent that nobody settles"
    broken = first_broken(incident.metadata.uid, incident.status.dump()["trail"])
    if broken is not None:
        yield f"the trail is broken at {broken}"
    for each in facts.ended.replicas:
        clean = each.ended is not None and os.WIFEXITED(each.ended) and os.WEXITSTATUS(each.ended) == 0
        if clean and (each.rest is None or each.rest["rests"] == "restless"):
            yield f"replica {each.slot} never came to rest"


def _holder(facts: Facts) -> Iterator[str]:
    """Held by this incident's plan while it is observed or its outcome is unknown; free again after anything else.

    By its plan, not by its intent: of two operators that claim at once, without a lease, the later claim stands though
    the earlier one's intent was stored; others are kept away all the same.
    """
    holder, phase = facts.target.status.holder, facts.incident.status.phase
    plan = facts.incident.status.plan
    assert plan is not None
    if phase in {Phase.OBSERVING, Phase.RECONCILIATION_REQUIRED}:
        mine = (facts.incident.metadata.uid, plan.revision)
        if holder is None or (holder.incident_uid, holder.revision) != mine:
            yield f"in {phase} the target is held by {holder and holder.incident_name}"
    elif phase is Phase.INVESTIGATED and holder is not None:
        yield f"back in Investigated, but the target is still held by {holder.intent_id}"
