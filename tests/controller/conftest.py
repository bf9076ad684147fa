"""Fixtures of these tests: the shared control plane with everything installed, and incidents on it."""

from __future__ import annotations

import contextlib
import itertools
import json
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from praxis.api.accounts import Names
from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import Resource
from praxis.api.incident import Incident
from praxis.api.target import RemediationTarget
from praxis.controller.cluster import KubeCluster
from praxis.controller.sightings import Intents
from praxis.controller.status import difference
from praxis.controller.writer import StatusWriter
from praxis.controlplane import ControlPlane
from praxis.controlplane.errors import RequestRefused
from praxis.kube import Kube, path_of
from praxis.machine import Phase
from praxis.settings import OperatorSettings
from tests import builders
from tests.phases.world import HandClock, Time
from tests.proxy import Proxy, proxied
from tests.records import journal

ROOT = Path(__file__).parents[2]
NAMES = Names()
POLICY_SECONDS = 60.0
"""For policies to be in force; it takes a second or two."""


@pytest.fixture(scope="session")
def installed(plane: ControlPlane) -> ControlPlane:
    """The control plane with CRDs, roles and policies in force."""
    install = ("apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "crds"))
    plane.kubectl(*install)
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
    plane.kubectl(*install, "-f", str(ROOT / "manifests"))
    probe = builders.manifest(builders.approval("somebody-else"))
    probe["metadata"] = {"name": "probe", "namespace": "default"}
    deadline = time.monotonic() + POLICY_SECONDS
    # Established is said before the storage is served; until then a list is answered 429.
    while not all(served(plane, each) for each in (Incident, IncidentApproval, IncidentReconciliation)):
        assert time.monotonic() < deadline, "the storage is not served"
        time.sleep(0.1)
    while time.monotonic() < deadline:
        done = plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(probe), check=False)
        if "spec.approver.username must be you: admin" in done.stderr:
            return plane
        time.sleep(0.1)
    raise TimeoutError(f"the policies are not in force: {done.stderr}")


def served(plane: ControlPlane, kind: type[Resource]) -> bool:
    """Whether objects of a kind can be listed."""
    try:
        plane.request("GET", path_of(kind, None))
    except RequestRefused:
        return False
    return True


@dataclass(frozen=True)
class Stage:
    """A namespace of its own, and everybody who acts in it; the operator reaches the API server through the proxy."""

    namespace: str
    plane: ControlPlane
    admin: Kube
    operator: Kube
    direct: Kube
    proxy: Proxy
    cluster: KubeCluster
    clock: HandClock
    intents: Intents
    writer: StatusWriter

    async def incident(self, phase: Phase, name: str = "inc-1", **life: object) -> Incident:
        """An incident that came to a phase the usual way, each write by the operator."""
        document = builders.manifest(builders.incident(Phase.NEW, name=name, namespace=self.namespace))
        created = (await self.admin.create(path_of(Incident, self.namespace), document)).document
        uid = created["metadata"]["uid"]
        states = builders.history(phase, name=name, namespace=self.namespace, uid=uid, **life)  # type: ignore[arg-type]
        for before, after in itertools.pairwise(states):
            if before.spec != after.spec:
                await self.respecify(name, after)
            await self.direct.json_patch(self.status_of(name), difference(before.status, after.status))
        return await self.stored(name)

    async def respecify(self, name: str, incident: Incident) -> None:
        """The gateway merges."""
        changed = [{"op": "replace", "path": "/spec", "value": incident.dump()["spec"]}]
        await self.admin.json_patch(path_of(Incident, self.namespace, name), changed)

    async def merge_an_alert(self, name: str = "inc-1") -> None:
        """The gateway merges another alert into an incident's spec."""
        another = builders.alert(fingerprint="f2").dump()
        added = [{"op": "add", "path": "/spec/alerts/-", "value": another}]
        await self.admin.json_patch(path_of(Incident, self.namespace, name), added)

    async def stored(self, name: str = "inc-1") -> Incident:
        """The incident as it is stored."""
        return Incident.parse((await self.direct.get(path_of(Incident, self.namespace, name))).document)

    async def delete(self, name: str = "inc-1") -> None:
        """Somebody deletes an incident."""
        await self.admin.delete(path_of(Incident, self.namespace, name))

    async def declare(self) -> RemediationTarget:
        """The usual target, in this namespace, of an account of its own: two targets of one function are refused."""
        document = builders.manifest(builders.target(namespace=self.namespace))
        document["spec"]["functionCompute"]["accountId"] = str(int(self.namespace.removeprefix("stage-"), 16))
        reply = await self.admin.create(path_of(RemediationTarget, self.namespace), document)
        return RemediationTarget.model_validate(reply.document)

    async def say(self, given: IncidentApproval) -> None:
        """A person decides, under their own name."""
        path = self.plane.kubeconfig(given.spec.approver.username, [NAMES.approvers_group])
        async with await Kube.connect(path) as kube:
            await kube.create(path_of(IncidentApproval, self.namespace), builders.manifest(given))

    def status_of(self, name: str) -> str:
        """The path of an incident's status."""
        return path_of(Incident, self.namespace, name, "status")


@pytest.fixture
async def stage(installed: ControlPlane, tmp_path: Path) -> AsyncIterator[Stage]:
    """A namespace, an operator as it is installed, and an admin."""
    namespace = f"stage-{secrets.token_hex(4)}"
    installed.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    account = installed.service_account_kubeconfig(NAMES.namespace, NAMES.operator_account)
    # The API server stamps and judges by its own time, so this begins there.
    clock = HandClock(Time(wall=datetime.now(UTC)))
    intents = Intents(clock=clock)
    async with contextlib.AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(proxied(account, tmp_path))
        operator = await stack.enter_async_context(await Kube.connect(proxy.kubeconfig))
        direct = await stack.enter_async_context(await Kube.connect(account))
        admin = await stack.enter_async_context(await Kube.connect(installed.admin_kubeconfig))
        cluster = KubeCluster(kube=operator, settings=OperatorSettings())
        yield Stage(
            namespace=namespace,
            plane=installed,
            admin=admin,
            operator=operator,
            direct=direct,
            proxy=proxy,
            cluster=cluster,
            clock=clock,
            intents=intents,
            writer=StatusWriter(
                kube=operator,
                cluster=cluster,
                clock=clock,
                actor=builders.OPERATOR,
                intents=intents,
                journal=journal(),
            ),
        )
