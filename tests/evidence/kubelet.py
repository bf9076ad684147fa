"""A node for tests: speaks the part of the kubelet's API that serves logs, over TLS as a kubelet does."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from praxis.controlplane.pki import Authority


@dataclass
class Kubelet:
    """Serves `logs`, by container, of any pod; `asked` is the query of each request."""

    logs: dict[str, bytes] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    port: int = 0

    async def serve(self, request: web.Request) -> web.Response:
        """GET /containerLogs/NAMESPACE/POD/CONTAINER."""
        self.asked.append(dict(request.query))
        log = self.logs.get(request.match_info["container"])
        if log is None:
            return web.Response(status=404, text="container not found")
        lines = log.splitlines(keepends=True)
        return web.Response(body=b"".join(lines[-int(request.query.get("tailLines", len(lines))) :]))


@asynccontextmanager
async def running_kubelet(directory: Path) -> AsyncIterator[Kubelet]:
    """A kubelet on a free loopback port."""
    kubelet = Kubelet()
    application = web.Application()
    application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", kubelet.serve)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=_tls(directory))
        await site.start()
        kubelet.port = runner.addresses[0][1]
        yield kubelet
    finally:
        assert runner.server is not None
        kept = [each.transport for each in runner.server.connections]
        await runner.cleanup()
        # The API server keeps its connections; over TLS a close waits for its goodbye, longer than the loop runs.
        for transport in kept:
            if transport is not None:
                transport.abort()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def _tls(directory: Path) -> ssl.SSLContext:
    issued = Authority.create().issue_server()
    file = directory / "kubelet.pem"
    file.write_text(issued.certificate + issued.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    return context
