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
from praxis.clock import rfc3339
from praxis.controller.status import applied
from praxis.digest import digest
from praxis.machine import Phase
from praxis.phases.contract import Record, Transition
from praxis.phases.decisions import another_plan, decided
from praxis.phases.executing import stopped
from praxis.phases.outcome import replaced
from tests import builders

ACCEPTED = VerdictStatus(verdict=Verdict.ACCEPTED, reason="Accepted", message="")


@dataclass
class Life:
    """The incident as it stands, and what people said."""

    incident: Incident = field(default_factory=lambda: builders.incident(Phase.NEW))
    said: list[Resource] = field(default_factory=list)

    def take(self, transition: Transition) -> None:
        at = builders.NOW + timedelta(seconds=10 * (len(self.incident.status.trail) + 1))
        status = applied(self.incident, transition, actor=builders.OPERATOR, now=at)
        self.incident = self.incident.replace(status=status)

    def documents(self) -> list[dict[str, Any]]:
        """What an export holds."""
        objects: Sequence[Resource] = [self.incident, *self.said]
        return [{"apiVersion": API_VERSION, "kind": type(each).kind, **each.dump()} for each in objects]


def eventful() -> Life:
    """The whole life; 18 entries."""
    life = Life()
    diagnosed = builders.incident(Phase.INVESTIGATED).status
    names = ("target", "recalled", "evidence", "evidence_digest", "diagnosis")
    life.take(_to(Phase.TRIAGED, Reason.CLASSIFIED, classification=diagnosed.classification))
    life.take(_to(Phase.INVESTIGATED, Reason.DIAGNOSED, **{name: getattr(diagnosed, name) for name in names}))
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
    record = Record(EntryKind.RECONCILED, Reason.RECONCILED, actor="dave", digest=finding.record_digest)
    life.take(Transition(to=Phase.RECONCILIATION_REQUIRED, reason=Reason.RECONCILED, message="", records=[record]))
    return life


def propose(life: Life, revision: int) -> None:
    drafted = builders.plan(revision=revision)
    life.take(
        Transition(
            to=Phase.AWAITING_APPROVAL,
            reason=Reason.PLAN_PROPOSED,
            message="",
            changes={"plan": drafted, "approvals_required": 1},
            binds=drafted.digest,
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
            records=[Record(EntryKind.INTENT_RECORDED, Reason.INTENT_RECORDED, digest=digest(step.dump()))],
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
