"""Steps of an incident's life, as the tests drive it: through kubectl and the praxis command, as people do."""

from __future__ import annotations

import json
import subprocess
import time
from datetime import UTC, datetime

from praxis.api.incident import Incident
from praxis.clock import rfc3339
from praxis.demo.stack import POLL_SECONDS, PRAXIS, Service, Stack
from praxis.machine import Phase

PATIENCE_SECONDS = 90.0


def begin(stack: Stack, service: Service, *, suffix: str = "") -> Incident:
    """An incident that a person made, in AwaitingApproval."""
    return reached(stack, declare(stack, service, suffix=suffix), Phase.AWAITING_APPROVAL)


def declare(stack: Stack, service: Service, *, suffix: str = "") -> str:
    """The name of an incident that a person makes."""
    name = f"memory-{service.name}{suffix}"
    stack.apply(
        [
            {
                "apiVersion": "praxis.kopachelli.dev/v1alpha1",
                "kind": "Incident",
                "metadata": {"name": name, "namespace": stack.namespace},
                "spec": {
                    "source": {"receiver": "kubectl", "groupKey": name, "authentication": "direct"},
                    "summary": f"Memory of function {service.name} is at 97%",
                    "alerts": [alert(service, "firing")],
                },
            }
        ]
    )
    return name


def alert(service: Service, status: str) -> dict[str, object]:
    """The alert of a service whose memory grows."""
    return {
        "fingerprint": "f1",
        "status": status,
        "startsAt": "2026-12-01T02:00:00Z",
        **({"endsAt": rfc3339(datetime.now(UTC))} if status == "resolved" else {}),
        "labels": {"alertname": "FunctionMemoryHigh", "service": service.name},
        "annotations": {"summary": f"Memory of function {service.name} grows until it is out of memory"},
    }


def approve(stack: Stack, incident: Incident, *, person: str = "alice") -> None:
    """Approve as a person, without waiting for the operator's verdict."""
    done = praxis(stack, "approve", incident.metadata.name, "--yes", "--timeout", "0", person=person)
    assert done.returncode in {0, 3}, done.stderr + done.stdout


def praxis(stack: Stack, *command: str, person: str = "alice") -> subprocess.CompletedProcess[str]:
    """Run a people's command as a person."""
    kubeconfig = str(stack.person(person))
    return subprocess.run(
        [*PRAXIS, *command, "-n", stack.namespace, "--kubeconfig", kubeconfig],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def clear(stack: Stack, service: Service, incident: Incident) -> None:
    """The alert clears."""
    change = {"spec": {"alerts": [alert(service, "resolved")]}}
    stack.plane.kubectl(
        "patch", "incident", incident.metadata.name, "-n", stack.namespace, "--type=merge", f"-p={json.dumps(change)}"
    )


def reached(stack: Stack, name: str, phase: Phase) -> Incident:
    """The incident, once it is in a phase."""
    return stack.wait(name, lambda each: each.status.phase is phase, timeout=PATIENCE_SECONDS)


def freed(stack: Stack, service: Service) -> None:
    """Return once nobody holds the target of a service. Raises TimeoutError."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    target = ("get", "remediationtarget", service.target, "-n", stack.namespace, "-o", "jsonpath={.status.holder}")
    while holder := stack.plane.kubectl(*target).stdout:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{service.target} is held: {holder}")
        time.sleep(POLL_SECONDS)
