"""Taking PRAXIS away: the break-glass leaves its mark, an uninstall leaves what was recorded, nothing hangs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from praxis.api.incident import Incident
from praxis.controlplane import ControlPlane
from praxis.demo.stack import NAMES, apply, install
from praxis.kube import Kube, path_of
from praxis.machine import Phase
from tests.builders import history, manifest

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parents[2]
BINDING = "praxis-open-intents-stay"
IN_FORCE_SECONDS = 60.0
"""For the API server to hear that a binding is gone; it takes a second or two."""


@pytest.fixture(scope="module")
def own() -> Iterator[ControlPlane]:
    """A control plane of its own, as policies and CRDs are everybody's: installed, without an operator."""
    with ControlPlane.start() as plane:
        install(plane)
        yield plane


def led(plane: ControlPlane, name: str, phase: Phase, *, intent_open: bool = False) -> None:
    """An incident that was led into a phase, in a namespace of its own; or to its open intent."""
    apply(plane, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    asyncio.run(_lead(plane, name, phase, intent_open=intent_open))


async def _lead(plane: ControlPlane, name: str, phase: Phase, *, intent_open: bool) -> None:
    life: dict[str, Any] = {"name": name, "namespace": name, "at": datetime.now(UTC)}
    account = plane.service_account_kubeconfig(NAMES.namespace, NAMES.operator_account)
    async with await Kube.connect(plane.admin_kubeconfig) as admin, await Kube.connect(account) as operator:
        first = history(Phase.NEW, **life)[0]
        uid = (await admin.create(path_of(Incident, name), manifest(first))).document["metadata"]["uid"]
        for state in history(phase, uid=uid, **life)[1:]:
            if state.spec != first.spec:
                await admin.merge_patch(path_of(Incident, name, name), {"spec": state.dump()["spec"]})
            change = {"op": "add", "path": "/status", "value": state.dump()["status"]}
            await operator.json_patch(path_of(Incident, name, name, "status"), [change])
            if intent_open and any(step.open for step in state.status.steps):
                return


def delete(plane: ControlPlane, name: str, *, person: str = "admin") -> tuple[int, str]:
    """kubectl delete, which waits until the object is gone."""
    done = plane.kubectl(
        "delete", "incident", name, "-n", name, "--timeout=20s",
        kubeconfig=plane.kubeconfig(person, ["system:masters"]), check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("phase", Phase)
def test_deletion_never_hangs(own: ControlPlane, phase: Phase) -> None:
    """No operator runs, and none is needed: there is nothing to wait for, in whatever phase."""
    name = f"gone-{phase.lower()}"
    led(own, name, phase)
    assert delete(own, name) == (0, "")


def test_the_break_glass_leaves_its_mark(own: ControlPlane) -> None:
    """Who removed the binding is in the audit log, by name, before the deletion that it allowed."""
    led(own, "held", Phase.OBSERVING, intent_open=True)
    code, said = delete(own, "held")
    assert code != 0
    assert "intent" in said
    breaker = own.kubeconfig("breaker", ["system:masters"])
    own.kubectl("delete", "validatingadmissionpolicybinding", BINDING, kubeconfig=breaker)
    deadline = time.monotonic() + IN_FORCE_SECONDS
    while (answer := delete(own, "held", person="breaker"))[0] != 0:
        assert "intent" in answer[1]
        assert time.monotonic() < deadline
    events = [json.loads(line) for line in own.audit_log.read_text().splitlines()]
    marks = [
        (event["user"]["username"], event["objectRef"]["resource"], event["objectRef"]["name"])
        for event in events
        if event["verb"] == "delete"
        and event["responseStatus"]["code"] == 200
        and event["objectRef"].get("name") in {BINDING, "held"}
    ]
    assert marks == [
        ("breaker", "validatingadmissionpolicybindings", BINDING),
        ("breaker", "incidents", "held"),
    ]
    own.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "manifests"))


def test_an_uninstall_keeps_what_was_recorded(own: ControlPlane) -> None:
    """`kubectl delete -f manifests/` takes accounts, roles and policies; CRDs and incidents stay."""
    led(own, "kept", Phase.AWAITING_APPROVAL)
    before = own.kubectl("get", "incident", "kept", "-n", "kept", "-o", "jsonpath={.metadata.uid}").stdout
    own.kubectl("delete", "-f", str(ROOT / "manifests"), "--wait=false")
    assert own.kubectl("get", "incident", "kept", "-n", "kept", "-o", "jsonpath={.metadata.uid}").stdout == before
    crds = own.kubectl("get", "crd", "-o", "name").stdout.split()
    assert sorted(each.partition("/")[2].partition(".")[0] for each in crds) == [
        "incidentapprovals",
        "incidentreconciliations",
        "incidents",
        "remediationtargets",
    ]
    kinds = "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings"
    left = own.kubectl("get", kinds, "-l", "app.kubernetes.io/part-of=praxis", "-o", "name")
    assert left.stdout == ""
    assert delete(own, "kept") == (0, "")
