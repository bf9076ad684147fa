"""Fixtures of these tests: gateways over real sockets, in front of the real API server, as their own service account.

Between gateway and API server stands `tests.proxy`, which passes everything on until a test spoils a request.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from praxis.api.accounts import Names
from praxis.api.incident import Incident
from praxis.api.plan import ActionType
from praxis.controlplane import ControlPlane
from praxis.demo.stack import install
from praxis.intake.gateway import gateway
from praxis.kube import Kube, path_of
from praxis.settings import GatewaySettings
from tests import builders
from tests.api.lab import DRY, REAL, Lab, plan, step
from tests.intake.notifications import payload
from tests.intake.test_authentication import SECRET, TOKEN, signed_headers
from tests.proxy import Proxy, proxied

NAMES = Names()
JSON = {"Content-Type": "application/json"}
SERVING_SECONDS = 60.0
"""For a CRD to be served; it takes a second."""
Answer = tuple[int, dict[str, Any]]


@dataclass
class Site:
    """A namespace of its own, a gateway that serves it, and everybody who looks at what it wrote."""

    namespace: str
    directory: Path
    admin: Kube
    proxy: Proxy
    lab: Lab
    session: aiohttp.ClientSession
    stack: AsyncExitStack
    urls: list[str] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, Any]:
        """What every gateway here is configured with."""
        return {
            "kubeconfig": self.proxy.kubeconfig,
            "namespace": self.namespace,
            "bearer_token_file": self.directory / "token",
            "webhook_secret_file": self.directory / "secret",
            "host": "127.0.0.1",
            "port": 0,
        }

    async def start(self, **changes: Any) -> str:
        """Start a gateway; its URL. It stops with the site."""
        port = await self.stack.enter_async_context(gateway(GatewaySettings(**(self.settings | changes))))
        self.urls.append(f"http://127.0.0.1:{port}")
        return self.urls[-1]

    async def post(
        self, document: dict[str, Any] | bytes, *, url: str | None = None, token: str = TOKEN, **headers: str
    ) -> Answer:
        """Post a notification as Alertmanager does; the status and the answer."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        sent = JSON | {"Authorization": f"Bearer {token}"} | headers
        async with self.session.post(f"{url or self.urls[0]}/v1/alertmanager", data=body, headers=sent) as reply:
            return reply.status, await reply.json()

    async def sign_and_post(self, document: dict[str, Any], *, sent_as: str = "msg_1", **headers: str) -> Answer:
        """Post a notification with a signature; the status and the answer."""
        body = json.dumps(document).encode()
        sent = JSON | signed_headers(body=body, sent_as=sent_as) | headers
        async with self.session.post(f"{self.urls[0]}/v1/alerts", data=body, headers=sent) as reply:
            return reply.status, await reply.json()

    async def fired(self, *alerts: dict[str, Any], **changes: Any) -> str:
        """Post a notification that opens an Incident; its name."""
        status, answer = await self.post(payload(*alerts, **changes))
        assert status == 202, answer
        return str(answer["incident"]).removeprefix(f"{self.namespace}/")

    async def incidents(self) -> list[Incident]:
        """Every Incident of the namespace, by name."""
        reply = await self.admin.get(path_of(Incident, self.namespace))
        return sorted((Incident.parse(each) for each in reply.document["items"]), key=lambda each: each.metadata.name)

    async def incident(self, name: str) -> Incident:
        """An Incident as it is stored."""
        return Incident.parse((await self.admin.get(path_of(Incident, self.namespace, name))).document)

    async def lead(self, name: str, *phases: str, **changes: Any) -> None:
        """As the operator, lead an Incident through phases; `changes` of its status belong to the last.

        Out of Executing into Closed leads a plan of dry runs; any other way a plan with a restart.
        """
        dry = {"plan": plan(of=[builders.action(ActionType.UPDATE_CONFIG, id=DRY)])}
        stored = (await self.admin.get(path_of(Incident, self.namespace, name))).document
        for phase in phases:
            if phase == "Observing":
                stored = await self.lab.put(stored, steps=[step(REAL)])
                stored = await self.lab.put(stored, steps=[step(REAL, "Applied"), step(DRY, "DryRun")])
            if phase == "Closed" and stored["status"]["phase"] == "Executing":
                stored = await self.lab.put(stored, steps=[step(DRY, "DryRun")])
            if phase == "ReconciliationRequired":
                stored = await self.lab.put(stored, steps=[step(REAL)])
                stored = await self.lab.put(stored, steps=[step(REAL, "Unknown"), step(DRY, "DryRun")])
            own = changes if phase == phases[-1] else {}
            if phase == "AwaitingApproval" and phases[-1] == "Closed":
                own = own | dry
            stored = await self.lab.go(stored, phase, **own)

    async def metrics(self, url: str | None = None) -> dict[tuple[str, ...], float]:
        """The gateway's samples that are not 0, by name and label values."""
        async with self.session.get(f"{url or self.urls[0]}/metrics") as reply:
            families = text_string_to_metric_families(await reply.text())
            samples = [sample for family in families for sample in family.samples]
        return {(each.name, *(value for _, value in sorted(each.labels.items()))): each.value for each in samples}

    async def outcomes(self, url: str | None = None) -> dict[str, int]:
        """How many notifications had which outcome and reason; checks that they add up to what was received."""
        samples = await self.metrics(url)
        handled = {key: int(value) for key, value in samples.items() if key[0] == "praxis_notifications_handled_total"}
        received = sum(value for key, value in samples.items() if key[0] == "praxis_notifications_received_total")
        assert sum(handled.values()) == received
        return {f"{outcome} {reason}": count for (_, _, outcome, reason), count in handled.items() if count}


@pytest.fixture(scope="session")
def installed(plane: ControlPlane) -> ControlPlane:
    """The control plane with CRDs, roles and policies in force, and Incidents served to the gateway."""
    install(plane)
    account = plane.service_account_kubeconfig(NAMES.namespace, NAMES.gateway_account)
    deadline = time.monotonic() + SERVING_SECONDS
    # An established CRD answers 429, "storage is (re)initializing", for a moment more.
    while plane.kubectl("get", "incidents", "-A", kubeconfig=account, check=False).returncode != 0:
        assert time.monotonic() < deadline, "Incidents are not served"
        time.sleep(0.1)
    return plane


@pytest.fixture
async def idle(installed: ControlPlane, tmp_path: Path) -> AsyncIterator[Site]:
    """A namespace without a gateway yet."""
    namespace = f"intake-{secrets.token_hex(4)}"
    installed.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "secret").write_text(SECRET)
    account = installed.service_account_kubeconfig(NAMES.namespace, NAMES.gateway_account)
    operator = installed.service_account_kubeconfig(NAMES.namespace, NAMES.operator_account)
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(await Kube.connect(installed.admin_kubeconfig))
        yield Site(
            namespace=namespace,
            directory=tmp_path,
            admin=admin,
            proxy=await stack.enter_async_context(proxied(account, tmp_path)),
            lab=Lab(
                author=admin,
                operator=await stack.enter_async_context(await Kube.connect(operator)),
                namespace=namespace,
            ),
            session=await stack.enter_async_context(aiohttp.ClientSession()),
            stack=stack,
        )


@pytest.fixture
async def site(idle: Site) -> Site:
    """A namespace with a gateway."""
    await idle.start()
    return idle
