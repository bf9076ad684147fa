"""What the tests of a failing API server share: everything installed, and a proxy to spoil what the operator asks."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from praxis.api.accounts import Names
from praxis.api.target import RemediationTarget
from praxis.controlplane import ControlPlane
from praxis.demo.stack import install
from praxis.kube import Kube, path_of
from praxis.settings import ModelSettings, OperatorSettings, RecorderSettings
from tests import builders
from tests.proxy import Proxy, proxied

NAMES = Names()


@pytest.fixture(scope="session")
def furnished(plane: ControlPlane) -> ControlPlane:
    """The control plane with CRDs, roles and policies in force."""
    install(plane)
    return plane


@dataclass(frozen=True)
class Line:
    """A namespace, and the line between an operator and the API server."""

    namespace: str
    admin: Kube
    proxy: Proxy
    settings: OperatorSettings

    async def declare(self, name: str) -> None:
        """An admin declares a target."""
        declared = builders.manifest(builders.target(name, namespace=self.namespace))
        declared["spec"]["functionCompute"]["function"] = name
        await self.admin.create(path_of(RemediationTarget, self.namespace), declared)

    async def label(self, name: str, value: str) -> None:
        """An admin changes a target."""
        change = {"metadata": {"labels": {"team": value}}}
        await self.admin.merge_patch(path_of(RemediationTarget, self.namespace, name), change)


@pytest.fixture
async def line(furnished: ControlPlane, tmp_path: Path) -> AsyncIterator[Line]:
    """A namespace of its own with one target, and an operator's settings to reach it through the proxy."""
    namespace = f"line-{secrets.token_hex(4)}"
    furnished.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    account = furnished.service_account_kubeconfig(NAMES.namespace, NAMES.operator_account)
    async with proxied(account, tmp_path) as proxy, await Kube.connect(furnished.admin_kubeconfig) as admin:
        settings = OperatorSettings(
            kubeconfig=proxy.kubeconfig,
            namespaces=[namespace],
            models=ModelSettings(
                base_url="http://127.0.0.1:9/v1",
                fast="scripted-fast",
                reasoning="scripted-reasoning",
                embedding="scripted-embedding",
            ),
            memory_path=tmp_path / "memory.db",
            recorder=RecorderSettings(path=tmp_path / "recorder.db"),
            http_host="127.0.0.1",
            http_port=0,
            watch_deadline=8,
            lease_duration=3,
            lease_renew=1,
        )
        built = Line(namespace, admin, proxy, settings)
        await built.declare("first")
        yield built
