"""Incidents live through a storm on the API: real operators with kopf, a real API server, real protocols on all sides.

A run is one incident's life. Runs come in batches that share two operators and a storm; an operator that ends is
started again, as Kubernetes does. People and the gateway are not in the storm. It calms down after a while, and then
every incident must come to an end.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from praxis.api.accounts import Names
from praxis.api.approval import Decision, IncidentApproval
from praxis.api.incident import Incident
from praxis.api.target import RemediationTarget
from praxis.cli.trail import read_records
from praxis.controller.operator import operator
from praxis.controlplane import ControlPlane
from praxis.demo.function_compute import CredentialSeed, EmulatorServer, Fault, Seed
from praxis.demo.function_compute.faults import Kind
from praxis.demo.processes import start
from praxis.demo.stack import ACCESS_KEY, PRAXIS, Service
from praxis.kube import Kube, path_of
from praxis.machine import TERMINAL, Phase
from praxis.settings import ActionSettings, ModelSettings, OperatorSettings, RecorderSettings
from tests import builders
from tests.e2e.life import alert
from tests.faults.storm import Storm
from tests.faults.witness import Witness, violations
from tests.proxy import proxied

log = logging.getLogger(__name__)

NAMES = Names()
BATCH = 8
REPLICAS = 2
STORM_SECONDS = 15.0
CALM_SECONDS = 120.0
"""For every incident to end once the storm is over: kopf may wait for 21 s, a key that failed often for minutes."""
LOOK_SECONDS = 0.25
RESTART_SECONDS = 0.5
SERVED = {
    "applied": None,
    "refused": Fault(kind=Kind.STATUS, status=400, code="InvalidArgument"),
    "lost before": Fault(kind=Kind.DROP_BEFORE),
    "lost after": Fault(kind=Kind.DROP_AFTER),
}
"""What the service does with the first request that changes a function."""


@dataclass
class Outcome:
    """What a campaign showed."""

    runs: int = 0
    violations: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    hits: Counter[str] = field(default_factory=Counter)
    dispatches: int = 0
    restarts: int = 0


async def campaign(plane: ControlPlane, directory: Path, *, runs: int, seed: int) -> Outcome:
    """Run so many lives, batch by batch."""
    outcome = Outcome()
    port_file = directory / "model.port"
    command = [*PRAXIS, "scripted-model", "--port-file", str(port_file)]
    model = await asyncio.to_thread(start, "model", command, directory=directory, environment={}, port_file=port_file)
    try:
        for number, begun in enumerate(range(0, runs, BATCH)):
            place = directory / f"batch-{number}"
            place.mkdir()
            batch = Batch(plane, place, f"{seed}/{number}", f"http://127.0.0.1:{model.port}/v1", outcome)
            await batch.run(min(BATCH, runs - begun))
    finally:
        await asyncio.to_thread(model.stop)
    return outcome


class Batch:
    """Incidents that share a namespace, operators and a storm."""

    def __init__(self, plane: ControlPlane, directory: Path, seed: str, model_url: str, outcome: Outcome) -> None:
        self._plane = plane
        self._directory = directory
        self._seed = seed
        self._model_url = model_url
        self._outcome = outcome
        self._dice = random.Random(seed)  # no secret
        self._namespace = f"storm-{secrets.token_hex(4)}"
        self._storm = Storm(seed)
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": self._namespace}})

    async def run(self, count: int) -> None:
        """So many lives, side by side."""
        services = [Service(f"run{number}") for number in range(count)]
        async with AsyncExitStack() as stack:
            witness = self._witness(services)
            server = stack.enter_context(EmulatorServer(witness))
            admin = await stack.enter_async_context(await Kube.connect(self._plane.admin_kubeconfig))
            person = self._plane.kubeconfig("alice", [NAMES.approvers_group])
            alice = await stack.enter_async_context(await Kube.connect(person))
            lives = [
                Life(self._namespace, each, admin, alice, random.Random(f"{self._seed}/{each.name}"))
                for each in services
            ]
            for each in lives:
                await each.begin(server.url)
            async with self._operators():
                calm = asyncio.create_task(self._calms_down())
                await asyncio.gather(*(each.live() for each in lives))
                calm.cancel()
            await self._judge(admin, witness, services)

    async def _calms_down(self) -> None:
        await self._storm.begun.wait()
        await asyncio.sleep(STORM_SECONDS)
        self._storm.raging = False

    def _witness(self, services: list[Service]) -> Witness:
        keys = [CredentialSeed(access_key_id=ACCESS_KEY, access_key_secret=self._namespace)]
        seed = Seed(functions=[each.seed() for each in services], credentials=keys)
        witness = Witness(seed, plane=self._plane, namespace=self._namespace)
        for each in services:
            served = SERVED[self._dice.choice(["applied", "applied", *SERVED])]
            if served is not None:
                witness.arm(served.model_copy(update={"function": each.name}))
            document = {"accessKeyId": ACCESS_KEY, "accessKeySecret": self._namespace}
            (self._directory / f"{each.name}.json").write_text(json.dumps(document))
        return witness

    @asynccontextmanager
    async def _operators(self) -> AsyncIterator[None]:
        account = self._plane.service_account_kubeconfig(NAMES.namespace, NAMES.operator_account)
        async with proxied(account, self._directory) as proxy:
            proxy.draw = self._storm.draw
            replicas = [
                asyncio.create_task(self._kept_running(self._settings(proxy.kubeconfig, each)))
                for each in range(REPLICAS)
            ]
            try:
                yield
            finally:
                for each in replicas:
                    each.cancel()
                await asyncio.gather(*replicas, return_exceptions=True)

    async def _kept_running(self, settings: OperatorSettings) -> None:
        while True:
            ended = asyncio.Event()
            try:
                async with operator(settings, stop=ended):
                    await ended.wait()
            except Exception as error:  # noqa: BLE001  # whatever it ends with, it is started again
                log.warning("an operator ended: %r", error)
            self._outcome.restarts += 1
            await asyncio.sleep(RESTART_SECONDS)

    def _settings(self, kubeconfig: Path, replica: int) -> OperatorSettings:
        return OperatorSettings(
            kubeconfig=kubeconfig,
            namespaces=[self._namespace],
            models=ModelSettings(
                base_url=self._model_url,
                fast="scripted-fast",
                reasoning="scripted-reasoning",
                embedding="scripted-embedding",
            ),
            actions=ActionSettings(
                credentials_dir=self._directory,
                dispatch_window=5,
                request_timeout=3,
                verify_deadline=12,
                poll_interval=0.3,
            ),
            memory_path=self._directory / f"memory-{replica}.db",
            recorder=RecorderSettings(path=self._directory / f"recorder-{replica}.db"),
            resync_interval=3,
            watch_deadline=8,
            lease_duration=3,
            lease_renew=1,
            http_host="127.0.0.1",
            http_port=0,
        )

    async def _judge(self, admin: Kube, witness: Witness, services: list[Service]) -> None:
        said = (await admin.get(path_of(IncidentApproval, self._namespace))).document["items"]
        records = read_records(list(self._directory.glob("recorder-*.db")))
        self._outcome.hits += self._storm.hits
        for each in services:
            document = (await admin.get(path_of(Incident, self._namespace, each.name))).document
            found = list(violations(document, witness, statements=said, records=records))
            self._outcome.violations += [f"seed {self._seed}, {each.name}: {what}" for what in found]
            self._outcome.ends[f"{document['status']['phase']} {document['status'].get('reason', '')}"] += 1
            self._outcome.dispatches += len(witness.seen.get(each.name, []))
            self._outcome.runs += 1


@dataclass(frozen=True)
class Life:
    """One incident, and the people and the gateway around it."""

    namespace: str
    service: Service
    admin: Kube
    alice: Kube
    dice: random.Random

    @property
    def path(self) -> str:
        """Where the incident is."""
        return path_of(Incident, self.namespace, self.service.name)

    async def begin(self, url: str) -> None:
        """Its target is declared, and its alert fires."""
        target = self.service.manifest(self.namespace, url)
        await self.admin.create(path_of(RemediationTarget, self.namespace), target)
        name = self.service.name
        spec = {
            "source": {"receiver": "kubectl", "groupKey": name, "authentication": "direct"},
            "summary": f"Memory of function {name} is at 97%",
            "alerts": [alert(self.service, "firing")],
        }
        document = {"apiVersion": target["apiVersion"], "kind": "Incident", "metadata": {"name": name}, "spec": spec}
        await self.admin.create(path_of(Incident, self.namespace), document)

    async def live(self) -> None:
        """Decide on every plan, clear the alert once that may help, until the incident has ended or time is up."""
        deadline = asyncio.get_running_loop().time() + STORM_SECONDS + CALM_SECONDS
        decided: set[str] = set()
        while asyncio.get_running_loop().time() < deadline:
            incident = Incident.parse((await self.admin.get(self.path)).document)
            phase, plan = incident.status.phase, incident.status.plan
            if phase in TERMINAL:
                return
            if phase is Phase.AWAITING_APPROVAL and plan is not None and plan.digest not in decided:
                await self._decide(incident, first=not decided)
                decided.add(plan.digest)
                if self.dice.random() < 0.1:
                    await self._clear()
            if phase is Phase.OBSERVING and incident.spec.firing:
                await self._clear()
            await asyncio.sleep(LOOK_SECONDS)

    async def _decide(self, incident: Incident, *, first: bool) -> None:
        no = first and self.dice.random() < 0.15
        decision = Decision.REJECT if no else Decision.APPROVE
        name = f"{self.service.name}-{incident.status.plan.revision if incident.status.plan else 0}"
        expires = datetime.now(UTC) + timedelta(hours=1)
        given = builders.approval("alice", of=incident, name=name, decision=decision, expires=expires)
        await self.alice.create(path_of(IncidentApproval, self.namespace), builders.manifest(given))

    async def _clear(self) -> None:
        await self.admin.merge_patch(self.path, {"spec": {"alerts": [alert(self.service, "resolved")]}})
