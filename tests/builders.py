"""Builders of PRAXIS' objects for tests: whole, valid, and literal, so that a test changes only what it is about.

Everything holds the rules that the API server holds: digests are right, the trail is linked from the incident's uid,
and `history` gives every write of a life in order, so that a test can replay it against a real API server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from praxis.api.approval import (
    Decision,
    IncidentApproval,
    IncidentApprovalSpec,
    IncidentReconciliation,
    IncidentReconciliationSpec,
    IncidentRef,
    Observed,
    Person,
    VerdictStatus,
)
from praxis.api.base import API_VERSION, ObjectMeta, Resource
from praxis.api.incident import (
    Alert,
    Authentication,
    Baseline,
    BoundApproval,
    Classification,
    EntryKind,
    Evidence,
    Guard,
    Incident,
    IncidentSpec,
    IncidentStatus,
    Instance,
    Intent,
    Outcome,
    Recalled,
    Result,
    Source,
    Step,
    TrailEntry,
    Usage,
)
from praxis.api.plan import (
    REAL,
    TIERS,
    Action,
    ActionTarget,
    ActionType,
    Claim,
    Diagnosis,
    Plan,
    highest_tier,
    plan_digest,
)
from praxis.api.records import PLAN, fields_digest, fields_of
from praxis.api.target import FunctionCompute, LabelSelector, RemediationTarget, RemediationTargetSpec
from praxis.clock import rfc3339
from praxis.digest import PREFIX, digest, genesis, link
from praxis.machine import Phase

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
NAMESPACE = "shop"
INCIDENT = "checkout-latency-1"
INCIDENT_UID = "11111111-1111-4111-8111-111111111111"
TARGET_UID = "22222222-2222-4222-8222-222222222222"
INTENT_ID = "intent-00000001"
OPERATOR = "system:serviceaccount:praxis-system:praxis-operator"
WRITER = "writer-a"
STATE = "sha256:" + "5" * 64

PATHS: Mapping[Phase, tuple[Phase, ...]] = {
    Phase.NEW: (),
    Phase.TRIAGED: (Phase.TRIAGED,),
    Phase.INVESTIGATED: (Phase.TRIAGED, Phase.INVESTIGATED),
    Phase.AWAITING_APPROVAL: (Phase.TRIAGED, Phase.INVESTIGATED, Phase.AWAITING_APPROVAL),
    Phase.EXECUTING: (Phase.TRIAGED, Phase.INVESTIGATED, Phase.AWAITING_APPROVAL, Phase.EXECUTING),
    Phase.OBSERVING: (
        Phase.TRIAGED,
        Phase.INVESTIGATED,
        Phase.AWAITING_APPROVAL,
        Phase.EXECUTING,
        Phase.OBSERVING,
    ),
    Phase.RESOLVED: (
        Phase.TRIAGED,
        Phase.INVESTIGATED,
        Phase.AWAITING_APPROVAL,
        Phase.EXECUTING,
        Phase.OBSERVING,
        Phase.RESOLVED,
    ),
    Phase.CLOSED: (Phase.TRIAGED, Phase.INVESTIGATED, Phase.AWAITING_APPROVAL, Phase.CLOSED),
    Phase.FAILED: (Phase.TRIAGED, Phase.FAILED),
    Phase.RECONCILIATION_REQUIRED: (
        Phase.TRIAGED,
        Phase.INVESTIGATED,
        Phase.AWAITING_APPROVAL,
        Phase.EXECUTING,
        Phase.RECONCILIATION_REQUIRED,
    ),
}
"""The way of a usual life into each phase, after New."""

REASONS: Mapping[Phase, str] = {
    Phase.TRIAGED: "Classified",
    Phase.INVESTIGATED: "Diagnosed",
    Phase.AWAITING_APPROVAL: "PlanProposed",
    Phase.EXECUTING: "Approved",
    Phase.OBSERVING: "ActionsDone",
    Phase.RESOLVED: "AlertCleared",
    Phase.CLOSED: "Dismissed",
    Phase.FAILED: "AttemptsExhausted",
    Phase.RECONCILIATION_REQUIRED: "OutcomeUnknown",
}


def action(
    type_: ActionType = ActionType.RESTART_FUNCTION,
    *,
    id: str | None = None,  # noqa: A002  # as the field is called
    **changes: Any,
) -> Action:
    """An action as the catalogue would pin it."""
    fields: dict[str, Any] = {
        "id": id or type_.value.replace("_", "-"),
        "type": type_,
        "tier": TIERS[type_],
        "real": type_ in REAL,
        "target": ActionTarget(name="checkout-fn", uid=TARGET_UID, generation=1, state=STATE),
        "parameters": {},
        "effect": "Sets PRAXIS_RESTART_ID in the environment of function checkout, as there is no restart call."
        if type_ in REAL
        else f"DRY RUN: nothing is sent; {type_.value} is only recorded.",
        "rollback": "Remove PRAXIS_RESTART_ID from the function's environment.",
    }
    return Action(**{**fields, **changes})


def plan(
    *,
    revision: int = 1,
    incident_uid: str = INCIDENT_UID,
    actions: Sequence[Action] = (),
    at: datetime = NOW,
    **changes: Any,
) -> Plan:
    """A plan of one restart, with the right digest for its content; `changes` come after the digest is computed."""
    chosen = list(actions) or [action()]
    of_evidence = digest([each.dump() for each in evidence(at)])
    computed = plan_digest(incident_uid=incident_uid, revision=revision, actions=chosen, evidence_digest=of_evidence)
    fields: dict[str, Any] = {
        "revision": revision,
        "digest": computed,
        "short": computed.removeprefix(PREFIX)[:12],
        "summary": "Restart the checkout function.",
        "rationale": "Memory grows since the last deploy (e1); a restart frees it.",
        "actions": chosen,
        "tier": highest_tier(chosen),
        "evidence_digest": of_evidence,
        "model": "qwen3.7-max",
        "proposed_at": rfc3339(at),
    }
    return Plan(**{**fields, **changes})


def evidence(at: datetime = NOW) -> list[Evidence]:
    """Two observations."""
    return [
        Evidence(
            id="e1",
            tool="prometheus_range",
            query="process_resident_memory_bytes{service='checkout'}",
            excerpt="11:50 400 MiB, 11:55 700 MiB, 12:00 980 MiB",
            digest="sha256:" + "a" * 64,
            time=rfc3339(at),
        ),
        Evidence(
            id="e2",
            tool="function_status",
            query="checkout-fn",
            excerpt="state Active, 2 instances",
            digest="sha256:" + "b" * 64,
            time=rfc3339(at),
        ),
    ]


def alert(*, firing: bool = True, at: datetime = NOW, **changes: Any) -> Alert:
    """A latency alert of the checkout service."""
    fields: dict[str, Any] = {
        "fingerprint": "f1",
        "status": "firing" if firing else "resolved",
        "starts_at": rfc3339(at - timedelta(minutes=5)),
        "ends_at": None if firing else rfc3339(at),
        "labels": {"alertname": "HighLatency", "service": "checkout", "severity": "critical"},
        "annotations": {"summary": "p99 latency of checkout is 4 s"},
    }
    return Alert(**{**fields, **changes})


def target(name: str = "checkout-fn", *, namespace: str = NAMESPACE, **changes: Any) -> RemediationTarget:
    """A declared, disposable function; `changes` are fields of its spec."""
    fields: dict[str, Any] = {
        "kind": "FunctionCompute",
        "function_compute": FunctionCompute(
            region="ap-southeast-1", account_id="1234567890", function="checkout", endpoint="http://127.0.0.1:9000"
        ),
        "credentials_file": "checkout-fn.json",
        "disposable": True,
        "alert_selector": LabelSelector(match_labels={"service": "checkout"}),
    }
    return RemediationTarget(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=TARGET_UID, resource_version="1"),
        spec=RemediationTargetSpec(**{**fields, **changes}),
    )


def approval(
    username: str = "alice",
    *,
    of: Incident | None = None,
    decision: Decision = Decision.APPROVE,
    name: str | None = None,
    uid: str | None = None,
    created: datetime = NOW,
    expires: datetime | None = None,
    status: VerdictStatus | None = None,
    deleted: bool = False,
    **changes: Any,
) -> IncidentApproval:
    """A person's decision on the plan of `of`, by default the incident that `incident()` builds, valid for an hour.

    `changes` are fields of its spec.
    """
    on = of or incident()
    assert on.status.plan is not None, "a decision is on a plan"
    made = name or f"{on.metadata.name}-{decision.value.lower()}-{username}"
    fields: dict[str, Any] = {
        "incident_ref": IncidentRef(name=on.metadata.name, uid=on.metadata.uid),
        "plan_digest": on.status.plan.digest,
        "decision": decision,
        "reason": "looks right",
        "corrections": ["use a smaller scope"] if decision is Decision.REVISE else [],
        "approver": Person(username=username),
        "expires_at": rfc3339(expires or created + timedelta(hours=1)),
    }
    return IncidentApproval(
        metadata=ObjectMeta(
            name=made,
            namespace=on.metadata.namespace,
            uid=uid or f"uid-{made}"[:64],
            creation_timestamp=seconds(created),
            deletion_timestamp=seconds(created) if deleted else None,
        ),
        spec=IncidentApprovalSpec(**{**fields, **changes}),
        status=status or VerdictStatus(),
    )


def bound(given: IncidentApproval) -> BoundApproval:
    """An approval as it is copied into the incident's status."""
    return BoundApproval(
        uid=given.metadata.uid,
        name=given.metadata.name,
        approver=given.spec.approver.username,
        plan_digest=given.spec.plan_digest,
        expires_at=given.spec.expires_at,
    )


def reconciliation(
    username: str = "alice",
    *,
    of: Incident | None = None,
    name: str | None = None,
    uid: str | None = None,
    created: datetime = NOW,
    status: VerdictStatus | None = None,
    deleted: bool = False,
    **changes: Any,
) -> IncidentReconciliation:
    """A person's finding on the unknown outcome of `of`; `changes` are fields of its spec."""
    on = of or incident(Phase.RECONCILIATION_REQUIRED)
    made = name or f"{on.metadata.name}-reconciliation-{username}"
    fields: dict[str, Any] = {
        "incident_ref": IncidentRef(name=on.metadata.name, uid=on.metadata.uid),
        "intent_id": INTENT_ID,
        "trail_head": on.status.head,
        "observed": Observed.APPLIED,
        "note": "the instances carry the new marker",
        "observer": Person(username=username),
    }
    return IncidentReconciliation(
        metadata=ObjectMeta(
            name=made,
            namespace=on.metadata.namespace,
            uid=uid or f"uid-{made}"[:64],
            creation_timestamp=seconds(created),
            deletion_timestamp=seconds(created) if deleted else None,
        ),
        spec=IncidentReconciliationSpec(**{**fields, **changes}),
        status=status or VerdictStatus(),
    )


def incident(
    phase: Phase = Phase.AWAITING_APPROVAL, *, spec: Mapping[str, Any] | None = None, **changes: Any
) -> Incident:
    """An incident that came to a phase the usual way.

    `spec` changes fields of its spec, `changes` fields of its status, except `name`, `namespace`, `uid`, `at` (when it
    began), `draft` (makes the plan) and `approvers`, which `history` takes. A changed status is no
    longer what its trail says, nor what the API server would take.
    """
    taken = {"name", "namespace", "uid", "at", "draft", "approvers"}
    life = {key: changes.pop(key) for key in taken & changes.keys()}
    last = history(phase, **life)[-1]
    return last.replace(
        spec=last.spec.replace(**(spec or {})),
        status=last.status.replace(**changes) if changes else last.status,
    )


def history(
    phase: Phase,
    *,
    name: str = INCIDENT,
    namespace: str = NAMESPACE,
    uid: str = INCIDENT_UID,
    at: datetime = NOW,
    draft: Callable[..., Plan] = plan,
    approvers: Sequence[str] = ("alice",),
) -> list[Incident]:
    """The incident after its creation and after each write of the usual way into a phase, oldest first.

    A second passes from write to write. `draft` is called with `incident_uid` and `at` for the plan. Write each `spec`
    that changed before its `status` to replay the life on an API server.
    """
    stored = Incident(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=uid, creation_timestamp=seconds(at)),
        spec=IncidentSpec(
            source=Source(
                receiver="alertmanager", group_key="{}:{service='checkout'}", authentication=Authentication.BEARER
            ),
            summary="HighLatency: checkout",
            severity="critical",
            alerts=[alert(at=at)],
        ),
    )
    states = [stored]
    for step, entered in enumerate(PATHS[phase], start=1):
        states += _entered(
            states[-1], entered, at=at + timedelta(seconds=step), began=at, draft=draft, approvers=approvers
        )
    return states


def replanned(before: Incident, *, by: str = "bob", draft: Callable[..., Plan] = plan) -> list[Incident]:
    """The two writes after which a person's Reject has led to another plan: back to Investigated, and on again.

    `draft` is called with `incident_uid`, `at` and `revision`.
    """
    former = before.status.plan
    assert former is not None, "a Reject is on a plan"
    began = datetime.fromisoformat(before.status.evidence[0].time)
    at = datetime.fromisoformat(before.status.trail[-1].time) + timedelta(seconds=1)
    reject = approval(by, of=before, decision=Decision.REJECT, created=at)
    reason = "Rejected"
    corrections = [*before.status.corrections, reject.spec.reason]
    investigated = _recorded(
        before.status.replace(phase=Phase.INVESTIGATED, reason=reason, corrections=corrections),
        before.metadata.uid,
        at,
        [
            {"kind": EntryKind.DECIDED, "reason": reason, "actor": by, "digest": reject.record_digest},
            {
                "kind": EntryKind.PHASE_CHANGED,
                "reason": reason,
                "digest": _decides(Phase.INVESTIGATED, reason, {"corrections": corrections}),
            },
        ],
    )
    investigated = investigated.replace(phase_times={**investigated.phase_times, Phase.INVESTIGATED: rfc3339(at)})
    drafted = draft(incident_uid=before.metadata.uid, at=began, revision=former.revision + 1)
    binds = fields_digest(investigated.replace(plan=drafted).dump(), PLAN)
    awaiting = _recorded(
        investigated.replace(phase=Phase.AWAITING_APPROVAL, reason="PlanProposed", plan=drafted),
        before.metadata.uid,
        at,
        [{"kind": EntryKind.PHASE_CHANGED, "reason": "PlanProposed", "digest": binds}],
    )
    awaiting = awaiting.replace(phase_times={**awaiting.phase_times, Phase.AWAITING_APPROVAL: rfc3339(at)})
    return [before.replace(status=investigated), before.replace(status=awaiting)]


def seconds(moment: datetime) -> str:
    """A moment as the API server stamps it: whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def manifest(resource: Resource) -> dict[str, Any]:
    """What is sent to create it: no server-made metadata, no status."""
    meta = resource.metadata
    return {
        "apiVersion": API_VERSION,
        "kind": type(resource).kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace},
        "spec": resource.dump()["spec"],
    }


def _entered(
    before: Incident,
    phase: Phase,
    *,
    at: datetime,
    began: datetime,
    draft: Callable[..., Plan],
    approvers: Sequence[str],
) -> list[Incident]:
    """The writes that lead into a phase: the facts it is entered with, a trail entry, and the steps before it."""
    status, writes = before.status, []
    spec = before.spec
    changes: dict[str, Any] = {}
    records: list[dict[str, Any]] = []
    if phase is Phase.TRIAGED:
        changes = {"classification": _classification(), "usage": Usage(model_calls=1)}
    elif phase is Phase.INVESTIGATED:
        changes = {
            "target": "checkout-fn",
            "recalled": [
                Recalled(id="m1", incident="shop/checkout-latency-0", score=0.91, summary="A restart helped.")
            ],
            "evidence": evidence(began),
            "evidence_digest": digest([each.dump() for each in evidence(began)]),
            "diagnosis": _diagnosis(),
        }
    elif phase is Phase.AWAITING_APPROVAL:
        drafted = draft(incident_uid=before.metadata.uid, at=began)
        changes = {
            "plan": drafted,
            "guards": [Guard(kind="ValidatingAdmissionPolicy", name="praxis-approvals", uid="g1", generation=1)],
            "approvals_required": len(approvers),
            "waiting_since": rfc3339(at),
        }
    elif phase is Phase.EXECUTING:
        given = [approval(each, of=before, created=at) for each in approvers]
        changes = {"approvals": [bound(each) for each in given], "waiting_since": None}
        records = [
            {
                "kind": EntryKind.DECIDED,
                "reason": "Approved",
                "actor": each.spec.approver.username,
                "digest": each.record_digest,
            }
            for each in given
        ]
    elif phase in (Phase.OBSERVING, Phase.RECONCILIATION_REQUIRED):
        result = Result.APPLIED if phase is Phase.OBSERVING else Result.UNKNOWN
        writes = _acted(before, result, at)
        status = writes[-1].status
    elif phase is Phase.CLOSED:
        dismissal = approval(of=before, decision=Decision.DISMISS, created=at)
        records = [
            {
                "kind": EntryKind.DECIDED,
                "reason": "Dismissed",
                "actor": dismissal.spec.approver.username,
                "digest": dismissal.record_digest,
            }
        ]
        changes = {"waiting_since": None}
    elif phase is Phase.RESOLVED:
        spec = spec.replace(alerts=[alert(firing=False, at=began, ends_at=rfc3339(at))])
    trail_digest = _decides(phase, REASONS[phase], changes)
    entered = _recorded(
        status.replace(**changes, phase=phase, reason=REASONS[phase], message=f"{phase} for a test."),
        before.metadata.uid,
        at,
        [*records, {"kind": EntryKind.PHASE_CHANGED, "reason": REASONS[phase], "digest": trail_digest}],
    )
    entered = entered.replace(phase_times={**entered.phase_times, phase: rfc3339(at)})
    return [*writes, before.replace(spec=spec, status=entered)]


def _acted(before: Incident, result: Result, at: datetime) -> list[Incident]:
    """The intent of the plan's real action, then its outcome; a dry run for each other action."""
    status = before.status
    assert status.plan is not None
    writes = []
    for each in status.plan.actions:
        key = {"revision": status.plan.revision, "action": each.id}
        outcome = _outcome(result if each.real else Result.DRY_RUN, at)
        intent = _intent(at) if each.real else None
        if intent is not None:
            intended = Step(**key, intent=intent)
            status = _recorded(
                status.replace(steps=[*status.steps, intended]),
                before.metadata.uid,
                at,
                [{"kind": EntryKind.INTENT_RECORDED, "reason": "IntentRecorded", "digest": digest(intended.dump())}],
            )
            writes.append(before.replace(status=status))
        concluded = Step(**key, intent=intent, outcome=outcome)
        done = [step for step in status.steps if not step.open]
        status = _recorded(
            status.replace(steps=[*done, concluded]),
            before.metadata.uid,
            at,
            [{"kind": EntryKind.OUTCOME_RECORDED, "reason": outcome.reason, "digest": digest(concluded.dump())}],
        )
        writes.append(before.replace(status=status))
    return writes


def _decides(phase: Phase, reason: str, changes: Mapping[str, Any]) -> str:
    """What a change to this phase binds, as the operator's writer computes it."""
    return fields_digest(IncidentStatus(**changes).dump(), fields_of(phase, reason))


def _recorded(status: IncidentStatus, uid: str, at: datetime, records: Sequence[Mapping[str, Any]]) -> IncidentStatus:
    trail = list(status.trail)
    for record in records:
        entry = {
            "seq": len(trail),
            "time": rfc3339(at),
            "actor": OPERATOR,
            "digest": "",
            "phase": str(status.phase),
            **{key: str(value) for key, value in record.items()},
        }
        trail.append(TrailEntry.model_validate(link(trail[-1].hash if trail else genesis(uid), entry)))
    return status.replace(trail=trail, head=trail[-1].hash)


def _classification() -> Classification:
    return Classification(
        category="MemoryLeak", severity="critical", service="checkout", summary="Checkout is slow.", model="qwen-flash"
    )


def _diagnosis() -> Diagnosis:
    return Diagnosis(
        summary="The checkout function leaks memory.",
        claims=[Claim(text="Resident memory doubled in ten minutes.", evidence=["e1"])],
        confidence="high",
        model="qwen3.7-max",
    )


def _intent(at: datetime) -> Intent:
    return Intent(
        id=INTENT_ID,
        writer=WRITER,
        time=rfc3339(at),
        baseline=Baseline(
            state=STATE, last_modified="2026-01-31T11:00:00Z", instances=[Instance(id="i-old", created=1769860000000)]
        ),
    )


def _outcome(result: Result, at: datetime) -> Outcome:
    reason, message, proof = {
        Result.APPLIED: ("Restarted", "One newer instance runs.", f"PRAXIS_RESTART_ID={INTENT_ID} is in force"),
        Result.NOT_APPLIED: ("RejectedByService", "The service said no.", ""),
        Result.UNKNOWN: ("NotProven", "The deadline passed without proof.", ""),
        Result.DRY_RUN: ("DryRun", "DRY RUN: nothing was sent.", ""),
    }[result]
    after = [Instance(id="i-new", created=1769860800000)] if result is Result.APPLIED else []
    return Outcome(
        result=result,
        reason=reason,
        message=message,
        proof=proof,
        instances_after=after,
        writer=WRITER,
        time=rfc3339(at),
    )
