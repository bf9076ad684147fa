"""One worker: a namespace, an emulator, staged incidents, and one run after the other.

A worker has no thread and no event loop, as its replicas are forked from it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from praxis.api.accounts import Names
from praxis.api.approval import IncidentApproval
from praxis.api.incident import Incident
from praxis.api.target import RemediationTarget
from praxis.controller.cluster import KubeCluster
from praxis.controller.queue import Key
from praxis.controlplane import ControlPlane
from praxis.controlplane.errors import RequestRefused
from praxis.demo.function_compute import Admin
from praxis.kube import Kube, path_of, resource_path
from praxis.settings import ActionSettings, OperatorSettings
from tests.chaos import gateway, staging, witness
from tests.chaos.api import Api
from tests.chaos.matrix import Behaviour, Case, Part
from tests.chaos.properties import Facts, violations
from tests.chaos.replica import Setting
from tests.chaos.run import Conductor, Ended
from tests.chaos.timing import Board

NAMES = Names()
CREDENTIALS = "chaos.json"
KEY, SECRET = witness.KEY, witness.SECRET
BATCH = 16
VERIFY_SECONDS = 40.0
POLL_SECONDS = 8.0
"""Time costs nothing, but each look does; a handful shows as much as the default's 150."""


@dataclass
class Result:
    """One run and what it showed."""

    case: Case
    place: str
    dispatches: int
    struck: bool
    violations: list[str]
    foreign_claim: bool = False
    story: list[str] = field(default_factory=list)
    places: list[list[Any]] = field(default_factory=list)
    chains: dict[str, str] = field(default_factory=dict)


class Lab:
    """Runs cases in a namespace of its own."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        (directory / CREDENTIALS).write_text(json.dumps({"accessKeyId": KEY, "accessKeySecret": SECRET}))
        self._plane = plane
        self._directory = directory
        self._namespace = f"chaos-{secrets.token_hex(4)}"
        self._settings = OperatorSettings(
            namespaces=[self._namespace],
            actions=ActionSettings(
                credentials_dir=directory, verify_deadline=VERIFY_SECONDS, poll_interval=POLL_SECONDS
            ),
        )
        self._identities = staging.Identities(
            admin=plane.admin_kubeconfig,
            operator=plane.service_account_kubeconfig(NAMES.namespace, NAMES.operator_account),
            person=plane.kubeconfig("alice", [NAMES.approvers_group]),
        )
        # What is expected of an installation takes a tenth of a second to render: once, not in each replica.
        self._cluster = KubeCluster(kube=cast(Kube, None), settings=self._settings)
        self._board = Board()
        self._api = self._connect()
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": self._namespace}})

    def run(self, cases: Sequence[Case]) -> Iterator[Result]:
        """Run cases, on incidents that are staged some at a time and deleted afterwards."""
        for first in range(0, len(cases), BATCH):
            yield from self._batch(cases[first : first + BATCH])

    def _batch(self, cases: Sequence[Case]) -> Iterator[Result]:
        names = [f"run-{secrets.token_hex(5)}" for _ in cases]
        self._board.begin(time.time())
        with witness.witness(self._connect, self._namespace, self._board) as url:
            scene = staging.Scene(self._identities, self._settings, self._namespace, url)
            staging.stage(names, scene)
            for name, case in zip(names, cases, strict=True):
                yield self._one(case, name, Admin(url))
        self._clear(names)

    def _one(self, case: Case, name: str, admin: Admin) -> Result:
        if case.behaviour is Behaviour.NEVER_ROTATES:
            admin.change(name, refuse_to_rotate=True)
        armed = [admin.arm(each) for each in case.behaviour.faults(name, late=case.late)]
        setting = Setting(
            cluster=self._cluster,
            kubeconfig=self._identities.operator,
            directory=self._directory,
            settings=self._settings,
            board=self._board,
            key=Key(self._namespace, name),
        )
        ended = self._conduct(case, setting)
        admin.light()
        for each in armed:
            admin.disarm(each)
        facts = Facts(
            incident=Incident.parse(self._api.get(path_of(Incident, self._namespace, name))),
            target=self._target(name),
            function=admin.function(name),
            ended=ended,
        )
        wrong = violations(facts)
        if case.leads_to not in {None, facts.incident.status.phase}:
            wrong.append(f"undisturbed, it ended in {facts.place}, not in {case.leads_to}")
        last = ended.replicas[-1].rest if case.fault is None else None
        return Result(
            case=case,
            place=facts.place,
            dispatches=len(facts.dispatches),
            struck=ended.struck,
            violations=wrong,
            story=story(ended) if wrong else [],
            foreign_claim=facts.foreign_claim,
            places=last["places"] if last else [],
            chains=last["chains"] if last else {},
        )

    def _conduct(self, case: Case, setting: Setting) -> Ended:
        conductor = Conductor(setting, case.script)
        if case.part not in {Part.LOST_INTENT, Part.LOST_OUTCOME}:
            return conductor.run()
        intent = case.part is Part.LOST_INTENT
        with gateway.losing(setting.kubeconfig, self._directory, setting.key.name, intent=intent) as through:
            return conductor.run(through=through)

    def _target(self, name: str) -> RemediationTarget:
        listed = self._api.get(path_of(RemediationTarget, self._namespace))
        return next(
            RemediationTarget.model_validate(each) for each in listed["items"] if each["metadata"]["name"] == name
        )

    def _connect(self) -> Api:
        return Api(self._plane.server, self._plane.ca_file, self._identities.operator)

    def _clear(self, names: Sequence[str]) -> None:
        """Delete what the runs leave: thousands of objects make every list slow."""
        gone = [{"op": "remove", "path": "/status/holder"}]
        for name in names:
            target = path_of(RemediationTarget, self._namespace, name, "status")
            self._api.call("PATCH", target, gone, kind="application/json-patch+json")
        events = resource_path("/apis/events.k8s.io/v1", "events", self._namespace)
        for kind in (RemediationTarget, Incident, IncidentApproval):
            # An incident with an open intent stays, as it must.
            with suppress(RequestRefused):
                self._plane.request("DELETE", path_of(kind, self._namespace))
        self._plane.request("DELETE", events)


def story(ended: Ended) -> list[str]:
    """What each replica saw, for whoever looks into a violation."""
    return [
        f"replica {each.slot} ({each.ended}): {each.broken or (each.rest and ' | '.join(each.rest['looks']))}"
        for each in ended.replicas
    ]
