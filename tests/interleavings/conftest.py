"""A house for each test: a namespace of a real API server with everything installed, a function, and operators.

Real are the API server with its rules, policies and RBAC, the status writer, the phases, the Function Compute adapter
with the SDK, and the service's protocol over sockets. An operator looks at an incident when it is told to, and time
moves by hand, so that nothing happens in an order that a test did not say. Models have no part in what is tried here.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from praxis.controlplane import ControlPlane
from praxis.demo.function_compute import CredentialSeed, Emulator, EmulatorServer, FunctionSeed, Seed
from praxis.demo.stack import install
from praxis.kube import Kube
from praxis.settings import ActionSettings, OperatorSettings
from tests.interleavings.house import FUNCTION, NAMES, House
from tests.phases.world import Time
from tests.proxy import proxied

ACCESS_KEY, SECRET = "LTAIhouse0000001", "s3cr3t-of-the-house"


@pytest.fixture(scope="session")
def furnished(plane: ControlPlane) -> ControlPlane:
    """The control plane with CRDs, roles and policies in force."""
    install(plane)
    return plane


@pytest.fixture
async def house(furnished: ControlPlane, tmp_path: Path) -> AsyncIterator[House]:
    """A namespace, a function with two instances, its target, and nobody who has looked yet."""
    namespace = f"house-{secrets.token_hex(4)}"
    furnished.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    time = Time(wall=datetime.now(UTC))
    account_id = str(int(namespace.removeprefix("house-"), 16))
    seed = Seed(
        functions=[FunctionSeed(name=FUNCTION, region="ap-southeast-1", account_id=account_id)],
        credentials=[CredentialSeed(access_key_id=ACCESS_KEY, access_key_secret=SECRET)],
    )
    (tmp_path / "key.json").write_text(json.dumps({"accessKeyId": ACCESS_KEY, "accessKeySecret": SECRET}))
    settings = OperatorSettings(
        namespaces=[namespace],
        actions=ActionSettings(credentials_dir=tmp_path, request_timeout=5, verify_deadline=60, poll_interval=2),
    )
    account = furnished.service_account_kubeconfig(NAMES.namespace, NAMES.operator_account)
    async with contextlib.AsyncExitStack() as stack:
        # Asked each time: `wall` is replaced as time moves.
        emulator = Emulator(seed, now=lambda: time.wall.timestamp())  # noqa: PLW0108
        server = stack.enter_context(EmulatorServer(emulator))
        proxy = await stack.enter_async_context(proxied(account, tmp_path))
        built = House(
            namespace=namespace,
            account_id=account_id,
            plane=furnished,
            admin=await stack.enter_async_context(await Kube.connect(furnished.admin_kubeconfig)),
            direct=await stack.enter_async_context(await Kube.connect(account)),
            proxied=await stack.enter_async_context(await Kube.connect(proxy.kubeconfig)),
            proxy=proxy,
            service=server,
            time=time,
            settings=settings,
        )
        await built.declare()
        yield built
