"""What each trail entry binds: one place for who writes entries, for who records, and for who verifies them.

One rule: **an entry's `digest` is the digest of its record**, a document that the flight recorder keeps under that very
digest. A record is built from documents as they are stored (wire names), and what is too large or too private to the
model for status is in it by digest, and a record of its own:

    entry                            its record                                       names by digest
    PhaseChanged  to Triaged         classification                                   run
                  to Investigated    target, recalled, evidenceDigest, diagnosis      run, evidence
                    (other reasons)  corrections, when there are new ones
                  to AwaitingApproval  plan, guards, approvalsRequired                run, evidence
                  to Executing       approvals
                  to other phases    none: an empty digest
    Decided                          the IncidentApproval: its uid and spec
    IntentRecorded                   the step as it was then, that is without its outcome
    OutcomeRecorded                  the step
    Reconciled                       the IncidentReconciliation: its uid and spec

So a verifier who holds nothing but an Incident's YAML recomputes what the newest decisions rest on, all corrections,
steps and evidence, and the approvals in status. Only the recorder has: every model run, the plans and approvals that
were replaced, and people's statements where their objects are gone. What it has not is absent, by its digest.

What people approve is not this: it is the plan's own digest (`praxis.api.plan.plan_digest`), a part of the record.

What is absent, null or empty is left out of a record: the three are the same, whoever stored or printed the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from praxis.api.reasons import Reason
from praxis.digest import digest
from praxis.machine import Phase

CLASSIFICATION = ("classification",)
DIAGNOSIS = ("target", "recalled", "evidenceDigest", "diagnosis")
"""The evidence itself is bound by its digest."""
CORRECTIONS = ("corrections",)
PLAN = ("plan", "guards", "approvalsRequired")
APPROVALS = ("approvals",)
RUN = "run"
"""Where a classification, a diagnosis or a plan names the model run that made it."""


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
        case Phase.AWAITING_APPROVAL:
            return PLAN
        case Phase.EXECUTING:
            return APPROVALS
        case _:
            return ()


def fields_record(status: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """The record of these fields of a status; empty when it has none of them."""
    return {name: status[name] for name in fields if status.get(name)}


def fields_digest(status: Mapping[str, Any], fields: Sequence[str]) -> str:
    """The digest of that record; empty when there is none. Raises ValueError as `digest` does."""
    record = fields_record(status, fields)
    return digest(record) if record else ""


def named_in(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a stored record names by digest: the kind of what is named, in words, and its digest."""
    for name in ("classification", "diagnosis", "plan"):
        made = record.get(name)
        if not isinstance(made, Mapping):
            continue
        if isinstance(made.get(RUN), str):
            yield f"model run of the {name}", made[RUN]
        if isinstance(made.get("evidenceDigest"), str):
            yield "evidence", made["evidenceDigest"]
    if isinstance(record.get("evidenceDigest"), str):
        yield "evidence", record["evidenceDigest"]


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


def statement_record(document: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a stored IncidentApproval or IncidentReconciliation."""
    return {"uid": (document.get("metadata") or {}).get("uid"), "spec": document.get("spec")}


def statement_digest(document: Mapping[str, Any]) -> str:
    """The digest of that record. Raises ValueError."""
    return digest(statement_record(document))


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
