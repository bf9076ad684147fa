"""The tools over the cluster, against the real API server, with no more than the evidence role allows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from praxis.controlplane import ControlPlane
from praxis.digest import digest
from praxis.evidence import cluster
from praxis.evidence.contract import Scope
from praxis.evidence.toolbox import EvidenceToolbox
from tests.evidence.conftest import Namespace
from tests.evidence.kubelet import Kubelet, running_kubelet

pytestmark = pytest.mark.controlplane

TOKEN = "ghp" + "_" + "a1B2" * 9


def _pod(
    name: str, *, node: str | None = None, image: str = "registry.example/shop/checkout:1.2.3", **status: Any
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [
            {
                "name": "app",
                "image": image,
                "resources": {"limits": {"memory": "128Mi"}},
                "env": [{"name": "PLAIN", "value": "not-to-be-shown"}],
            }
        ]
    }
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "checkout"}},
        "spec": spec,
        "status": status,
    }


RUNNING = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [
        {
            "name": "app",
            "ready": True,
            "restartCount": 0,
            "image": "i",
            "imageID": "",
            "state": {"running": {"startedAt": "2026-01-31T11:00:00Z"}},
        }
    ],
}
CRASHING = {
    "phase": "Running",
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "ContainersNotReady",
            "lastTransitionTime": "2026-01-31T11:59:00Z",
        }
    ],
    "containerStatuses": [
        {
            "name": "app",
            "ready": False,
            "restartCount": 7,
            "image": "i",
            "imageID": "",
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
            "lastState": {
                "terminated": {
                    "exitCode": 137,
                    "reason": "OOMKilled",
                    "startedAt": "2026-01-31T11:50:00Z",
                    "finishedAt": "2026-01-31T11:58:00Z",
                }
            },
        }
    ],
}


async def test_pods_tell_why_they_are_unwell(toolbox: EvidenceToolbox, namespace: Namespace, scope: Scope) -> None:
    """The unwell come first, with restarts, the reasons of now and before, limits and image; no environment."""
    namespace.create("/api/v1", "pods", _pod("a-well", **RUNNING))
    made = namespace.create("/api/v1", "pods", _pod("b-crashing", node="node-1", **CRASHING))

    seen = await toolbox.call(scope, "list_pods", '{"selector": "app=checkout"}')

    lines = seen.excerpt.splitlines()
    assert lines[0] == (
        f"b-crashing phase=Running node=node-1 created={made['metadata']['creationTimestamp']} "
        "Ready=False(ContainersNotReady since 2026-01-31T11:59:00Z)"
    )
    assert lines[1] == (
        "  container app image=registry.example/shop/checkout:1.2.3 ready=false restarts=7 limit.memory=128Mi "
        "now=CrashLoopBackOff(back-off 5m0s) "
        "last=OOMKilled(exit 137, started 2026-01-31T11:50:00Z, finished 2026-01-31T11:58:00Z)"
    )
    assert lines[2].startswith("a-well phase=Running node=none ")
    assert len(lines) == 4
    assert "not-to-be-shown" not in seen.excerpt
    assert seen.query == "selector=app=checkout limit=40"
    assert seen.truncated is False
    assert seen.digest == digest(seen.excerpt)


async def test_the_same_facts_have_the_same_digest(
    toolbox: EvidenceToolbox, namespace: Namespace, scope: Scope
) -> None:
    """Nothing in an observation depends on when or in which order it was read; another fact changes it."""
    namespace.create("/api/v1", "pods", _pod("a", **RUNNING))
    first = await toolbox.call(scope, "list_pods", "{}")
    second = await toolbox.call(scope, "list_pods", "")
    namespace.create("/api/v1", "pods", _pod("b", **RUNNING))
    third = await toolbox.call(scope, "list_pods", "{}")

    assert first == second
    assert third.digest != first.digest


@pytest.mark.parametrize(("limit", "shown"), [(1, 1), (2, 2), (3, 3), (4, 3)])
async def test_pods_are_limited_and_it_says_so(
    toolbox: EvidenceToolbox, namespace: Namespace, scope: Scope, limit: int, shown: int
) -> None:
    """What is left out is counted, and the observation is marked."""
    for name in ("a", "b", "c"):
        namespace.create("/api/v1", "pods", _pod(name, **RUNNING))

    seen = await toolbox.call(scope, "list_pods", json.dumps({"limit": limit}))

    assert seen.excerpt.count("phase=Running") == shown
    assert seen.truncated is (shown < 3)
    assert (f"({3 - shown} not shown)" in seen.excerpt) is (shown < 3)


async def test_another_namespace_is_not_seen(
    toolbox: EvidenceToolbox, plane: ControlPlane, namespace: Namespace, scope: Scope
) -> None:
    """Pods, events and workloads of other namespaces are outside the scope, whatever the role allows."""
    other = Namespace(plane, f"{namespace.name}-other")
    plane.request(
        "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other.name}}
    )
    other.create("/api/v1", "pods", _pod("theirs", **RUNNING))
    other.create("/apis/events.k8s.io/v1", "events", _event("e1", "theirs", "2026-01-31T12:00:00.000000Z"))

    assert (await toolbox.call(scope, "list_pods", "{}")).excerpt == "no pods"
    assert (await toolbox.call(scope, "list_events", "{}")).excerpt == "no events"
    assert (await toolbox.call(scope, "list_workloads", "{}")).excerpt == "no workloads"
    assert (await toolbox.call(scope, "pod_logs", '{"pod": "theirs"}')).excerpt == 'error: pods "theirs" not found'


def _event(name: str, regarding: str, time: str, note: str = "Back-off restarting failed container") -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name},
        "eventTime": time,
        "type": "Warning",
        "reason": "BackOff",
        "action": "Restarting",
        "reportingController": "kubelet",
        "reportingInstance": "node-1",
        "regarding": {"kind": "Pod", "name": regarding},
        "note": note,
    }


async def test_events_come_newest_first(toolbox: EvidenceToolbox, namespace: Namespace, scope: Scope) -> None:
    """Each with its time, type, reason, object, count and message in one line; a series by when it was last seen."""
    namespace.create("/apis/events.k8s.io/v1", "events", _event("e1", "a", "2026-01-31T12:00:00.000000Z"))
    series = {"series": {"count": 5, "lastObservedTime": "2026-01-31T12:09:00.000000Z"}}
    namespace.create("/apis/events.k8s.io/v1", "events", {**_event("e2", "b", "2026-01-31T11:00:00.000000Z"), **series})
    core = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e3", "namespace": namespace.name},
        "involvedObject": {"kind": "Deployment", "name": "c", "namespace": namespace.name},
        "reason": "ScalingReplicaSet",
        "message": f"line one\nline two {TOKEN}",
        "count": 2,
        "type": "Normal",
        "firstTimestamp": "2026-01-31T12:01:00Z",
        "lastTimestamp": "2026-01-31T12:05:00Z",
    }
    namespace.create("/api/v1", "events", core)

    seen = await toolbox.call(scope, "list_events", "{}")

    assert seen.excerpt.splitlines() == [
        "2026-01-31T12:09:00.000000Z Warning BackOff Pod/b x5: Back-off restarting failed container",
        "2026-01-31T12:05:00Z Normal ScalingReplicaSet Deployment/c x2: line one line two [REDACTED:github-token]",
        "2026-01-31T12:00:00.000000Z Warning BackOff Pod/a x1: Back-off restarting failed container",
    ]


async def test_what_praxis_says_of_an_incident_is_no_evidence_for_it(
    toolbox: EvidenceToolbox, namespace: Namespace, scope: Scope
) -> None:
    """Events about PRAXIS' own objects are left out: a diagnosis would cite itself."""
    own = _event("e1", "incident-1", "2026-01-31T12:00:00.000000Z")
    own["regarding"] = {"apiVersion": "praxis.kopachelli.dev/v1alpha1", "kind": "Incident", "name": "incident-1"}
    namespace.create("/apis/events.k8s.io/v1", "events", own)

    assert (await toolbox.call(scope, "list_events", "{}")).excerpt == "no events"


async def test_events_of_one_object(toolbox: EvidenceToolbox, namespace: Namespace, scope: Scope) -> None:
    """Only those regarding it."""
    for name in ("a", "b"):
        namespace.create("/apis/events.k8s.io/v1", "events", _event(f"e-{name}", name, "2026-01-31T12:00:00.000000Z"))

    seen = await toolbox.call(scope, "list_events", '{"object": "b"}')

    assert "Pod/b" in seen.excerpt
    assert "Pod/a" not in seen.excerpt


async def test_workloads_tell_of_their_rollout(toolbox: EvidenceToolbox, namespace: Namespace, scope: Scope) -> None:
    """Replicas, generation, revision and its time, images and conditions; of ReplicaSets the newest three."""
    deployment = _workload("Deployment", "checkout", image="shop/checkout:2")
    deployment["metadata"]["annotations"] = {cluster.REVISION: "5"}
    deployment["status"] = {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "updatedReplicas": 3,
        "conditions": [
            {
                "type": "Available",
                "status": "False",
                "reason": "MinimumReplicasUnavailable",
                "message": "Deployment does not have minimum availability.",
                "lastTransitionTime": "2026-01-31T11:59:00Z",
            }
        ],
    }
    made = namespace.create("/apis/apps/v1", "deployments", deployment)
    for revision in range(1, 6):
        replicaset = _workload("ReplicaSet", f"checkout-{revision}", image=f"shop/checkout:{revision}")
        replicaset["metadata"]["annotations"] = {cluster.REVISION: str(revision)}
        replicaset["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout", "uid": made["metadata"]["uid"]}
        ]
        namespace.create("/apis/apps/v1", "replicasets", replicaset)
    namespace.create("/apis/apps/v1", "statefulsets", _workload("StatefulSet", "db", image="postgres:17"))
    namespace.create("/apis/apps/v1", "daemonsets", _workload("DaemonSet", "agent", image="agent:1"))

    lines = (await toolbox.call(scope, "list_workloads", "{}")).excerpt.splitlines()

    assert lines[0] == (
        "Deployment/checkout ready=2/3 updated=3 generation=1 observed=1 revision=5 "
        f"created={made['metadata']['creationTimestamp']} images=app=shop/checkout:2 "
        "Available=False(MinimumReplicasUnavailable since 2026-01-31T11:59:00Z: "
        "Deployment does not have minimum availability.)"
    )
    assert [line.split()[0] for line in lines[1:]] == [
        "StatefulSet/db",
        "DaemonSet/agent",
        "ReplicaSet/checkout-5",
        "ReplicaSet/checkout-4",
        "ReplicaSet/checkout-3",
    ]
    assert "revision=5 owner=checkout created=" in lines[3]

    of_db = await toolbox.call(scope, "list_workloads", '{"name": "db"}')
    assert [line.split()[0] for line in of_db.excerpt.splitlines()] == ["StatefulSet/db"]
    of_kind = await toolbox.call(scope, "list_workloads", '{"kind": "ReplicaSet", "name": "checkout", "limit": 2}')
    assert [line.split()[0] for line in of_kind.excerpt.splitlines()] == [
        "ReplicaSet/checkout-5",
        "ReplicaSet/checkout-4",
        "(1",
    ]


def _workload(kind: str, name: str, *, image: str) -> dict[str, Any]:
    labels = {"app": name}
    spec: dict[str, Any] = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}},
    }
    if kind != "DaemonSet":
        spec["replicas"] = 3
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def kubelet(plane: ControlPlane, namespace: Namespace, tmp_path: Path) -> AsyncIterator[Kubelet]:
    """A node with a kubelet, named after the namespace, and a pod `app-1` on it."""
    async with running_kubelet(tmp_path) as running:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": namespace.name},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": running.port}},
            },
        }
        created = plane.request("POST", "/api/v1/nodes", {**node, "status": {}})
        plane.request("PUT", f"/api/v1/nodes/{namespace.name}/status", {**created, "status": node["status"]})
        namespace.create("/api/v1", "pods", _pod("app-1", node=namespace.name, **RUNNING))
        yield running


async def test_logs_come_through_the_api_server(toolbox: EvidenceToolbox, scope: Scope, kubelet: Kubelet) -> None:
    """The last lines, redacted, without what a terminal would obey; the query is the kubelet's own."""
    kubelet.logs["app"] = f"old\n\x1b[31mERROR\x1b[0m out of memory\nlogin with {TOKEN}\n".encode()

    seen = await toolbox.call(scope, "pod_logs", '{"pod": "app-1", "tail_lines": 2, "previous": true}')

    assert seen.excerpt == "ERROR out of memory\nlogin with [REDACTED:github-token]"
    assert kubelet.asked == [{"tailLines": "2", "previous": "true"}]
    assert seen.query == "pod=app-1 previous=True tail_lines=2"


async def test_a_long_log_keeps_its_newest_lines(toolbox: EvidenceToolbox, scope: Scope, kubelet: Kubelet) -> None:
    """What has to go goes from the beginning, in whole lines."""
    kubelet.logs["app"] = b"".join(b"line %04d of the log of this container\n" % number for number in range(500))

    seen = await toolbox.call(scope, "pod_logs", '{"pod": "app-1", "tail_lines": 500}')

    lines = seen.excerpt.splitlines()
    assert lines[-1] == "line 0499 of the log of this container"
    assert all(len(line) == 38 for line in lines)
    assert len(seen.excerpt) <= 4096 < len(seen.excerpt) + 39
    assert seen.truncated


async def test_a_log_beyond_the_bytes_that_are_read_is_asked_for_again(
    toolbox: EvidenceToolbox, scope: Scope, kubelet: Kubelet
) -> None:
    """With fewer lines, so that the newest are seen; never more than the bound is held."""
    kubelet.logs["app"] = b"".join(b"%04d " % number + b"x" * 10_000 + b"\n" for number in range(400)) + b"the end\n"

    seen = await toolbox.call(scope, "pod_logs", '{"pod": "app-1", "tail_lines": 400}')

    assert [each["tailLines"] for each in kubelet.asked] == ["400", "50"]
    assert seen.excerpt.splitlines()[-1] == "the end"
    assert seen.truncated


@pytest.mark.parametrize(("length", "shown"), [(cluster.LOG_BYTES - 1, True), (cluster.LOG_BYTES, False)])
async def test_a_line_beyond_the_bytes_that_are_read_is_left_out(
    toolbox: EvidenceToolbox, scope: Scope, kubelet: Kubelet, length: int, shown: bool
) -> None:
    """With its line end it must fit; half of it could end in half a token, which no redactor would recognise."""
    token = TOKEN.encode()
    kubelet.logs["app"] = b"x" * (length - len(token) - 1) + b" " + token + b"\n"

    seen = await toolbox.call(scope, "pod_logs", '{"pod": "app-1", "tail_lines": 1}')

    assert seen.excerpt.endswith(
        "x [REDACTED:github-token]" if shown else "(a line of more than 524288 bytes is not shown)"
    )
    assert seen.truncated


async def test_a_secret_over_the_end_of_the_excerpt_does_not_leak_its_half(
    toolbox: EvidenceToolbox, scope: Scope, kubelet: Kubelet
) -> None:
    """Redaction comes before the cut: no piece of a token or of a key is left at any offset of it."""
    key = "-----BEGIN PRIVATE KEY-----\n" + ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n" * 20)
    for padding in range(4000, 4200, 20):
        filler = "x" * 30 + "\n"
        kubelet.logs["app"] = (f"a {TOKEN}\n{key}-----END PRIVATE KEY-----\n" + filler * (padding // 31)).encode()
        seen = await toolbox.call(scope, "pod_logs", '{"pod": "app-1", "tail_lines": 500}')
        assert "a1B2" not in seen.excerpt
        assert "MIIE" not in seen.excerpt


async def test_logs_that_nobody_serves_are_an_error_to_read(
    toolbox: EvidenceToolbox, scope: Scope, kubelet: Kubelet, namespace: Namespace
) -> None:
    """No such container, no kubelet, no pod: each is an observation that says so."""
    missing = await toolbox.call(scope, "pod_logs", '{"pod": "app-1", "container": "sidecar"}')
    assert missing.excerpt == "error: container sidecar is not valid for pod app-1"
    namespace.create("/api/v1", "pods", _pod("app-2", node="no-such-node", **RUNNING))

    nowhere = await toolbox.call(scope, "pod_logs", '{"pod": "app-2"}')
    assert nowhere.excerpt.startswith("error: ")
    assert "no-such-node" in nowhere.excerpt

    nobody = await toolbox.call(scope, "pod_logs", '{"pod": "app-3"}')
    assert nobody.excerpt == 'error: pods "app-3" not found'


async def test_an_empty_log_says_so(toolbox: EvidenceToolbox, scope: Scope, kubelet: Kubelet) -> None:
    """Nothing written is a fact too."""
    kubelet.logs["app"] = b""
    assert (await toolbox.call(scope, "pod_logs", '{"pod": "app-1"}')).excerpt == "the log is empty"
