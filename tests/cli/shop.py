"""A namespace of a real API server, the people in it, and an operator that is played with its own identity."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import Resource
from praxis.api.incident import Incident
from praxis.approval.judgement import judge
from praxis.approval.reconciliation import judge_reconciliations
from praxis.approval.ruling import Ruling
from praxis.cli import main
from praxis.controlplane import ControlPlane
from praxis.errors import RetryLater
from praxis.kube import Kube, path_of
from praxis.machine import Phase
from praxis.settings import Quorum
from tests.builders import history, manifest, replanned


@dataclass(frozen=True)
class Shop:
    """A namespace of its own, and the people and the operator in it."""

    plane: ControlPlane
    namespace: str

    @property
    def operator(self) -> Path:
        return self.plane.service_account_kubeconfig("praxis-system", "praxis-operator")

    def person(self, name: str, *groups: str) -> Path:
        return self.plane.kubeconfig(user=name, groups=list(groups or ("praxis-approvers",)))

    def run(self, *arguments: str, as_: str | Path = "alice") -> Result:
        """A command, as a person who may approve, unless a kubeconfig is given."""
        kubeconfig = as_ if isinstance(as_, Path) else self.person(as_)
        return CliRunner().invoke(main, [*arguments, "-n", self.namespace, "--kubeconfig", str(kubeconfig)])

    def incident(
        self, phase: Phase = Phase.AWAITING_APPROVAL, name: str = "checkout-latency-1", **life: Any
    ) -> Incident:
        """Lead an incident into a phase, write by write, as the operator."""
        return asyncio.run(self._lead(phase, name, life))

    def write(self, incident: Incident) -> None:
        """Write a status, as the operator."""
        asyncio.run(self._write(incident))

    def replan(self, incident: Incident) -> Incident:
        """Let a Reject lead to another plan."""
        states = replanned(incident)
        for state in states:
            self.write(state)
        return states[-1]

    def stored(self, kind: type[Resource]) -> list[dict[str, Any]]:
        """Every object of a kind in the namespace."""
        listed = self.plane.kubectl("get", kind.plural, "-n", self.namespace, "-o", "json")
        items: list[dict[str, Any]] = json.loads(listed.stdout)["items"]
        return items

    async def _lead(self, phase: Phase, name: str, life: dict[str, Any]) -> Incident:
        life = {"name": name, "namespace": self.namespace, "at": datetime.now(UTC), **life}
        async with await Kube.connect(self.plane.kubeconfig(user="admin", groups=["system:masters"])) as admin:
            first = history(Phase.NEW, **life)[0]
            created = (await admin.create(path_of(Incident, self.namespace), manifest(first))).document
            states = history(phase, uid=created["metadata"]["uid"], **life)
            for state in states[1:]:
                if state.spec != first.spec:
                    await admin.merge_patch(path_of(Incident, self.namespace, name), {"spec": state.dump()["spec"]})
                await self._write(state)
        return states[-1]

    async def _write(self, incident: Incident) -> None:
        async with await Kube.connect(self.operator) as operator:
            await operator.json_patch(
                path_of(Incident, self.namespace, incident.metadata.name, "status"),
                [{"op": "add", "path": "/status", "value": incident.dump()["status"]}],
            )

    @contextmanager
    def judging(self, incident: str = "checkout-latency-1") -> Iterator[None]:
        """An operator that gives every decision and finding on an incident its verdict."""
        stop = threading.Event()
        failures: list[BaseException] = []

        def work() -> None:
            try:
                asyncio.run(self._judge(incident, stop))
            except BaseException as error:
                failures.append(error)
                raise

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        assert not failures

    async def _judge(self, name: str, stop: threading.Event) -> None:
        async with await Kube.connect(self.operator) as kube:
            while not stop.is_set():
                # A server that has just learnt of the CRDs answers 429 for a while, as it fills its cache.
                with suppress(RetryLater):
                    await self._judge_once(kube, name)
                await asyncio.sleep(0.1)

    async def _judge_once(self, kube: Kube, name: str) -> None:
        incident = Incident.parse((await kube.get(path_of(Incident, self.namespace, name))).document)
        reply = await kube.get(path_of(IncidentApproval, self.namespace))
        approvals = [IncidentApproval.model_validate(each) for each in reply.document["items"]]
        found = (await kube.get(path_of(IncidentReconciliation, self.namespace))).document["items"]
        findings = [IncidentReconciliation.model_validate(each) for each in found]
        judgement = judge(incident, approvals, now=datetime.now(UTC), server_now=reply.server_time, quorum=Quorum())
        for ruling in judgement.rulings:
            await self._settle(kube, IncidentApproval, ruling)
        for ruling in judge_reconciliations(incident, findings).rulings:
            await self._settle(kube, IncidentReconciliation, ruling)

    async def _settle(self, kube: Kube, kind: type[Resource], ruling: Ruling) -> None:
        if ruling.verdict is None:
            return
        status = {"verdict": ruling.verdict, "reason": ruling.reason, "message": ruling.message}
        path = path_of(kind, self.namespace, ruling.name, "status")
        await kube.json_patch(path, [{"op": "add", "path": "/status", "value": status}])
