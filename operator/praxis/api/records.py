"""What each trail entry binds: one place for who writes entries and for who verifies them.

A record is built from documents as they are stored (wire names), so that a verifier who holds nothing but an Incident's
YAML computes the very digests that the operator wrote. What is absent, null or empty is left out: the three are the
same, whoever stored or printed the document.

    PhaseChanged     to AwaitingApproval the plan's digest, else the fields of `fields_of`; nothing: the empty digest
    Decided          the IncidentApproval: its uid and spec
    IntentRecorded   the step as it was then, that is without its outcome
    OutcomeRecorded  the step
    Reconciled       the IncidentReconciliation: its uid and spec
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from praxis.api.reasons import Reason
from praxis.digest import digest
from praxis.machine import Phase

CLASSIFICATION = ("classification",)
DIAGNOSIS = ("target", "recalled", "evidenceDigest", "diagnosis")
"""The evidence itself is bound by its digest."""
CORRECTIONS = ("corrections",)
APPROVALS = ("approvals",)


def fields_of(phase: str, reason: str) -> tuple[str, ...]:
    """The fields of status that a change to this phase, for this reason, decides, and its entry binds.

    Only what nobody changes until the same decision is made again: `usage` grows with every answer of a model, so a
    digest over it could never be recomputed.
    """
    match phase:
        case Phase.TRIAGED:
            return CLASSIFICATION
        case Phase.INVESTIGATED:
            return DIAGNOSIS if reason == Reason.DIAGNOSED else CORRECTIONS
        case Phase.EXECUTING:
            return APPROVALS
        case _:
            return ()


def fields_digest(status: Mapping[str, Any], fields: Sequence[str]) -> str:
    """The digest of these fields of a status; empty when it has none of them. Raises ValueError as `digest` does."""
    record = {name: status[name] for name in fields if status.get(name)}
    return digest(record) if record else ""


def plan_digest_of(plan: Mapping[str, Any], *, incident_uid: str) -> str:
    """The digest of a stored plan, as `praxis.api.plan.plan_digest` makes it. Raises ValueError."""
    return digest(
        {
            "incidentUid": incident_uid,
            "revision": plan.get("revision"),
            "actions": plan.get("actions"),
            "evidenceDigest": plan.get("evidenceDigest"),
        }
    )


def evidence_digest_of(evidence: Sequence[Any]) -> str:
    """The digest of all stored evidence. Raises ValueError."""
    return digest(list(evidence))


def intent_digest(step: Mapping[str, Any]) -> str:
    """The digest of a stored step as it was when its intent was written. Raises ValueError."""
    return digest({name: value for name, value in step.items() if name != "outcome"})


def outcome_digest(step: Mapping[str, Any]) -> str:
    """The digest of a stored step with its outcome. Raises ValueError."""
    return digest(step)


def statement_digest(document: Mapping[str, Any]) -> str:
    """The digest of a stored IncidentApproval or IncidentReconciliation. Raises ValueError."""
    return digest({"uid": (document.get("metadata") or {}).get("uid"), "spec": document.get("spec")})


def bound_approval(document: Mapping[str, Any]) -> dict[str, Any]:
    """An IncidentApproval as it is copied into an incident's status. Raises KeyError, TypeError: it is none."""
    spec = document["spec"]
    return {
        "uid": document["metadata"]["uid"],
        "name": document["metadata"]["name"],
        "approver": spec["approver"]["username"],
        "planDigest": spec["planDigest"],
        "expiresAt": spec["expiresAt"],
    }
