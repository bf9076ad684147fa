"""Who acts in these tests: people, an admin, and operators that look when they are told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client import CollectorRegistry

from praxis.actions.function_compute import FunctionComputeAdapter
from praxis.api.accounts import Names
from praxis.api.approval import Decision, IncidentApproval
from praxis.api.incident import Incident, Result
from praxis.api.plan import Action, ActionTarget, ActionType
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.controller.cluster import KubeCluster
from praxis.controller.events import EventRecorder
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.queue import Key, Later, WorkQueue
from praxis.controller.reconciler import Reconciler
from praxis.controller.sightings import Intents
from praxis.controller.verdicts import Verdicts
from praxis.controller.writer import StatusWriter
from praxis.controlplane import ControlPlane
from praxis.demo.function_compute import Emulator, EmulatorServer, Fault
from praxis.digest import first_broken
from praxis.kube import Kube, path_of
from praxis.machine import Phase
from praxis.phases.contract import Tools, Transition
from praxis.settings import OperatorSettings
from tests import builders
from tests.phases.world import HandClock, Time, World
from tests.proxy import Proxy
from tests.records import journal

NAMES = Names()
FUNCTION = "checkout"
TARGET = "checkout-fn"
INCIDENT = "inc-1"
STATUS = f"/incidents/{INCIDENT}/status"
"""Where an operator writes, and what a fault of the proxy is aimed at."""
LOOKS = 20
"""More looks at once than any of these stories needs."""


@dataclass(frozen=True)
class House:
    """One namespace, its function, and everybody who acts there; operators reach the API server through the proxy."""

    namespace: str
    account_id: str
    plane: ControlPlane
    admin: Kube
    direct: Kube
    proxied: Kube
    proxy: Proxy
    service: EmulatorServer
    time: Time
    settings: OperatorSettings

    @property
    def emulator(self) -> Emulator:
        """The service, for what happens there by other hands."""
        return self.service.emulator

    # ---- what an admin and the gateway do ----

    async def declare(self, name: str = TARGET) -> RemediationTarget:
        """Declare the function as a target."""
        document = builders.manifest(builders.target(name, namespace=self.namespace, credentials_file="key.json"))
        document["spec"]["functionCompute"] |= {"accountId": self.account_id, "endpoint": self.service.url}
        reply = await self.admin.create(path_of(RemediationTarget, self.namespace), document)
        return RemediationTarget.model_validate(reply.document)

    async def clear(self, name: str = INCIDENT) -> None:
        """The gateway hears that the alert has ended, now."""
        alerts = [builders.alert(firing=False, at=self.time.wall).dump()]
        change = [{"op": "replace", "path": "/spec/alerts", "value": alerts}]
        await self.admin.json_patch(path_of(Incident, self.namespace, name), change)

    # ---- what people do ----

    async def say(
        self,
        person: str,
        decision: Decision = Decision.APPROVE,
        *,
        on: str = INCIDENT,
        hours: float = 12,
    ) -> IncidentApproval:
        """A person decides on the plan that stands, under their own name; it expires so many true hours from now."""
        given = builders.approval(
            person,
            of=await self.incident(on),
            decision=decision,
            expires=self.time.wall + timedelta(hours=hours),
        )
        async with await Kube.connect(self.plane.kubeconfig(person, [NAMES.approvers_group])) as kube:
            await kube.create(path_of(IncidentApproval, self.namespace), builders.manifest(given))
        return given

    # ---- what is there ----

    async def incident(self, name: str = INCIDENT) -> Incident:
        """The incident as it is stored; its trail is whole."""
        found = Incident.parse((await self.direct.get(path_of(Incident, self.namespace, name))).document)
        assert first_broken(found.metadata.uid, found.status.dump().get("trail", [])) is None
        return found

    async def verdict(self, person: str, decision: Decision = Decision.APPROVE) -> tuple[str | None, str | None]:
        """Verdict and reason of a person's decision."""
        reply = await self.direct.get(path_of(IncidentApproval, self.namespace))
        found = [IncidentApproval.model_validate(each) for each in reply.document["items"]]
        (status,) = (
            each.status for each in found if (each.spec.approver.username, each.spec.decision) == (person, decision)
        )
        return status.verdict, status.reason

    def sent(self) -> list[bool]:
        """For each request that changes the function and that has arrived: whether it was applied."""
        return [each.applied for each in self.emulator.dispatches(FUNCTION)]

    # ---- operators ----

    def operator(self, name: str = "a", *, off: timedelta = timedelta(0), booted: float = 0.0) -> Operator:
        """An operator process: its clock is so far off, its machine was booted at another time, its memory is empty."""
        return Operator.of(self, f"operator-{name}", HandClock(self.time, off, booted))

    @asynccontextmanager
    async def held(self, fault: Fault) -> AsyncIterator[Callable[[], object]]:
        """Arm a fault that holds a request; gives what waits, on a thread, until one is held. Let go at the end."""
        armed = self.emulator.arm(fault)
        try:
            yield lambda: self.emulator.wait_for_hits(armed)
        finally:
            self.emulator.disarm(armed)

    async def forward(self, **time: float) -> None:
        """So much time passes, also on the API server's clock, as operators see it."""
        passed = timedelta(**time)
        self.time.forward(passed.total_seconds())
        self.proxy.off += passed


@dataclass(frozen=True)
class Operator:
    """What one operator process has in memory, and its eyes."""

    house: House
    clock: HandClock
    tools: Tools
    reconciler: Reconciler
    writer: StatusWriter

    @classmethod
    def of(cls, house: House, name: str, clock: HandClock) -> Operator:
        """As `praxis.controller.operator` puts it together."""
        settings, kube, registry = house.settings, house.proxied, CollectorRegistry()
        queue = WorkQueue(clock=clock)
        incidents = Incidents(clock=clock, deadlines=settings.deadlines)
        metrics = Metrics(registry=registry, incidents=incidents, queue=queue)
        cluster = KubeCluster(kube=kube, settings=settings)
        events = EventRecorder(kube=kube, clock=clock, instance=name)
        intents = Intents(clock=clock)
        writer = StatusWriter(
            kube=kube, cluster=cluster, clock=clock, actor=builders.OPERATOR, intents=intents, journal=journal()
        )
        absent = World()
        tools = Tools(
            settings=settings,
            clock=clock,
            writer=name,
            cluster=cluster,
            reasoner=absent.reasoner,
            memory=absent.memory,
            adapter=FunctionComputeAdapter(settings=settings.actions, clock=clock, pause=house.time.forward),
            sightings=intents,
        )
        verdicts = Verdicts(
            kube=kube, cluster=cluster, clock=clock, quorum=settings.quorum, events=events, metrics=metrics
        )
        reconciler = Reconciler(
            cluster=cluster,
            writer=writer,
            verdicts=verdicts,
            events=events,
            tools=tools,
            queue=queue,
            incidents=incidents,
            metrics=metrics,
            clock=clock,
        )
        return cls(house, clock, tools, reconciler, writer)

    async def look(self, name: str = INCIDENT) -> Later:
        """Once."""
        return await self.reconciler.reconcile(Key(self.house.namespace, name))

    async def until(self, *phases: Phase, name: str = INCIDENT) -> Incident:
        """Look again and again at once, as the queue does while there is something to do, until it is in a phase."""
        for _ in range(LOOKS):
            incident = await self.house.incident(name)
            if incident.status.phase in phases:
                return incident
            await self.look(name)
        status = incident.status
        raise AssertionError(f"{name} is in {status.phase}: {status.reason} {status.message}")

    def executes(self, name: str = INCIDENT) -> asyncio.Task[Later]:
        """Look once, in the background: the one look that acts."""
        return asyncio.create_task(self.look(name))

    # ---- how an incident comes to where these stories begin ----

    async def proposes(self, name: str = INCIDENT, *, target: str = TARGET, dangerous: bool = False) -> Incident:
        """A new incident for which this operator has drafted a plan: a restart, and, if dangerous, a rollback too."""
        document = builders.manifest(builders.incident(Phase.NEW, name=name, namespace=self.house.namespace))
        document["spec"]["alerts"] = [builders.alert(at=self.house.time.wall).dump()]
        reply = await self.house.admin.create(path_of(Incident, self.house.namespace), document)
        incident = Incident.parse(reply.document)
        known = builders.incident(Phase.INVESTIGATED).status
        incident = await self._go(
            incident, Phase.TRIAGED, Reason.CLASSIFIED, classification=known.classification, usage=known.usage
        )
        found = ("target", "recalled", "evidence", "evidence_digest", "diagnosis")
        incident = await self._go(
            incident, Phase.INVESTIGATED, Reason.DIAGNOSED, **{each: getattr(known, each) for each in found}
        )
        plan = builders.plan(
            incident_uid=incident.metadata.uid, actions=await self._actions(target, dangerous=dangerous)
        )
        return await self._go(
            incident,
            Phase.AWAITING_APPROVAL,
            Reason.PLAN_PROPOSED,
            plan=plan,
            guards=await self.tools.cluster.guards(),
            approvals_required=self.tools.settings.quorum.of(plan.tier),
        )

    async def accepts(self, name: str = INCIDENT, *, person: str = "alice", **plan: str) -> Incident:
        """The plan is proposed, a person approves, and the approval is accepted: the gate is next."""
        await self.proposes(name, **plan)  # type: ignore[arg-type]
        await self.house.say(person, on=name)
        return await self.until(Phase.EXECUTING, name=name)

    async def _actions(self, target: str, *, dangerous: bool) -> Sequence[Action]:
        path = path_of(RemediationTarget, self.house.namespace, target)
        declared = RemediationTarget.model_validate((await self.house.admin.get(path)).document)
        baseline = await asyncio.to_thread(self.tools.adapter.observe, declared)
        pinned = ActionTarget(
            name=declared.metadata.name,
            uid=declared.metadata.uid,
            generation=declared.metadata.generation,
            state=baseline.state,
        )
        restart = builders.action(target=pinned)
        return [restart, builders.action(ActionType.ROLLBACK_DEPLOY, target=pinned)] if dangerous else [restart]

    async def _go(self, incident: Incident, phase: Phase, reason: Reason, **changes: object) -> Incident:
        return await self.writer.carry_out(incident, Transition(phase, reason, "for this story", changes))


def outcome_of(incident: Incident) -> tuple[Result, str]:
    """Result and reason of the one real action."""
    (step,) = (step for step in incident.status.steps if step.intent is not None)
    assert step.outcome is not None
    return step.outcome.result, step.outcome.reason
