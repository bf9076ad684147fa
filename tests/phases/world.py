"""A small world in memory behind the seams of `praxis.phases.contract`: what the API server stores, functions, models.

It stands in for the far ends only. Objects carry resourceVersions, and a holder is swapped only when the target is
still as it was read. A function counts what was sent to it and what landed; it can refuse, lose a request before or
after it took effect, keep its old instances, or go dark. Time moves by hand, wall and boot clocks apart.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from praxis.actions.contract import Dispatch, Sent, Verdict
from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import IntentId, Resource
from praxis.api.incident import Baseline, Classification, Evidence, Guard, Incident, Instance, Recalled, Result, Usage
from praxis.api.plan import Diagnosis
from praxis.api.reasons import Reason
from praxis.api.target import Holder, RemediationTarget, RemediationTargetStatus
from praxis.controller.sightings import Intents
from praxis.digest import digest
from praxis.errors import DefinitelyNotApplied, RetryLater, Superseded
from praxis.evidence.contract import Scope
from praxis.machine import Phase
from praxis.memory.contract import MemoryRecord
from praxis.phases.contract import Tools
from praxis.reasoning.contract import Answered, ProposedAction, ProposedPlan
from praxis.settings import OperatorSettings
from praxis.signing.signers import AllowedSigners
from tests import builders

FUNCTION = "checkout"
GUARD = Guard(kind="ValidatingAdmissionPolicy", name="praxis-approvals", uid="g1", generation=1)
COST = Usage(model_calls=2, input_tokens=300, output_tokens=40, cost_micro_usd=500)
Hook = Callable[[], None]
R = TypeVar("R", bound=Resource)


@dataclass
class Time:
    """What all clocks show; `wall` and `boot` can be moved apart."""

    wall: datetime = builders.NOW + timedelta(minutes=1)
    boot: float = 1000.0

    def forward(self, seconds: float) -> None:
        """Let both pass."""
        self.wall += timedelta(seconds=seconds)
        self.boot += seconds


@dataclass(frozen=True)
class HandClock:
    """One machine's clock: its wall clock may be off, and it was booted at another time."""

    time: Time
    off: timedelta = timedelta(0)
    booted: float = 0.0

    def now(self) -> datetime:
        """Wall time."""
        return self.time.wall + self.off

    def boottime(self) -> float:
        """Seconds since boot."""
        return self.time.boot - self.booted

    async def sleep(self, seconds: float) -> None:
        """Time passes, at once."""
        self.time.forward(seconds)
        await asyncio.sleep(0)


class Answer(StrEnum):
    """What becomes of a request to change a function."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    LOST_BEFORE = "lost before it was applied"
    LOST_AFTER = "lost after it was applied"
    LATE = "lost, and still under way"


@dataclass
class Function:
    """A function: its configuration, what it was sent, what landed."""

    config: str = "v1"
    marker: str | None = None
    instances: tuple[Instance, ...] = (Instance(id="i-old", created=1769860000000),)
    answer: Answer = Answer.ACCEPTED
    rotates: bool = True
    dark: bool = False
    sends: list[str] = field(default_factory=list)
    landed: list[str] = field(default_factory=list)
    under_way: list[str] = field(default_factory=list)
    looks: int = 0

    @property
    def state(self) -> str:
        """The digest of the configuration; the marker is part of it."""
        fresh = (self.config, self.marker) == ("v1", None)
        return builders.STATE if fresh else digest([self.config, self.marker])

    def receive(self, intent: str) -> Sent:
        """The one request that changes something."""
        self.sends.append(intent)
        if self.answer is Answer.REJECTED:
            return Sent.REJECTED
        if self.answer is Answer.LATE:
            self.under_way.append(intent)
        if self.answer in {Answer.LOST_BEFORE, Answer.LATE}:
            return Sent.AMBIGUOUS
        self.land(intent)
        return Sent.ACCEPTED if self.answer is Answer.ACCEPTED else Sent.AMBIGUOUS

    def land(self, intent: str) -> None:
        """The request takes effect."""
        self.marker = intent
        self.landed.append(intent)
        if self.rotates:
            self.instances = (Instance(id=f"i-{len(self.landed)}", created=1769860800000),)


class FunctionAdapter:
    """An `Adapter` over the world's functions; it addresses no function but the target's."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.before_permit: Hook = lambda: None
        self.error: Exception | None = None
        self.proof = True

    def observe(self, target: RemediationTarget) -> Baseline:
        """Configuration and instances."""
        function = self._function(target)
        function.looks += 1
        if function.dark:
            raise RetryLater("the service does not answer")
        if not function.instances:
            raise DefinitelyNotApplied("no instance is running", reason=Reason.NOTHING_RUNNING)
        return Baseline(state=function.state, last_modified="2026-01-31T11:00:00Z", instances=list(function.instances))

    def dispatch(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, permit: Callable[[], str | None]
    ) -> Dispatch:
        """Re-read, compare, ask, send once."""
        if self.error is not None:
            raise self.error
        changed = self.changed(target, baseline)
        if changed is not None:
            return changed
        self.before_permit()
        refused = permit()
        return self.send(target, intent) if refused is None else self.never_sent(refused)

    def changed(self, target: RemediationTarget, baseline: Baseline) -> Dispatch | None:
        """What the re-read says against sending."""
        function = self._function(target)
        if function.dark or function.state != baseline.state:
            return Dispatch(Sent.NEVER_SENT, Reason.BASELINE_CHANGED, "the function changed since it was observed")
        return None

    @staticmethod
    def never_sent(refused: str) -> Dispatch:
        """What the permit said against sending."""
        return Dispatch(Sent.NEVER_SENT, Reason.NEVER_SENT, refused)

    def send(self, target: RemediationTarget, intent: IntentId) -> Dispatch:
        """The one send."""
        self._world.sent(target, intent)
        sent = self._function(target).receive(intent)
        return {
            Sent.ACCEPTED: Dispatch(Sent.ACCEPTED, Reason.ACCEPTED, "the service accepted the update"),
            Sent.REJECTED: Dispatch(Sent.REJECTED, Reason.REJECTED_BY_SERVICE, "the service said no"),
            Sent.AMBIGUOUS: Dispatch(Sent.AMBIGUOUS, Reason.OUTCOME_UNKNOWN, "no answer came"),
        }[sent]

    def verify(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, dispatch: Dispatch | None
    ) -> Verdict:
        """Applied when the marker is there and no old instance runs; else Unknown: the deadline passed."""
        function = self._function(target)
        function.looks += 1
        old = {each.id for each in baseline.instances} & {each.id for each in function.instances}
        if function.dark or function.marker != intent or old:
            lost = dispatch is None
            return Verdict(
                Result.UNKNOWN, Reason.WRITER_LOST if lost else Reason.NOT_PROVEN, "the deadline passed without proof"
            )
        return Verdict(
            Result.APPLIED,
            Reason.RESTARTED,
            "every instance is new",
            proof=f"PRAXIS_RESTART_ID={intent}" if self.proof else "",
            after=function.instances,
        )

    def _function(self, target: RemediationTarget) -> Function:
        return self._world.functions[target.spec.function_compute.function]


class WorldCluster:
    """A `Cluster` over the world. `fail` queues errors for a read; `before` runs something right before one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._errors: dict[str, deque[Exception]] = defaultdict(deque)
        self._before: dict[str, deque[Hook]] = defaultdict(deque)

    def fail(self, name: str, *errors: Exception) -> None:
        """The next calls of a method raise these."""
        self._errors[name].extend(errors)

    def before(self, name: str, hook: Hook) -> None:
        """Something happens right before the next call of a method."""
        self._before[name].append(hook)

    async def incident(self, namespace: str, name: str) -> Incident | None:
        """As stored."""
        await self._called("incident")
        return self._world.incidents.get((namespace, name))

    async def approvals(self, incident: Incident) -> tuple[list[IncidentApproval], datetime | None]:
        """By uid."""
        await self._called("approvals")
        uid = incident.metadata.uid
        found = [each for each in self._world.approvals.values() if each.spec.incident_ref.uid == uid]
        return found, self._world.server_now()

    async def allowed_signers(self) -> AllowedSigners | None:
        """As the admins keep them."""
        await self._called("allowed_signers")
        return self._world.signers

    async def reconciliations(self, namespace: str, incident_uid: str) -> list[IncidentReconciliation]:
        """By uid."""
        await self._called("reconciliations")
        return [
            each
            for each in self._world.reconciliations.values()
            if each.metadata.namespace == namespace and each.spec.incident_ref.uid == incident_uid
        ]

    async def targets(self, namespace: str) -> list[RemediationTarget]:
        """Of one namespace."""
        await self._called("targets")
        return [each for each in self._world.targets.values() if each.metadata.namespace == namespace]

    async def all_targets(self) -> list[RemediationTarget]:
        """Of all namespaces."""
        await self._called("all_targets")
        return list(self._world.targets.values())

    async def guards(self) -> list[Guard]:
        """As installed."""
        await self._called("guards")
        return list(self._world.guards)

    async def claim(self, target: RemediationTarget, holder: Holder) -> RemediationTarget:
        """By compare-and-swap."""
        await self._called("claim")
        return self._world.swap(target, holder)

    async def release(self, target: RemediationTarget) -> None:
        """By compare-and-swap."""
        await self._called("release")
        self._world.swap(target, None)

    async def approvals_by_name(self, namespace: str, name: str) -> tuple[list[IncidentApproval], datetime | None]:
        """For verdicts."""
        found = [each for each in self._world.approvals.values() if each.spec.incident_ref.name == name]
        return found, self._world.server_now()

    async def reconciliations_by_name(self, namespace: str, name: str) -> list[IncidentReconciliation]:
        """For verdicts."""
        return [each for each in self._world.reconciliations.values() if each.spec.incident_ref.name == name]

    async def _called(self, name: str) -> None:
        if self._before[name]:
            self._before[name].popleft()()
        if self._errors[name]:
            raise self._errors[name].popleft()


class WorldReasoner:
    """A `Reasoner` whose answers are queued; without one it answers the same each time."""

    def __init__(self) -> None:
        self.queued: dict[str, deque[Any]] = defaultdict(deque)
        self.asked: list[str] = []
        self.scopes: list[Scope] = []

    async def classify(self, incident: Incident) -> Answered[Classification]:
        """The next answer."""
        return self._next("classify", lambda: Answered(CLASSIFICATION, COST, "qwen-flash"))

    async def diagnose(self, scope: Scope, recalled: Sequence[Recalled]) -> Answered[Diagnosis]:
        """The next answer."""
        self.scopes.append(scope)
        return self._next("diagnose", lambda: Answered(DIAGNOSIS, COST, "qwen3.7-max", evidence=EVIDENCE))

    async def draft(self, incident: Incident, targets: Sequence[RemediationTarget]) -> Answered[ProposedPlan]:
        """The next answer."""
        return self._next("draft", lambda: drafted(targets[0].metadata.name))

    def _next(self, name: str, default: Callable[[], Any]) -> Any:
        self.asked.append(name)
        answer = self.queued[name].popleft() if self.queued[name] else default()
        if isinstance(answer, Exception):
            raise answer
        return answer


class WorldMemory:
    """A `Memory` of a dict; errors are queued."""

    def __init__(self) -> None:
        self.records: dict[str, MemoryRecord] = {}
        self.errors: deque[Exception] = deque()
        self.recalls: list[tuple[str, str, int]] = []
        self.writes = 0

    async def remember(self, record: MemoryRecord) -> None:
        """Once for each id."""
        if self.errors:
            raise self.errors.popleft()
        self.writes += 1
        self.records.setdefault(record.id, record)

    async def recall(self, text: str, *, namespace: str, limit: int, exclude: str | None = None) -> Sequence[Recalled]:
        """One memory."""
        if self.errors:
            raise self.errors.popleft()
        self.recalls.append((text, namespace, limit))
        return [RECALLED]

    async def close(self) -> None:
        """Nothing is held."""


class World:
    """Everything outside the operator."""

    def __init__(self) -> None:
        self.time = Time()
        self.incidents: dict[tuple[str, str], Incident] = {}
        self.approvals: dict[str, IncidentApproval] = {}
        self.reconciliations: dict[str, IncidentReconciliation] = {}
        self.targets: dict[str, RemediationTarget] = {}
        self.guards: list[Guard] = [GUARD]
        self.signers: AllowedSigners | None = None
        self.functions: dict[str, Function] = {FUNCTION: Function()}
        self.server_now: Callable[[], datetime | None] = lambda: self.time.wall
        self.on_send: Callable[[RemediationTarget, str], None] = lambda target, intent: None
        self._versions = itertools.count(1)
        self.cluster = WorldCluster(self)
        self.adapter = FunctionAdapter(self)
        self.reasoner = WorldReasoner()
        self.memory = WorldMemory()

    @property
    def function(self) -> Function:
        """The one that the usual target names."""
        return self.functions[FUNCTION]

    def keep(self, *incidents: Incident) -> Incident:
        """Store incidents with a new resourceVersion; returns the last."""
        for each in incidents:
            key = (each.metadata.namespace, each.metadata.name)
            kept = self.incidents[key] = self._stored(self.incidents.get(key), each)
        return kept

    def say(self, *approvals: IncidentApproval) -> None:
        """Store people's decisions."""
        for each in approvals:
            self.approvals[each.metadata.uid] = self._stored(self.approvals.get(each.metadata.uid), each)

    def find(self, *findings: IncidentReconciliation) -> None:
        """Store people's findings."""
        for each in findings:
            self.reconciliations[each.metadata.uid] = self._stored(self.reconciliations.get(each.metadata.uid), each)

    def declare(self, *targets: RemediationTarget) -> RemediationTarget:
        """Store targets with a new resourceVersion; returns the last."""
        for each in targets:
            declared = self.targets[each.metadata.uid] = self._stored(self.targets.get(each.metadata.uid), each)
        return declared

    def swap(self, target: RemediationTarget, holder: Holder | None) -> RemediationTarget:
        """Change a holder if the target is as it was read; raises Superseded."""
        stored = self.targets.get(target.metadata.uid)
        if stored is None or stored.metadata.resource_version != target.metadata.resource_version:
            raise Superseded(f"target {target.key} changed since it was read")
        return self.declare(stored.replace(status=RemediationTargetStatus(holder=holder)))

    def _stored(self, before: Resource | None, after: R) -> R:
        """An object as it is returned after a write."""
        del before
        return versioned(after, next(self._versions))  # type: ignore[no-any-return]

    def sent(self, target: RemediationTarget, intent: str) -> None:
        """A request leaves the process."""
        self.on_send(target, intent)

    def tools(
        self,
        *,
        writer: str = builders.WRITER,
        clock: HandClock | None = None,
        sightings: Intents | None = None,
        settings: OperatorSettings | None = None,
    ) -> Tools:
        """What a phase of one operator process is given."""
        own = clock or HandClock(self.time)
        return Tools(
            settings=settings or OperatorSettings(),
            clock=own,
            writer=writer,
            cluster=self.cluster,
            reasoner=self.reasoner,
            memory=self.memory,
            adapter=self.adapter,
            sightings=sightings or Intents(clock=own),
        )


def versioned(resource: Any, version: int) -> Any:
    """The object as the API server returns it after that write."""
    return resource.replace(metadata=resource.metadata.replace(resource_version=str(version)))


def executing(**life: Any) -> tuple[World, Incident]:
    """A world with one approved incident in Executing, its approvals, its target, and the function as planned."""
    world = World()
    states = builders.history(Phase.EXECUTING, **life)
    before = next(each for each in states if each.status.phase is Phase.AWAITING_APPROVAL)
    at = builders.NOW + timedelta(seconds=4)
    world.say(*(builders.approval(each, of=before, created=at) for each in life.get("approvers", ("alice",))))
    world.declare(builders.target())
    return world, world.keep(states[-1])


def holder(**changes: Any) -> Holder:
    """Another incident's claim."""
    fields: dict[str, Any] = {
        "incident_uid": "99999999-9999-4999-8999-999999999999",
        "incident_name": "other-1",
        "revision": 1,
        "intent_id": "intent-of-the-other",
        "writer": "writer-z",
        "claimed_at": "2026-01-31T12:00:00.000000Z",
    }
    return Holder(**{**fields, **changes})


def held(target: RemediationTarget, by: Holder | None) -> RemediationTarget:
    """A target with a holder."""
    return target.replace(status=RemediationTargetStatus(holder=by))


def renamed(target: RemediationTarget, **metadata: Any) -> RemediationTarget:
    """A target with other metadata."""
    return target.replace(metadata=target.metadata.replace(**metadata))


def drafted(target: str = "checkout-fn", *actions: ProposedAction, **plan: Any) -> Answered[ProposedPlan]:
    """A model's plan, of one restart by default."""
    fields: dict[str, Any] = {
        "summary": "Restart the checkout function.",
        "rationale": "Memory grows (e1).",
        "actions": list(actions) or [proposed(target=target)],
    }
    return Answered(ProposedPlan(**{**fields, **plan}), COST, "qwen3.7-max-2026-01-01")


def proposed(**changes: Any) -> ProposedAction:
    """A model's action, a restart by default."""
    fields: dict[str, Any] = {
        "id": "restart",
        "type": "restart_function",
        "tier": "safe",
        "target": "checkout-fn",
        "rollback": "Remove PRAXIS_RESTART_ID.",
    }
    return ProposedAction(**{**fields, **changes})


CLASSIFICATION = Classification(
    category="MemoryLeak", severity="critical", service="checkout", summary="Checkout is slow.", model="qwen-flash"
)
DIAGNOSIS = Diagnosis(summary="The checkout function leaks memory.", confidence="high", model="qwen3.7-max")
EVIDENCE: list[Evidence] = builders.evidence()
RECALLED = Recalled(id="m1", incident="shop/checkout-latency-0", score=0.91, summary="A restart helped.")
