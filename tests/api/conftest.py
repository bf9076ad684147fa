"""Fixtures of these tests: two API servers and the people and robots that speak to them.

`bare` has PRAXIS' CRDs and no policy, so that only the CRDs' own rules refuse; it is a control plane of its own, as
bindings are cluster-wide and other tests need theirs. `guarded` has everything.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from praxis.api.accounts import Names
from praxis.controlplane import ControlPlane
from praxis.kube import Kube
from tests import builders
from tests.api.lab import Lab

ROOT = Path(__file__).parents[2]
NAMESPACE = "admission"
NAMES = Names()
POLICY_SECONDS = 60.0
"""For policies to be in force; it takes a second or two."""


@pytest.fixture(scope="session")
def bare() -> Iterator[ControlPlane]:
    """A control plane with the CRDs as they are in the tree, and nothing else."""
    with ControlPlane.start() as control_plane:
        control_plane.kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
        control_plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
        yield control_plane


@pytest.fixture(scope="session")
def guarded(plane: ControlPlane) -> ControlPlane:
    """The shared control plane with everything installed, and every policy in force."""
    install_guards(plane)
    return plane


def install_guards(plane: ControlPlane) -> None:
    """Install what is in the tree, and wait until it is in force."""
    install = ("apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "crds"))
    plane.kubectl(*install)
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
    plane.kubectl(*install, "-f", str(ROOT / "manifests"))
    plane.kubectl("create", "namespace", NAMESPACE, check=False)
    _wait_until_in_force(plane)


@pytest.fixture
async def admin(bare: ControlPlane) -> AsyncIterator[Kube]:
    """A connection to the bare one as cluster-admin."""
    async with await Kube.connect(bare.admin_kubeconfig) as kube:
        yield kube


@pytest.fixture
def lab(admin: Kube) -> Lab:
    """Everything is written by cluster-admin, with no policy in the way."""
    return Lab(author=admin, operator=admin)


class People:
    """Connections to the guarded control plane, as anybody."""

    def __init__(self, plane: ControlPlane, stack: contextlib.AsyncExitStack) -> None:
        self._plane = plane
        self._stack = stack

    async def person(self, name: str, *groups: str) -> Kube:
        """A person with a client certificate."""
        return await self._connect(self._plane.kubeconfig(name, groups))

    async def almighty(self, name: str) -> Kube:
        """Anybody, a service account too by name, whom RBAC lets do anything: only policies and rules refuse."""
        return await self._connect(self._plane.kubeconfig(name, ["system:masters"]))

    async def robot(self, namespace: str, account: str) -> Kube:
        """A service account with a token of its own, and what RBAC gives it."""
        return await self._connect(self._plane.service_account_kubeconfig(namespace, account))

    async def operator(self) -> Kube:
        """The operator, as it is installed."""
        return await self.robot(NAMES.namespace, NAMES.operator_account)

    async def gateway(self) -> Kube:
        """The gateway, as it is installed."""
        return await self.robot(NAMES.namespace, NAMES.gateway_account)

    async def lab(self, author: Kube | None = None) -> Lab:
        """A lab whose status is written by the operator, and whose specs by an admin unless said otherwise."""
        return Lab(author=author or await self.almighty("admin"), operator=await self.operator(), namespace=NAMESPACE)

    async def _connect(self, kubeconfig: Path) -> Kube:
        return await self._stack.enter_async_context(await Kube.connect(kubeconfig))


@pytest.fixture
async def people(guarded: ControlPlane) -> AsyncIterator[People]:
    """Anybody on the guarded control plane."""
    async with contextlib.AsyncExitStack() as stack:
        yield People(guarded, stack)


def _wait_until_in_force(plane: ControlPlane) -> None:
    """Wait until the last of the policies refuses what it must: an approval in another's name."""
    document = builders.manifest(builders.approval("somebody-else"))
    document["metadata"] = {"name": "probe", "namespace": NAMESPACE}
    deadline = time.monotonic() + POLICY_SECONDS
    while time.monotonic() < deadline:
        done = plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(document), check=False)
        if "spec.approver.username must be you: admin" in done.stderr:
            return
        time.sleep(0.1)
    raise TimeoutError(f"the policies are not in force: {done.stderr}")
