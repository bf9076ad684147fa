"""The Lease: one replica works, another takes over, and nothing that the API server says ends an operator."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from praxis.controller import lease
from praxis.controlplane import ControlPlane
from praxis.kube import Kube, resource_path
from praxis.settings import OperatorSettings
from tests.proxy import Exchange, Proxy, answer, drop_before, proxied

pytestmark = pytest.mark.controlplane
PATIENCE = 60.0


@dataclass
class Replica:
    """A candidate behind a proxy of its own."""

    identity: str
    proxy: Proxy
    kube: Kube
    settings: OperatorSettings
    leads: asyncio.Event = field(default_factory=asyncio.Event)
    follows: asyncio.Event = field(default_factory=asyncio.Event)
    wins: int = 0
    task: asyncio.Task[None] | None = None

    def campaign(self) -> None:
        """Begin."""

        async def started() -> None:
            self.wins += 1
            self.follows.clear()
            self.leads.set()

        async def stopped() -> None:
            self.leads.clear()
            self.follows.set()

        self.task = asyncio.create_task(
            lease.elect(
                kube=self.kube, settings=self.settings, identity=self.identity, started=started, stopped=stopped
            )
        )

    async def stop(self) -> None:
        """End in order."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)


Field = Callable[[str], Awaitable[Replica]]


@pytest.fixture
async def candidate(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Field]:
    """Makes candidates for one lease, in a namespace of their own."""
    namespace = f"lease-{secrets.token_hex(4)}"
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    settings = OperatorSettings(installation_namespace=namespace, lease_duration=3, lease_renew=1)
    async with contextlib.AsyncExitStack() as stack:

        async def make(identity: str) -> Replica:
            directory = tmp_path / identity
            directory.mkdir()
            # A certificate is presented by the proxy, so everybody may be admin here.
            proxy = await stack.enter_async_context(proxied(plane.admin_kubeconfig, directory))
            kube = await stack.enter_async_context(await Kube.connect(proxy.kubeconfig))
            replica = Replica(identity, proxy, kube, settings)
            stack.push_async_callback(replica.stop)
            return replica

        yield make


async def soon(event: asyncio.Event) -> None:
    """Wait for it."""
    async with asyncio.timeout(PATIENCE):
        await event.wait()


async def holder_of(replica: Replica) -> Any:
    """Who holds the lease, as it is stored."""
    namespace = replica.settings.installation_namespace
    path = resource_path("/apis/coordination.k8s.io/v1", "leases", namespace, lease.NAME)
    return (await replica.kube.get(path)).document["spec"].get("holderIdentity")


async def test_one_leads_and_the_other_follows_at_once_when_it_is_given_back(candidate: Field) -> None:
    """The second replica does not wait for the lease to run out when the first ends in order."""
    one, two = await candidate("one"), await candidate("two")
    one.campaign()
    await soon(one.leads)
    two.campaign()
    async with asyncio.timeout(PATIENCE):
        await two.proxy.until(lambda: two.proxy.count("GET") > 1)
    assert not two.leads.is_set()
    assert await holder_of(one) == "one"
    await one.stop()
    assert one.follows.is_set()
    assert await holder_of(two) in {None, "two"}
    await soon(two.leads)
    assert await holder_of(two) == "two"


async def test_a_leader_that_is_gone_is_replaced_when_its_lease_runs_out(candidate: Field) -> None:
    """Killed, it gives nothing back."""
    one, two = await candidate("one"), await candidate("two")
    one.campaign()
    await soon(one.leads)
    one.proxy.spoil(drop_before(), method="PATCH", times=1000)
    assert one.task is not None
    await one.stop()
    two.campaign()
    await soon(two.leads)
    assert await holder_of(two) == "two"


FAULTS = {
    "cut": drop_before(),
    "500 JSON": answer(500, '{"code": 500, "message": "etcd is away"}'),
    "502 HTML": answer(502, "<html>bad gateway</html>"),
    "401 text": answer(401, "Unauthorized"),
    "empty 503": answer(503, ""),
    "200 that is no lease": answer(200, "<html>hello</html>"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_nothing_that_is_answered_ends_the_campaign(candidate: Field, fault: Any, method: str) -> None:
    """Whatever it cannot read, it stops leading at most, and leads again once it is answered."""
    one = await candidate("one")
    one.campaign()
    await soon(one.leads)
    one.proxy.spoil(fault, method=method, times=2)
    async with asyncio.timeout(PATIENCE):
        await one.proxy.until(lambda: one.proxy.rules[0].times == 0)
    await soon(one.leads)
    assert one.task is not None
    assert not one.task.done()
    assert await holder_of(one) == "one"


async def test_a_leader_that_is_answered_no_more_stops_before_another_starts(candidate: Field) -> None:
    """A server that takes the request and stays silent must not leave two that both believe to lead."""
    one, two = await candidate("one"), await candidate("two")
    one.campaign()
    await soon(one.leads)
    silent = asyncio.Event()

    async def silence(exchange: Exchange) -> None:
        await silent.wait()

    for method in ("GET", "PUT"):
        one.proxy.spoil(silence, method=method, times=1000)
    two.campaign()
    first, _ = await asyncio.wait(
        {asyncio.create_task(soon(one.follows)), asyncio.create_task(soon(two.leads))},
        return_when=asyncio.FIRST_COMPLETED,
    )
    assert one.follows.is_set(), "the second leads while the first still does"
    assert first
    await soon(two.leads)
    silent.set()
