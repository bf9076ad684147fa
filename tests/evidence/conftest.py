"""Fixtures of these tests: a namespace of its own on the real API server, read as one who holds the evidence role."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_asyncio.client import ApiClient, Configuration

from praxis.controlplane import ControlPlane
from praxis.evidence.contract import Scope
from praxis.evidence.reader import ReadOnlyKube
from praxis.evidence.toolbox import EvidenceToolbox
from praxis.kube import Kube
from praxis.machine import Phase
from tests import builders

ROOT = Path(__file__).parents[2]
READER = "evidence-reader"
_numbers = itertools.count(1)


class Namespace:
    """A namespace of the shared control plane, written by its admin."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self._plane = plane
        self.name = name

    def create(self, api: str, plural: str, document: dict[str, Any]) -> dict[str, Any]:
        """Create an object here, and its status where the document has one; an event regards something here."""
        if "regarding" in document:
            document = {**document, "regarding": {**document["regarding"], "namespace": self.name}}
        path = f"{api}/namespaces/{self.name}/{plural}"
        created = self._plane.request("POST", path, document)
        if "status" not in document:
            return created
        path = f"{path}/{document['metadata']['name']}/status"
        return self._plane.request("PUT", path, {**created, "status": document["status"]})


@pytest.fixture(scope="session")
def reader_kubeconfig(plane: ControlPlane) -> Path:
    """One who may do what the manifests' ClusterRole `praxis-evidence` says, and nothing else."""
    documents = yaml.safe_load_all((ROOT / "manifests" / "rbac.yaml").read_text())
    [role] = [
        each for each in documents if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "praxis-evidence"
    ]
    api = "/apis/rbac.authorization.k8s.io/v1"
    plane.request("POST", f"{api}/clusterroles", {**role, "metadata": {"name": READER}})
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": READER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": READER}],
    }
    plane.request("POST", f"{api}/clusterrolebindings", binding)
    return plane.kubeconfig(READER)


@pytest.fixture
def namespace(plane: ControlPlane) -> Namespace:
    """A fresh namespace."""
    name = f"evidence-{next(_numbers)}"
    plane.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return Namespace(plane, name)


@pytest.fixture
async def kube(reader_kubeconfig: Path) -> AsyncIterator[Kube]:
    """A connection with the evidence role."""
    async with await Kube.connect(reader_kubeconfig) as connected:
        yield connected


@pytest.fixture
async def no_cluster() -> AsyncIterator[ReadOnlyKube]:
    """A reader of an API server that is not there, for tools that need none."""
    async with Kube(ApiClient(Configuration(host="https://127.0.0.1:1")), request_timeout=2) as nowhere:
        yield ReadOnlyKube(nowhere)


@pytest.fixture
def toolbox(kube: Kube) -> EvidenceToolbox:
    """The tools over the cluster alone."""
    return EvidenceToolbox(kube=ReadOnlyKube(kube))


@pytest.fixture
def scope(namespace: Namespace) -> Scope:
    """What an incident of that namespace may look at."""
    return Scope(incident=builders.incident(Phase.TRIAGED, namespace=namespace.name), targets=())
