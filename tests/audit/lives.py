"""Everything that PRAXIS' identities do, by their own code and with their own tokens, and what was logged of it."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from praxis.api import rbac
from praxis.api.accounts import Names
from praxis.api.incident import Incident
from praxis.controller.cluster import KubeCluster
from praxis.demo import alerts
from praxis.demo.function_compute import Fault
from praxis.demo.function_compute.faults import Kind
from praxis.demo.stack import NAMES, QUICK, Service, Stack
from praxis.demo.surroundings import surroundings
from praxis.evidence.contract import Scope
from praxis.evidence.reader import ReadOnlyKube
from praxis.evidence.toolbox import EvidenceToolbox
from praxis.kube import Kube
from praxis.machine import Phase
from praxis.settings import OperatorSettings
from tests.e2e.life import PATIENCE_SECONDS, freed, praxis, reached
from tests.e2e.test_people import manifest

SERVICES = ("audited", "objected", "unknown")
SETTINGS = {
    **QUICK,
    "PRAXIS_ACTIONS__VERIFY_DEADLINE": "8",
    "PRAXIS_ACTIONS__DISPATCH_WINDOW": "3",
    "PRAXIS_ACTIONS__REQUEST_TIMEOUT": "3",
}
BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)
GITOPS = "system:serviceaccount:argocd:applier"
KINDS = ("incidents", "incidentapprovals", "incidentreconciliations", "remediationtargets")
GRANTED_BY = re.compile(r'of (?:Cluster)?Role "(?P<role>[^"]+)"')
"""How RBAC says which role it allowed a request by (k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac)."""


@dataclass(frozen=True)
class Done:
    """The installation, the incidents that ended, and the log."""

    stack: Stack
    incidents: tuple[Incident, ...]

    def events(self) -> list[dict[str, Any]]:
        """Everything that was logged so far."""
        return [json.loads(line) for line in self.stack.plane.audit_log.read_text().splitlines()]

    def used(self) -> dict[str, set[str]]:
        """What was allowed by each role: `verb resource.group`."""
        found: dict[str, set[str]] = {}
        for event in self.events():
            granted = GRANTED_BY.search(event.get("annotations", {}).get("authorization.k8s.io/reason", ""))
            about = event.get("objectRef")
            if granted is None or about is None:
                continue
            found.setdefault(granted["role"], set()).add(_asked(event["verb"], about))
        return found


def _asked(verb: str, about: dict[str, Any]) -> str:
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    return f"{verb} " + ".".join(filter(None, (resource, about.get("apiGroup"))))


def everything(stack: Stack) -> Done:
    """All lives, one after the other."""
    operator = stack.start_operator()
    ended = (resolved(stack, SERVICES[0]), objected(stack, SERVICES[1]), reconciled(stack, SERVICES[2]))
    operator.stop()
    asyncio.run(looked(stack))
    read_by_people(stack)
    applied_by_a_person(stack)
    applied_by_a_robot(stack)
    return Done(stack, ended)


def resolved(stack: Stack, service: str) -> Incident:
    """Fires, fires again while it is open, is approved and carried out, clears, is remembered, and begins anew."""
    stack.apply(
        surroundings(service, stack.namespace, note="out of memory", reason="OutOfMemory", now=datetime.now(UTC))
    )
    waiting = fired(stack, service)
    stack.post(alerts.memory_leak(service, began=BEGAN))
    done = praxis(stack, "approve", waiting.metadata.name, "--yes")
    assert done.returncode == 0, done.stderr
    reached(stack, waiting.metadata.name, Phase.OBSERVING)
    stack.post(alerts.memory_leak(service, began=BEGAN, ended=BEGAN + timedelta(hours=1)))
    ended = reached(stack, waiting.metadata.name, Phase.RESOLVED)
    fired(stack, service, began=BEGAN + timedelta(hours=2))
    return ended


def objected(stack: Stack, service: str) -> Incident:
    """Sent back, rejected, dismissed, by three people."""
    waiting = fired(stack, service)
    for revision, (person, verb, *more) in enumerate(
        [
            ("bob", "revise", "--correction=restart it"),
            ("carol", "reject", "--reason=no"),
            ("dave", "dismiss", "--reason=no"),
        ],
        start=2,
    ):
        done = praxis(stack, verb, waiting.metadata.name, "--yes", *more, person=person)
        assert done.returncode == 0, done.stderr
        if verb != "dismiss":
            stack.wait(
                waiting.metadata.name,
                lambda each, wanted=revision: (
                    each.status.phase is Phase.AWAITING_APPROVAL  # type: ignore[misc]
                    and each.status.plan is not None
                    and each.status.plan.revision == wanted
                ),
                timeout=PATIENCE_SECONDS,
            )
    return reached(stack, waiting.metadata.name, Phase.CLOSED)


def reconciled(stack: Stack, service: str) -> Incident:
    """Nobody knows what came of it, until a person finds out."""
    stack.emulator.arm(Fault(kind=Kind.DROP_BEFORE, operation="UpdateFunction", function=service))
    waiting = fired(stack, service)
    praxis(stack, "approve", waiting.metadata.name, "--yes", "--timeout", "0", person="erin")
    reached(stack, waiting.metadata.name, Phase.RECONCILIATION_REQUIRED)
    done = praxis(
        stack, "reconcile", waiting.metadata.name, "--observed=not-applied", "--note=looked", "--yes", person="frank"
    )
    assert done.returncode == 0, done.stderr
    freed(stack, Service(service))
    return stack.incident(waiting.metadata.name)


def fired(stack: Stack, service: str, *, began: datetime = BEGAN) -> Incident:
    """Alertmanager posts, and the plan waits for a person."""
    status, answer = stack.post(alerts.memory_leak(service, began=began))
    assert status in {200, 202}, answer
    return reached(stack, str(answer["incident"]).rsplit("/", maxsplit=1)[-1], Phase.AWAITING_APPROVAL)


async def looked(stack: Stack) -> None:
    """What a life does not always come to: a log, and the list of signers. By the operator's own code and token."""
    async with await Kube.connect(stack.identity(NAMES.operator_account)) as kube:
        incident = stack.incident(json.loads(_names(stack))["items"][0]["metadata"]["name"])
        toolbox = EvidenceToolbox(kube=ReadOnlyKube(kube))
        for tool in toolbox.specs():
            arguments = {"pod": "none"} if tool.name == "pod_logs" else {}
            await toolbox.call(Scope(incident=incident, targets=()), tool.name, json.dumps(arguments))
        await KubeCluster(kube=kube, settings=OperatorSettings()).allowed_signers()


def read_by_people(stack: Stack) -> None:
    """kubectl get, by name, as a list and watched, as people of either group do."""
    plane = stack.plane
    for kubeconfig in (
        plane.kubeconfig("alice", [NAMES.approvers_group]),
        plane.kubeconfig("victor", [NAMES.viewers_group]),
    ):
        for kind in KINDS:
            for more in ((), ("--watch", "--request-timeout=1s"), ("none",)):
                plane.kubectl("get", kind, *more, "-n", stack.namespace, kubeconfig=kubeconfig, check=False)
        for more in ((), ("none",)):
            plane.kubectl("get", "events", *more, "-n", stack.namespace, kubeconfig=kubeconfig, check=False)


def applied_by_a_person(stack: Stack) -> None:
    """kubectl apply --server-side, twice: who may patch creates so too, and the second time changes nothing."""
    waiting = stack.incident(json.loads(_names(stack))["items"][0]["metadata"]["name"])
    document = json.dumps(manifest(stack, waiting, person="admin", name="applied"))
    for _ in range(2):
        stack.plane.kubectl("apply", "--server-side", "-f", "-", stdin=document)


def applied_by_a_robot(stack: Stack) -> None:
    """A GitOps controller that was opted in applies, applies again, watches and prunes; nothing of it is signed."""
    plane = stack.plane
    plane.create_service_account("argocd", "applier")
    stack.apply(rbac.signing(Names(signing_accounts=(GITOPS,))))
    kubeconfig = plane.service_account_kubeconfig("argocd", "applier")
    waiting = stack.incident(json.loads(_names(stack))["items"][0]["metadata"]["name"])
    document = json.dumps(manifest(stack, waiting, person="alice", name="by-a-robot"))
    for command in (
        ("create", "-f", "-"),
        ("apply", "--server-side", "-f", "-"),
        ("delete", "-f", "-"),
        ("get", "-f", "-"),
    ):
        plane.kubectl(*command, stdin=document, kubeconfig=kubeconfig, check=False)
    plane.kubectl(
        "get", "incidentapprovals", "--watch", "--request-timeout=1s", "-n", stack.namespace, kubeconfig=kubeconfig,
        check=False,
    )  # fmt: skip


def _names(stack: Stack) -> str:
    """The incidents that wait for a person."""
    found = stack.plane.kubectl("get", "incidents", "-n", stack.namespace, "-o", "json").stdout
    items = [each for each in json.loads(found)["items"] if each["status"]["phase"] == Phase.AWAITING_APPROVAL]
    return json.dumps({"items": items})
