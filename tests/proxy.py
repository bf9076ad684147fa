"""A proxy in front of a real API server that spoils what it is told to: on loopback, plain HTTP on the client's side.

    async with proxied(kubeconfig, tmp_path) as proxy:
        proxy.spoil(drop_after(), method="PATCH")        # the next PATCH is stored, and nobody hears of it
        kube = await Kube.connect(proxy.kubeconfig)

What is not spoilt passes through unchanged, watches too. The identity is the kubeconfig's: a bearer token is passed on,
a client certificate is presented by the proxy. `tests.watching` has the faults of watches.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from kubernetes_asyncio import config
from kubernetes_asyncio.client import Configuration

HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host", "date", "server"})
LONGEST_LINE = 4 * 1024 * 1024
"""Bytes of a watch event: an Incident with a full status has half a megabyte."""
Lines = Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]
"""What becomes of the events of a watch."""


@dataclass
class Exchange:
    """One request on its way: `forward` sends it on and gives the server's answer, whole.

    `relay` sends it on and passes the answer back line by line, through `lines`, as a watch is answered.
    """

    request: web.Request
    body: bytes
    forward: Callable[[], Awaitable[tuple[int, bytes]]]
    relay: Callable[[Lines], Awaitable[web.StreamResponse]]


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


def answer(status: int, body: str = '{"message": "spoilt"}', headers: dict[str, str] | None = None) -> Fault:
    """The request never arrives, and this is the answer."""

    async def fault(exchange: Exchange) -> web.Response:
        return web.Response(status=status, text=body, headers=headers)

    return fault


def answer_after(status: int, body: str = '{"message": "spoilt"}') -> Fault:
    """The request is carried out, and this is the answer all the same."""

    async def fault(exchange: Exchange) -> web.Response:
        await exchange.forward()
        return web.Response(status=status, text=body)

    return fault


def doubled(*, answers: int = 0) -> Fault:
    """The request is carried out twice; the answer is that of the first time or, with 1, of the second."""

    async def fault(exchange: Exchange) -> web.Response:
        heard = [await exchange.forward(), await exchange.forward()]
        status, body = heard[answers]
        return web.Response(status=status, body=body, content_type="application/json")

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
    watch: bool = False
    skip: int = 0

    def takes(self, request: web.Request) -> bool:
        """Count a request, and say whether it is one of them."""
        alike = request.method == self.method and self.path in request.path and is_watch(request) is self.watch
        if not alike or self.times == 0:
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.times -= 1
        return True


@dataclass
class Proxy:
    """A running proxy: what it was asked, and what it is to spoil.

    `off` is how far the API server's clock seems to be from the true one. `swallows` says which events no watch
    delivers, open or new: it has gone silent. `draw` is asked for a fault for each request that no rule takes.
    """

    kubeconfig: Path
    asked: list[tuple[str, str]] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    off: timedelta = timedelta(0)
    swallows: Callable[[bytes], bool] = lambda _: False
    draw: Callable[[web.Request], Fault | None] = lambda _: None
    _heard: asyncio.Event = field(default_factory=asyncio.Event)

    def spoil(  # each says which requests
        self,
        fault: Fault,
        *,
        method: str = "PATCH",
        path: str = "",
        times: int = 1,
        watch: bool = False,
        skip: int = 0,
    ) -> None:
        """Spoil the next requests of that method whose path contains this, after `skip`; in the order of the rules."""
        self.rules.append(Rule(fault, method, path, times, watch, skip))

    def fault_for(self, request: web.Request) -> Fault | None:
        """What is to happen to a request, None when it passes."""
        taken = next((rule.fault for rule in self.rules if rule.takes(request)), None)
        return taken or self.draw(request)

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
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls, limit=0), auto_decompress=False, read_bufsize=LONGEST_LINE
    )
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

        def opened() -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
            return session.request(request.method, f"{upstream}{request.path_qs}", headers=headers, data=body or None)

        async def forward() -> tuple[int, bytes]:
            async with opened() as reply:
                return reply.status, await reply.read()

        async def relay(lines: Lines) -> web.StreamResponse:
            async with opened() as reply:
                heard = (line async for line in reply.content if not proxy.swallows(line))
                return await _passed_on(request, reply, lines(heard), proxy.off)

        fault = proxy.fault_for(request)
        proxy.heard(request)
        if fault is not None:
            spoilt = await fault(Exchange(request, body, forward, relay))
            return spoilt if spoilt is not None else _cut(request)
        if is_watch(request):
            return await relay(lambda lines: lines)
        async with opened() as reply:
            return await _passed_on(request, reply, reply.content.iter_any(), proxy.off)

    application = web.Application(client_max_size=16 * 1024 * 1024)
    application.router.add_route("*", "/{path:.*}", handle)
    return application


def is_watch(request: web.Request) -> bool:
    """Whether a request opens a watch."""
    return request.query.get("watch") == "true"


async def _passed_on(
    request: web.Request, reply: aiohttp.ClientResponse, chunks: AsyncIterator[bytes], off: timedelta
) -> web.StreamResponse:
    kept = {name: value for name, value in reply.headers.items() if name.lower() not in HOP_BY_HOP - {"date"}}
    if "Date" in kept:
        kept["Date"] = format_datetime(parsedate_to_datetime(kept["Date"]) + off, usegmt=True)
    answered = web.StreamResponse(status=reply.status, headers=kept)
    # Who asked may have been killed meanwhile; then nobody needs the rest.
    with suppress(ConnectionResetError):
        await answered.prepare(request)
        async for chunk in chunks:
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


__all__ = [
    "Exchange",
    "Fault",
    "Late",
    "Lines",
    "Proxy",
    "answer",
    "answer_after",
    "doubled",
    "drop_after",
    "drop_before",
    "first",
    "is_watch",
    "proxied",
]
