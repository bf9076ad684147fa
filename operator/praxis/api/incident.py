"""The Incident: one episode of an Alertmanager group, and everything that is known and decided about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field

from praxis.api import bounds
from praxis.api.base import (
    AnyDigest,
    Condition,
    Line,
    Model,
    Name,
    Part,
    PlanDigest,
    Resource,
    Sentence,
    Timestamp,
    Uid,
    Username,
    Word,
)
from praxis.api.plan import Diagnosis, Plan
from praxis.clock import parse_rfc3339
from praxis.machine import Phase


class Authentication(StrEnum):
    """How the sender of an alert proved who it is; `direct` is a person with kubectl."""

    HMAC = "hmac"
    MTLS = "mtls"
    BEARER = "bearer"
    BASIC = "basic"
    DIRECT = "direct"


class Alert(Model):
    """One alert of the group, in Alertmanager's words."""

    fingerprint: Annotated[Word, Field(min_length=1, description="Alertmanager's fingerprint of the label set.")]
    status: Annotated[str, Field(pattern="^(firing|resolved)$", max_length=10, description="firing or resolved.")]
    starts_at: Annotated[
        Timestamp, Field(json_schema_extra={"format": "date-time"}, description="When it began to fire.")
    ]
    ends_at: Annotated[
        Timestamp | None, Field(json_schema_extra={"format": "date-time"}, description="When it ceased to fire.")
    ] = None
    labels: Annotated[
        dict[str, Annotated[str, Field(max_length=bounds.LABEL_VALUE)]],
        Field(max_length=bounds.LABELS, description="Labels, redacted."),
    ] = {}
    annotations: Annotated[
        dict[str, Annotated[str, Field(max_length=bounds.ANNOTATION_VALUE)]],
        Field(max_length=bounds.LABELS, description="Annotations, redacted."),
    ] = {}
    generator_url: Annotated[Sentence | None, Field(alias="generatorURL", description="Where the alert came from.")] = (
        None
    )

    @property
    def firing(self) -> bool:
        """Whether it fires."""
        return self.status == "firing"


class Source(Model):
    """Where an incident came from."""

    receiver: Annotated[Line, Field(description="The receiver, as configured at the gateway.")]
    group_key: Annotated[Sentence, Field(description="Alertmanager's groupKey, or the sender's own.")]
    external_url: Annotated[
        Sentence | None, Field(alias="externalURL", description="The Alertmanager that sent it.")
    ] = None
    authentication: Annotated[Authentication, Field(description="How the sender was authenticated.")]
    episode: Annotated[int, Field(ge=1, description="Counts the episodes of this group.")] = 1
    previous: Annotated[Name | None, Field(description="The Incident of the group's previous episode.")] = None


class TargetRef(Model):
    """The target an incident names."""

    name: Annotated[Name, Field(description="A RemediationTarget in the incident's namespace.")]


class IncidentSpec(Model):
    """What happened: the alerts of the group."""

    source: Annotated[Source, Field(description="Where the alerts came from and how that was authenticated.")]
    summary: Annotated[Sentence, Field(description="A line for people.")] = ""
    severity: Annotated[Word, Field(description="The severity label of the group, where it has one.")] = ""
    alerts: Annotated[
        list[Alert], Field(min_length=1, max_length=bounds.ALERTS, description="The alerts of the group.")
    ]
    truncated_alerts: Annotated[
        int, Field(ge=0, description="How many alerts more there were; they never count as cleared.")
    ] = 0
    target_ref: Annotated[TargetRef | None, Field(description="Set to choose among several matching targets.")] = None

    @property
    def firing(self) -> bool:
        """Whether any alert fires, or may: truncated alerts never count as cleared."""
        return self.truncated_alerts > 0 or any(alert.firing for alert in self.alerts)


class Classification(Model):
    """What the fast model makes of the alerts."""

    category: Annotated[Word, Field(description="Kind of incident, for example MemoryLeak or LatencySpike.")]
    severity: Annotated[
        str, Field(pattern="^(critical|high|medium|low)$", max_length=8, description="How urgent it is.")
    ]
    service: Annotated[Line, Field(description="The service concerned.")] = ""
    summary: Annotated[Sentence, Field(description="The incident in a sentence.")]
    model: Annotated[Line, Field(description="The model that classified it.")] = ""
    run: Annotated[PlanDigest | None, Field(description="Digest of the recorded model run that made it.")] = None


class Recalled(Model):
    """A past incident that resembles this one."""

    id: Annotated[Name, Field(description="Id of the memory.")]
    incident: Annotated[Line, Field(description="namespace/name of the incident it tells of.")]
    score: Annotated[float, Field(description="Cosine similarity, -1 to 1; not comparable between stores.")]
    summary: Annotated[Sentence, Field(description="What happened and what helped.")]


class Evidence(Model):
    """One read-only observation, bounded and redacted."""

    id: Annotated[Word, Field(description="What claims cite, for example e3.")]
    tool: Annotated[Word, Field(description="The tool that read it.")]
    query: Annotated[Sentence, Field(description="What was asked.")]
    excerpt: Annotated[str, Field(max_length=bounds.EXCERPT, description="What was seen, bounded and redacted.")]
    truncated: Annotated[bool, Field(description="Whether there was more.")] = False
    digest: Annotated[AnyDigest, Field(description="Digest of the whole redacted result.")]
    time: Annotated[Timestamp, Field(description="When it was read.")]


class BoundApproval(Model):
    """An approval that the plan runs on, copied in when Executing is entered."""

    uid: Annotated[Uid, Field(description="uid of the IncidentApproval.")]
    name: Annotated[Name, Field(description="Its name.")]
    approver: Annotated[Username, Field(description="Who approved.")]
    plan_digest: Annotated[PlanDigest, Field(description="The plan that was approved.")]
    expires_at: Annotated[Timestamp, Field(description="Until when it may be acted on.")]


class Guard(Model):
    """A CRD, policy or binding as it was installed when the plan was proposed."""

    kind: Annotated[Word, Field(description="Kind of the object.")]
    name: Annotated[Name, Field(description="Its name.")]
    uid: Annotated[Uid, Field(description="Its uid.")]
    generation: Annotated[int, Field(description="Its generation.")]


class Instance(Model):
    """An instance of a function."""

    id: Annotated[str, Field(max_length=128, description="Instance id.")]
    created: Annotated[int, Field(description="Creation by the service's clock, milliseconds since 1970.")]


class Baseline(Model):
    """The function as it was read before the intent."""

    state: Annotated[AnyDigest, Field(description="Digest of its configuration, environment as keyed digests.")]
    parts: Annotated[
        list[Part], Field(max_length=bounds.PARTS, description="Keyed digests of its parts, to say which one changed.")
    ] = []
    last_modified: Annotated[Line, Field(description="Its lastModifiedTime.")] = ""
    instances: Annotated[list[Instance], Field(max_length=bounds.INSTANCES, description="Its active instances.")] = []


class Intent(Model):
    """That one process is about to send one request. Written before anything leaves the process."""

    id: Annotated[
        str, Field(min_length=8, max_length=64, description="Random; the marker in the function's environment.")
    ]
    writer: Annotated[Line, Field(description="The process that may dispatch: random per process.")]
    time: Annotated[Timestamp, Field(description="When it was written.")]
    baseline: Annotated[Baseline, Field(description="What was running.")]


class Result(StrEnum):
    """What is known of an action's outcome."""

    APPLIED = "Applied"
    NOT_APPLIED = "NotApplied"
    UNKNOWN = "Unknown"
    DRY_RUN = "DryRun"


class Outcome(Model):
    """How an action ended, as far as that can be known."""

    result: Annotated[Result, Field(description="Applied, NotApplied, Unknown, or DryRun: nothing was sent.")]
    reason: Annotated[Word, Field(description="A CamelCase word, for example Restarted, Drained, NeverSent.")]
    message: Annotated[Sentence, Field(description="What is known, in a sentence.")] = ""
    proof: Annotated[Sentence, Field(description="What shows that it was our request; Applied needs it.")] = ""
    instances_after: Annotated[
        list[Instance], Field(max_length=bounds.INSTANCES, description="The active instances that were seen last.")
    ] = []
    writer: Annotated[Line, Field(description="The process that concluded it.")]
    time: Annotated[Timestamp, Field(description="When it was concluded.")]


class Step(Model):
    """One action of an approved revision on its way."""

    revision: Annotated[int, Field(ge=1, le=bounds.PLANS, description="The plan's revision.")]
    action: Annotated[str, Field(max_length=63, description="The action's id.")]
    intent: Annotated[Intent | None, Field(description="Absent for a dry run.")] = None
    outcome: Annotated[Outcome | None, Field(description="Absent while it is not known.")] = None

    @property
    def open(self) -> bool:
        """Whether an intent has no outcome yet."""
        return self.intent is not None and self.outcome is None


class EntryKind(StrEnum):
    """What a trail entry records."""

    PHASE_CHANGED = "PhaseChanged"
    DECIDED = "Decided"
    INTENT_RECORDED = "IntentRecorded"
    OUTCOME_RECORDED = "OutcomeRecorded"
    RECONCILED = "Reconciled"


class TrailEntry(Model):
    """One decision, linked to the one before it."""

    seq: Annotated[int, Field(ge=0, description="Counts from 0.")]
    time: Annotated[Timestamp, Field(description="When it was decided.")]
    actor: Annotated[Username, Field(description="Who decided: a person, or the operator.")]
    kind: Annotated[EntryKind, Field(description="What is recorded.")]
    phase: Annotated[Phase, Field(description="The phase after it.")]
    reason: Annotated[Word, Field(description="Why, as a CamelCase word.")]
    digest: Annotated[AnyDigest, Field(description="Digest of the full record that it binds.")] = ""
    prev: Annotated[PlanDigest, Field(description="Hash of the entry before; of the incident's uid for the first.")]
    hash: Annotated[PlanDigest, Field(description="SHA-256 of this entry's canonical form without this field.")]


class Usage(Model):
    """What the models have cost so far."""

    model_calls: Annotated[int, Field(ge=0, description="Answers received.")] = 0
    input_tokens: Annotated[int, Field(ge=0, description="Tokens sent.")] = 0
    output_tokens: Annotated[int, Field(ge=0, description="Tokens received.")] = 0
    cost_micro_usd: Annotated[
        int, Field(ge=0, alias="costMicroUSD", description="Money, millionths of a US dollar.")
    ] = 0


class IncidentStatus(Model):
    """What is known and decided. Only the operator writes it; the API server holds the rules."""

    phase: Annotated[Phase, Field(description="Where the incident stands.")] = Phase.NEW
    reason: Annotated[Word | None, Field(description="Why it stands there, as a CamelCase word.")] = None
    message: Annotated[Sentence | None, Field(description="The same for people, and what to do next.")] = None
    observed_generation: Annotated[int | None, Field(description="The generation of the spec last acted on.")] = None
    phase_times: Annotated[
        dict[str, Timestamp], Field(max_length=len(Phase), description="When each phase was last entered.")
    ] = {}
    waiting_since: Annotated[Timestamp | None, Field(description="Since when it waits for a person.")] = None
    attempts: Annotated[int | None, Field(ge=0, description="Failed attempts in this phase.")] = None
    conditions: Annotated[
        list[Condition],
        Field(
            max_length=bounds.CONDITIONS,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
            description="Conditions.",
        ),
    ] = []
    classification: Annotated[Classification | None, Field(description="What kind of incident it is.")] = None
    target: Annotated[Name | None, Field(description="The RemediationTarget that the alerts belong to.")] = None
    recalled: Annotated[
        list[Recalled],
        Field(
            max_length=bounds.RECALLED,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
            description="Similar past incidents.",
        ),
    ] = []
    evidence: Annotated[
        list[Evidence],
        Field(
            max_length=bounds.EVIDENCE,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
            description="What was read.",
        ),
    ] = []
    evidence_digest: Annotated[PlanDigest | None, Field(description="Digest of all the evidence.")] = None
    diagnosis: Annotated[Diagnosis | None, Field(description="What is likely wrong.")] = None
    corrections: Annotated[
        list[Sentence], Field(max_length=bounds.CORRECTIONS_KEPT, description="What people asked to be changed.")
    ] = []
    plan: Annotated[Plan | None, Field(description="What is proposed.")] = None
    guards: Annotated[
        list[Guard],
        Field(
            max_length=bounds.GUARDS,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["kind", "name"]},
            description="The CRDs, policies and bindings when it was proposed.",
        ),
    ] = []
    approvals_required: Annotated[
        int | None, Field(ge=1, le=bounds.APPROVALS, description="Distinct people needed.")
    ] = None
    approvals: Annotated[
        list[BoundApproval], Field(max_length=bounds.APPROVALS, description="The approvals that the plan runs on.")
    ] = []
    steps: Annotated[
        list[Step],
        Field(
            max_length=bounds.STEPS,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["revision", "action"]},
            description="What was done, action by action.",
        ),
    ] = []
    usage: Annotated[Usage | None, Field(description="What the models have cost so far.")] = None
    trail: Annotated[list[TrailEntry], Field(max_length=bounds.TRAIL, description="Every decision, hash-chained.")] = []
    head: Annotated[PlanDigest | None, Field(description="Hash of the last trail entry.")] = None

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type, if there is one."""
        return next((each for each in self.conditions if each.type == type_), None)

    def steps_of(self, revision: int) -> list[Step]:
        """The steps of one plan."""
        return [step for step in self.steps if step.revision == revision]

    @property
    def open_step(self) -> Step | None:
        """The step whose outcome is not known yet, if there is one."""
        return next((step for step in self.steps if step.open), None)


class Incident(Resource):
    """An incident."""

    kind: ClassVar[str] = "Incident"
    plural: ClassVar[str] = "incidents"

    spec: IncidentSpec
    status: IncidentStatus = IncidentStatus()

    @property
    def cleared_before_action(self) -> bool:
        """Whether every alert had ended before the intent of an action that was applied: it cannot be what helped.

        By the sender's clock and the operator's, so only words may hang on it; False where a time is not known.
        """
        applied = [
            step.intent.time
            for step in self.status.steps
            if step.intent is not None and step.outcome is not None and step.outcome.result is Result.APPLIED
        ]
        ended = [alert.ends_at for alert in self.spec.alerts if not alert.firing]
        if not applied or not ended or None in ended:
            return False
        try:
            return max(parse_rfc3339(each) for each in ended if each) < min(parse_rfc3339(each) for each in applied)
        except ValueError:
            return False

    @classmethod
    def parse(cls, document: dict[str, Any]) -> Incident:
        """Read an object as the API server returned it.

        Raises:
            pydantic.ValidationError: it does not hold the schema.
        """
        return cls.model_validate(document)
