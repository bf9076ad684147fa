"""An eventful life, written by the operator's own writer: three plans, one of them rejected, an action that was not
applied, one whose outcome stays unknown, and a person's finding on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from praxis.api.approval import Decision, IncidentApproval, Verdict, VerdictStatus
from praxis.api.base import API_VERSION, Resource
from praxis.api.incident import Baseline, EntryKind, Incident, Instance, Intent, Outcome, Result, Step
from praxis.api.reasons import Reason
from praxis.api.records import statement_record
from praxis.clock import rfc3339
from praxis.controller.status import applied, recorded
from praxis.machine import Phase
from praxis.phases.contract import Record, Transition
from praxis.phases.decisions import another_plan, decided
from praxis.phases.executing import stopped
from praxis.phases.outcome import replaced
from praxis.recorder.contract import Record as KeptRecord
from tests import builders

ACCEPTED = VerdictStatus(verdict=Verdict.ACCEPTED, reason="Accepted", message="")


@dataclass
class Life:
    """The incident as it stands, and what people said."""

    incident: Incident = field(default_factory=lambda: builders.incident(Phase.NEW))
    said: list[Resource] = field(default_factory=list)
    records: list[KeptRecord] = field(default_factory=list)

    def keep(self, kind: str, document: Any) -> str:
        """Record a document, as the operator does; its digest."""
        record = KeptRecord.of(self.incident.metadata.uid, kind, document)
        self.records.append(record)
        return record.digest

    def run(self, operation: str) -> str:
        """Record a model run; its digest."""
        asked = {"role": "user", "content": f"{operation} {len(self.records)}"}
        return self.keep("ModelRun", {"operation": operation, "messages": [asked], "exchanges": []})

    def take(self, transition: Transition) -> None:
        at = builders.NOW + timedelta(seconds=10 * (len(self.incident.status.trail) + 1))
        status = applied(self.incident, transition, actor=builders.OPERATOR, now=at)
        for each in recorded(self.incident, transition):
            if each.document:
                assert self.keep(each.kind, dict(each.document)) == each.digest
        self.incident = self.incident.replace(status=status)

    def exported(self) -> list[dict[str, Any]]:
        """What an export holds, with all records."""
        return [*self.documents(), *(each.exported() for each in self.records)]

    def documents(self) -> list[dict[str, Any]]:
        """The incident, and what people said."""
        objects: Sequence[Resource] = [self.incident, *self.said]
        return [{"apiVersion": API_VERSION, "kind": type(each).kind, **each.dump()} for each in objects]


def eventful() -> Life:
    """The whole life; 18 entries."""
    life = Life()
    diagnosed = builders.incident(Phase.INVESTIGATED).status
    assert diagnosed.classification is not None
    assert diagnosed.diagnosis is not None
    classification = diagnosed.classification.replace(run=life.run("classify"))
    life.take(_to(Phase.TRIAGED, Reason.CLASSIFIED, classification=classification))
    names = ("target", "recalled", "evidence", "evidence_digest")
    found = {name: getattr(diagnosed, name) for name in names}
    assert life.keep("Evidence", [each.dump() for each in diagnosed.evidence]) == diagnosed.evidence_digest
    diagnosis = diagnosed.diagnosis.replace(run=life.run("diagnose"))
    life.take(_to(Phase.INVESTIGATED, Reason.DIAGNOSED, **found, diagnosis=diagnosis))
    propose(life, 1)
    approve(life, "alice")
    act(life, "intent-00000001", Result.NOT_APPLIED)
    propose(life, 2)
    rejected = say(life, "bob", Decision.REJECT)
    life.take(another_plan(life.incident, rejected, Reason.REJECTED))
    propose(life, 3)
    approve(life, "carol")
    act(life, "intent-00000002", Result.UNKNOWN)
    finding = builders.reconciliation("dave", of=life.incident, intent_id="intent-00000002", status=ACCEPTED)
    life.said.append(finding)
    record = Record(EntryKind.RECONCILED, Reason.RECONCILED, actor="dave", document=statement_record(finding.dump()))
    life.take(Transition(to=Phase.RECONCILIATION_REQUIRED, reason=Reason.RECONCILED, message="", records=[record]))
    return life


def propose(life: Life, revision: int) -> None:
    drafted = builders.plan(revision=revision, run=life.run("draft"))
    life.take(
        Transition(
            to=Phase.AWAITING_APPROVAL,
            reason=Reason.PLAN_PROPOSED,
            message="",
            changes={"plan": drafted, "approvals_required": 1},
        )
    )


def say(life: Life, who: str, decision: Decision) -> IncidentApproval:
    name = f"{decision.value.lower()}-{who}"
    said = builders.approval(who, of=life.incident, decision=decision, name=name, status=ACCEPTED)
    life.said.append(said)
    return said


def approve(life: Life, who: str) -> None:
    given = say(life, who, Decision.APPROVE)
    record = decided(given, Reason.APPROVED)
    life.take(
        Transition(
            to=Phase.EXECUTING,
            reason=Reason.APPROVED,
            message="",
            changes={"approvals": [builders.bound(given)], "waiting_since": None},
            records=[record],
        )
    )


def act(life: Life, intent_id: str, result: Result) -> None:
    """Intent, outcome, and where that leads."""
    plan = life.incident.status.plan
    assert plan is not None
    baseline = Baseline(state=builders.STATE, instances=[Instance(id="i-old", created=1769860000000)])
    intent = Intent(id=intent_id, writer=builders.WRITER, time=rfc3339(builders.NOW), baseline=baseline)
    step = Step(revision=plan.revision, action=plan.actions[0].id, intent=intent)
    life.take(
        Transition(
            to=Phase.EXECUTING,
            reason=Reason.INTENT_RECORDED,
            message="",
            changes={"steps": [*life.incident.status.steps, step]},
            records=[Record(EntryKind.INTENT_RECORDED, Reason.INTENT_RECORDED, document=step.dump())],
        )
    )
    reason = Reason.NOT_PROVEN if result is Result.UNKNOWN else Reason.REJECTED_BY_SERVICE
    outcome = Outcome(result=result, reason=reason, writer=builders.WRITER, time=rfc3339(builders.NOW))
    life.take(replaced(life.incident, step.replace(outcome=outcome)))
    done = {each.action: each for each in life.incident.status.steps_of(plan.revision)}
    following = stopped(done, {result})
    assert following is not None
    life.take(following)


def _to(phase: Phase, reason: Reason, **changes: Any) -> Transition:
    return Transition(to=phase, reason=reason, message="", changes=changes)
