"""Whether an incident's status is what its trail records.

The API server holds that with every write. Who writes past it, in etcd or with the rules gone, is found here, before
anything rests on what they wrote. Such an incident stands still and is to be deleted. Only a request that may have left
goes on, to its Unknown and to a person: nobody may delete it, and standing still it would keep its target for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from praxis.api.incident import EntryKind, Incident, Result
from praxis.api.records import APPROVALS, PLAN, fields_digest, intent_digest, outcome_digest
from praxis.clock import parse_rfc3339
from praxis.digest import chain_fault
from praxis.errors import NeedsPerson
from praxis.machine import Phase
from praxis.phases.contract import Transition

FORWARD = frozenset({Phase.EXECUTING, Phase.OBSERVING, Phase.RESOLVED})
INVESTIGATED = frozenset({Phase.INVESTIGATED, Phase.AWAITING_APPROVAL, Phase.EXECUTING, Phase.OBSERVING})
PLANNED = INVESTIGATED - {Phase.INVESTIGATED}
SETTLING = frozenset({Phase.EXECUTING, Phase.RECONCILIATION_REQUIRED})


def examine(incident: Incident) -> None:
    """Make sure that the incident has what its phase cannot have been entered without.

    Raises:
        NeedsPerson: it has not: its status was changed.
    """
    if not _unsettled(incident):
        _refuse(incident, next(_lacking(incident), None))


def permit(incident: Incident, decision: Transition) -> None:
    """Make sure that a decision that takes the incident nearer to success rests on what was recorded: another phase on
    the way there, a send, an Applied.

    Raises:
        NeedsPerson: it does not: the status was changed.
    """
    outcomes = [each.outcome for each in decision.changes.get("steps", ()) if each.outcome is not None]
    onward = decision.to in FORWARD and decision.to is not incident.status.phase
    if not onward and decision.then is None and all(each.result is not Result.APPLIED for each in outcomes):
        return
    _refuse(incident, fault_of(incident))


def fault_of(incident: Incident) -> str | None:
    """What of the status is not what its trail records, if anything."""
    try:
        return next(chain(_lacking(incident), _unrecorded(incident)), None)
    except ValueError as error:
        return f"it cannot be hashed: {error}"


def _unsettled(incident: Incident) -> bool:
    """Whether a request of it may have left, in a phase that leads to a person who finds out."""
    return incident.status.phase in SETTLING and any(
        step.open or (step.outcome is not None and step.outcome.result is Result.UNKNOWN)
        for step in incident.status.steps
    )


def _refuse(incident: Incident, fault: str | None) -> None:
    if fault is None:
        return
    remedy = "compare it with an exported trail, then delete the incident"
    if incident.status.open_step is not None:
        # Of another phase than Executing: no rule lets it come to ReconciliationRequired.
        remedy = (
            "an intent is open, so look at the function first; deleting the incident takes the break-glass, and its "
            "target stays held until a person's `praxis reconcile`"
        )
    raise NeedsPerson(
        f"the stored status is not what its trail records: {fault}. Somebody wrote past the API server's rules; "
        f"{remedy}"
    )


def _lacking(incident: Incident) -> Iterator[str]:
    """What the phase cannot have been entered without."""
    status = incident.status
    if status.phase in INVESTIGATED and status.evidence_digest is None:
        yield "there is no digest of the evidence"
    if status.phase in PLANNED and status.plan is None:
        yield "there is no plan"
    if status.phase is not Phase.NEW and not _is_time(status.phase_times.get(status.phase)):
        yield f"there is no time at which it entered {status.phase}"
    if status.plan is not None:
        known = {action.id for action in status.plan.actions}
        for step in status.steps_of(status.plan.revision):
            if step.action not in known:
                yield f"the plan has no action {step.action}, of which there is a step"
    if status.open_step is not None and (status.plan is None or status.open_step.revision != status.plan.revision):
        yield f"the open intent is of plan {status.open_step.revision}, which is not there"


def _unrecorded(incident: Incident) -> Iterator[str]:
    """What differs from the record of it: the chain itself, plan, approvals, intents and outcomes."""
    status = incident.status.dump()
    trail: list[dict[str, Any]] = status.get("trail", [])
    if broken := chain_fault(incident.metadata.uid, trail):
        yield f"trail entry {broken[0]}: {broken[1]}"
    last = trail[-1] if trail else {"phase": Phase.NEW}
    if (last.get("hash"), last["phase"]) != (status.get("head"), status["phase"]):
        yield "phase and head are not those of the last trail entry"
    steps = status.get("steps", [])
    for kind, part, digest_of in (
        (EntryKind.INTENT_RECORDED, "intent", intent_digest),
        (EntryKind.OUTCOME_RECORDED, "outcome", outcome_digest),
    ):
        # Both ways: a step that is gone would be taken for one that never was, and sent again.
        if {digest_of(each) for each in steps if part in each} != {e.get("digest") for e in trail if e["kind"] == kind}:
            yield f"the steps' {part}s are not the recorded ones"
    for phase, fields in ((Phase.AWAITING_APPROVAL, PLAN), (Phase.EXECUTING, APPROVALS)):
        entered = [each for each in trail if (each["kind"], each["phase"]) == (EntryKind.PHASE_CHANGED, phase)]
        held = fields_digest(status, fields)
        if held and (not entered or entered[-1].get("digest") != held):
            yield f"its {', '.join(fields)} are not the recorded ones"


def _is_time(text: str | None) -> bool:
    try:
        parse_rfc3339(text or "")
    except ValueError:
        return False
    return True
