"""What the writer's entries bind can be recomputed from what is stored, and from nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from praxis.api.incident import Usage
from praxis.api.plan import plan_digest
from praxis.api.reasons import Reason
from praxis.api.records import (
    bound_approval,
    evidence_digest_of,
    fields_digest,
    fields_of,
    plan_digest_of,
    statement_digest,
)
from praxis.approval.judgement import bind
from praxis.controller.status import applied
from praxis.digest import digest
from praxis.machine import Phase
from praxis.phases.contract import Transition
from praxis.phases.triaged import evidence_digest
from tests import builders

NOW = builders.NOW + timedelta(hours=1)


def bound(source: Phase, to: Phase, reason: Reason, changes: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The digest of the entry that a change of phase leaves, and the status that is stored with it."""
    transition = Transition(to=to, reason=reason, message="", changes=changes)
    status = applied(builders.incident(source), transition, actor="operator", now=NOW)
    return status.trail[-1].digest, status.dump()


@pytest.mark.parametrize("usage", [Usage(model_calls=1), Usage(model_calls=9)])
def test_a_classification_is_bound_and_usage_is_not(usage: Usage) -> None:
    """Usage grows later; the entry's digest must still be computable then."""
    classification = builders.incident(Phase.TRIAGED).status.classification
    assert classification is not None
    changes = {"classification": classification, "usage": usage}
    binds, stored = bound(Phase.NEW, Phase.TRIAGED, Reason.CLASSIFIED, changes)
    assert binds == digest({"classification": classification.dump()})
    assert stored["classification"] == classification.dump()


def test_a_diagnosis_is_bound_with_the_digest_of_its_evidence() -> None:
    """Target, memories, diagnosis and evidence digest; evidence by its digest only, so the record stays small."""
    status = builders.incident(Phase.INVESTIGATED).status
    changes = {
        name: getattr(status, name) for name in ("target", "recalled", "evidence", "evidence_digest", "diagnosis")
    }
    binds, stored = bound(Phase.TRIAGED, Phase.INVESTIGATED, Reason.DIAGNOSED, changes)
    assert binds == digest({name: stored[name] for name in ("target", "recalled", "evidenceDigest", "diagnosis")})


def test_an_approval_and_corrections_are_bound() -> None:
    """What Executing is entered on, and what another plan must heed."""
    waiting = builders.incident()
    given = [builders.bound(builders.approval(of=waiting))]
    binds, _ = bound(Phase.AWAITING_APPROVAL, Phase.EXECUTING, Reason.APPROVED, {"approvals": given})
    assert binds == digest({"approvals": [given[0].dump()]})
    binds, _ = bound(Phase.AWAITING_APPROVAL, Phase.INVESTIGATED, Reason.REJECTED, {"corrections": ["scale first"]})
    assert binds == digest({"corrections": ["scale first"]})


def test_a_change_that_decides_nothing_binds_nothing() -> None:
    """No digest rather than the digest of an empty document."""
    assert bound(Phase.NEW, Phase.FAILED, Reason.ATTEMPTS_EXHAUSTED, {"usage": Usage(model_calls=3)})[0] == ""
    assert bound(Phase.EXECUTING, Phase.INVESTIGATED, Reason.NOT_APPLIED, {})[0] == ""


def test_absent_null_and_empty_are_the_same() -> None:
    """Whoever printed the document may have dropped an empty list or written null."""
    fields = fields_of(Phase.INVESTIGATED, Reason.DIAGNOSED)
    full = {"target": "checkout-fn", "evidenceDigest": "sha256:e"}
    assert fields_digest(full, fields) == fields_digest({**full, "recalled": [], "diagnosis": None}, fields)
    assert fields_digest({"recalled": []}, fields) == ""


def test_records_from_documents_are_those_of_the_models() -> None:
    """The verifier reads documents, the operator models: one digest."""
    on = builders.incident()
    plan = on.status.plan
    assert plan is not None
    assert plan_digest_of(plan.dump(), incident_uid=on.metadata.uid) == plan.digest
    assert plan.digest == plan_digest(
        incident_uid=on.metadata.uid,
        revision=plan.revision,
        actions=plan.actions,
        evidence_digest=plan.evidence_digest,
    )
    assert evidence_digest_of(on.dump()["status"]["evidence"]) == evidence_digest(on.status.evidence)
    given = builders.approval(of=on)
    assert statement_digest(given.dump()) == given.record_digest
    assert bound_approval(given.dump()) == bind(given).dump()
    finding = builders.reconciliation()
    assert statement_digest(finding.dump()) == finding.record_digest
