"""Puts incidents into Executing, with a target, a function and a person's approval each, by the operator's own writer.

Every write is one that the API server takes. The door is the real one: people's approvals are judged by the phase
AwaitingApproval.
"""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from praxis.actions.function_compute import FunctionComputeAdapter
from praxis.api.approval import IncidentApproval
from praxis.api.incident import Guard, Incident
from praxis.api.plan import Action, ActionTarget, ActionType
from praxis.api.reasons import Reason
from praxis.api.target import FunctionCompute, RemediationTarget
from praxis.clock import SystemClock
from praxis.controller.cluster import KubeCluster
from praxis.controller.sightings import Intents
from praxis.controller.writer import StatusWriter
from praxis.demo.function_compute import Admin
from praxis.kube import Kube, path_of
from praxis.machine import Phase
from praxis.phases import awaiting_approval
from praxis.phases.contract import Tools, Transition
from praxis.settings import OperatorSettings
from tests import builders
from tests.chaos import forking
from tests.chaos.replica import Absent
from tests.records import journal

APPROVAL_HOURS = 12


@dataclass(frozen=True)
class Identities:
    """Kubeconfigs of those who take part."""

    admin: Path
    operator: Path
    person: Path


@dataclass(frozen=True)
class Scene:
    """Where incidents are staged. `url` is the emulator's."""

    identities: Identities
    settings: OperatorSettings
    namespace: str
    url: str


def stage(names: Sequence[str], scene: Scene) -> None:
    """Stage so many incidents in a process of its own. Raises AssertionError when that failed."""
    pid = forking.fork()
    if not pid:
        try:
            asyncio.run(_stage(names, scene))
        except BaseException:  # noqa: BLE001  # a forked process must not return into its parent's code
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status == 0, "the incidents could not be staged"


async def _stage(names: Sequence[str], scene: Scene) -> None:
    async with (
        await Kube.connect(scene.identities.admin) as admin,
        await Kube.connect(scene.identities.operator) as operator,
        await Kube.connect(scene.identities.person) as person,
    ):
        stagehand = Stagehand(admin=admin, operator=operator, person=person, scene=scene)
        guards = await stagehand.tools.cluster.guards()
        for name in names:
            await stagehand.executing(name, guards)


class Stagehand:
    """Leads one incident after the other to its execution."""

    def __init__(self, *, admin: Kube, operator: Kube, person: Kube, scene: Scene) -> None:
        settings = scene.settings
        clock = SystemClock()
        cluster = KubeCluster(kube=operator, settings=settings)
        intents = Intents(clock=clock)
        self._admin = admin
        self._person = person
        self._namespace = scene.namespace
        self._emulator = Admin(scene.url)
        self._adapter = FunctionComputeAdapter(settings=settings.actions, clock=clock)
        self._writer = StatusWriter(
            kube=operator, cluster=cluster, clock=clock, actor=builders.OPERATOR, intents=intents, journal=journal()
        )
        self.tools = Tools(
            settings=settings,
            clock=clock,
            writer="staging",
            cluster=cluster,
            reasoner=Absent(),
            memory=Absent(),
            adapter=self._adapter,
            sightings=intents,
        )

    async def executing(self, name: str, guards: Sequence[Guard]) -> None:
        """An approved plan of a restart and a dry run, about to be carried out."""
        self._emulator.add_function(name=name, region="ap-southeast-1", account_id="1234567890", update_seconds=0)
        target = await self._declare(name)
        incident = await self._born(name)
        status = builders.incident(Phase.INVESTIGATED).status
        incident = await self._go(
            incident, Phase.TRIAGED, Reason.CLASSIFIED, classification=status.classification, usage=status.usage
        )
        fields = ("target", "recalled", "evidence", "evidence_digest", "diagnosis")
        incident = await self._go(
            incident, Phase.INVESTIGATED, Reason.DIAGNOSED, **{each: getattr(status, each) for each in fields}
        )
        plan = builders.plan(incident_uid=incident.metadata.uid, actions=self._actions(target))
        incident = await self._go(
            incident,
            Phase.AWAITING_APPROVAL,
            Reason.PLAN_PROPOSED,
            plan=plan,
            guards=list(guards),
            approvals_required=1,
        )
        await self._approve(incident)
        decision = await awaiting_approval.reconcile(incident, self.tools)
        assert isinstance(decision, Transition), decision
        assert decision.to is Phase.EXECUTING, decision
        await self._writer.carry_out(incident, decision)

    async def _declare(self, name: str) -> RemediationTarget:
        function = FunctionCompute(
            region="ap-southeast-1",
            account_id="1234567890",
            function=name,
            endpoint=self._emulator.url,
            health_path="/healthz",
        )
        declared = builders.target(
            name, namespace=self._namespace, function_compute=function, credentials_file="chaos.json"
        )
        reply = await self._admin.create(path_of(RemediationTarget, self._namespace), builders.manifest(declared))
        return RemediationTarget.model_validate(reply.document)

    async def _born(self, name: str) -> Incident:
        document = builders.manifest(builders.incident(Phase.NEW, name=name, namespace=self._namespace))
        reply = await self._admin.create(path_of(Incident, self._namespace), document)
        return Incident.parse(reply.document)

    def _actions(self, target: RemediationTarget) -> list[Action]:
        pinned = ActionTarget(
            name=target.metadata.name,
            uid=target.metadata.uid,
            generation=target.metadata.generation,
            state=self._adapter.observe(target).state,
        )
        return [builders.action(target=pinned), builders.action(ActionType.UPDATE_CONFIG, target=pinned)]

    async def _go(self, incident: Incident, phase: Phase, reason: Reason, **changes: object) -> Incident:
        return await self._writer.carry_out(incident, Transition(phase, reason, "for a run", changes))

    async def _approve(self, incident: Incident) -> None:
        now = self.tools.clock.now()
        given = builders.approval(of=incident, created=now, expires=now + timedelta(hours=APPROVAL_HOURS))
        await self._person.create(path_of(IncidentApproval, self._namespace), builders.manifest(given))
