"""A proxy in front of a real API server that spoils what it is told to: on loopback, plain HTTP on the client's side.

    async with proxied(kubeconfig, tmp_path) as proxy:
        proxy.spoil(drop_after(), method="PATCH")        # the next PATCH is stored, and nobody hears of it
        kube = await Kube.connect(proxy.kubeconfig)

What is not spoilt passes through unchanged, watches too. The identity is the kubeconfig's: a bearer token is passed on,
a client certificate is presented by the proxy.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from kubernetes_asyncio import config
from kubernetes_asyncio.client import Configuration

HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host", "date", "server"})


@dataclass
class Exchange:
    """One request on its way: `forward` sends it on and gives the server's answer, whole."""

    request: web.Request
    body: bytes
    forward: Callable[[], Awaitable[tuple[int, bytes]]]


Fault = Callable[[Exchange], Awaitable[web.StreamResponse | None]]
"""Answers instead of the server; None cuts the connection."""


def drop_before() -> Fault:
    """The request never arrives, and no answer comes."""

    async def fault(exchange: Exchange) -> None:
        return None

    return fault


def drop_after() -> Fault:
    """The request is carried out, and no answer comes."""

    async def fault(exchange: Exchange) -> None:
        await exchange.forward()

    return fault


def answer(status: int, body: str = '{"message": "spoilt"}') -> Fault:
    """The request never arrives, and this is the answer."""

    async def fault(exchange: Exchange) -> web.Response:
        return web.Response(status=status, text=body)

    return fault


def answer_after(status: int, body: str = '{"message": "spoilt"}') -> Fault:
    """The request is carried out, and this is the answer all the same."""

    async def fault(exchange: Exchange) -> web.Response:
        await exchange.forward()
        return web.Response(status=status, text=body)

    return fault


def first(happens: Callable[[], Awaitable[Any]]) -> Fault:
    """Something happens before the request arrives; then it passes."""

    async def fault(exchange: Exchange) -> web.Response:
        await happens()
        status, body = await exchange.forward()
        return web.Response(status=status, body=body, content_type="application/json")

    return fault


@dataclass
class Late:
    """A request whose answer is lost now and which arrives when `land` is called: `proxy.spoil(late, ...)`."""

    exchange: Exchange | None = None

    async def __call__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    async def land(self) -> int:
        """It arrives; the status that the server gives it. Raises AssertionError when none was held back."""
        assert self.exchange is not None, "no request was held back"
        exchange, self.exchange = self.exchange, None
        status, _ = await exchange.forward()
        return status


@dataclass
class Rule:
    """Which requests are spoilt, and how often yet."""

    fault: Fault
    method: str
    path: str
    times: int

    def takes(self, request: web.Request) -> bool:
        """Whether the request is one of them."""
        return self.times > 0 and request.method == self.method and self.path in request.path


@dataclass
class Proxy:
    """A running proxy: what it was asked, and what it is to spoil."""

    kubeconfig: Path
    asked: list[tuple[str, str]] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    _heard: asyncio.Event = field(default_factory=asyncio.Event)

    def spoil(self, fault: Fault, *, method: str = "PATCH", path: str = "", times: int = 1) -> None:
        """Spoil the next requests of that method whose path contains this; rules apply in the order they were given."""
        self.rules.append(Rule(fault, method, path, times))

    def heard(self, request: web.Request) -> None:
        """A request came."""
        self.asked.append((request.method, request.path_qs))
        self._heard.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once something holds that only a further request can bring about."""
        while not holds():
            self._heard.clear()
            await self._heard.wait()

    def count(self, method: str, path: str = "") -> int:
        """How many such requests came."""
        return sum(each == method and path in at for each, at in self.asked)


@asynccontextmanager
async def proxied(kubeconfig: Path, directory: Path) -> AsyncIterator[Proxy]:
    """A proxy in front of the server of a kubeconfig; its own kubeconfig is written into the directory."""
    configuration = Configuration()
    await config.load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
    tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        tls.load_cert_chain(configuration.cert_file, configuration.key_file)
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls), auto_decompress=False)
    proxy = Proxy(directory / f"proxied-{kubeconfig.name}")
    server = web.AppRunner(_application(proxy, session, configuration.host), access_log=None, shutdown_timeout=1)
    await server.setup()
    site = web.TCPSite(server, "127.0.0.1", 0)
    try:
        await site.start()
        proxy.kubeconfig.write_text(_through(kubeconfig, server.addresses[0][1]))
        yield proxy
    finally:
        await server.cleanup()
        await session.close()


def _application(proxy: Proxy, session: aiohttp.ClientSession, upstream: str) -> web.Application:
    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        address = f"{upstream}{request.path_qs}"

        async def forward() -> tuple[int, bytes]:
            async with session.request(request.method, address, headers=headers, data=body) as reply:
                return reply.status, await reply.read()

        for rule in proxy.rules:
            if rule.takes(request):
                rule.times -= 1
                proxy.heard(request)
                spoilt = await rule.fault(Exchange(request, body, forward))
                return spoilt if spoilt is not None else _cut(request)
        proxy.heard(request)
        async with session.request(request.method, address, headers=headers, data=body) as reply:
            return await _passed_on(request, reply)

    application = web.Application(client_max_size=16 * 1024 * 1024)
    application.router.add_route("*", "/{path:.*}", handle)
    return application


async def _passed_on(request: web.Request, reply: aiohttp.ClientResponse) -> web.StreamResponse:
    kept = {name: value for name, value in reply.headers.items() if name.lower() not in HOP_BY_HOP - {"date"}}
    answered = web.StreamResponse(status=reply.status, headers=kept)
    await answered.prepare(request)
    async for chunk in reply.content.iter_any():
        await answered.write(chunk)
    await answered.write_eof()
    return answered


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _through(kubeconfig: Path, port: int) -> str:
    document = yaml.safe_load(kubeconfig.read_text())
    for cluster in document["clusters"]:
        cluster["cluster"] = {"server": f"http://127.0.0.1:{port}"}
    for user in document["users"]:
        user["user"] = {name: value for name, value in user["user"].items() if name == "token"}
    return str(yaml.safe_dump(document))


__all__ = ["Exchange", "Late", "Proxy", "answer", "answer_after", "drop_after", "drop_before", "first", "proxied"]
