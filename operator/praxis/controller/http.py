"""What the kubelet and Prometheus ask: /healthz, /readyz, /metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Check = Callable[[], str | None]


async def serve(
    *, host: str, port: int, registry: CollectorRegistry, healthy: Check, ready: Check
) -> tuple[web.AppRunner, int]:
    """Start the server; returns it, to be cleaned up, and the port it listens on. A check returns what is wrong."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.router.add_get("/healthz", answering(healthy))
    app.router.add_get("/readyz", answering(ready))
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    return runner, int(runner.addresses[0][1])


def answering(check: Check) -> Callable[[web.Request], Awaitable[web.Response]]:
    """A handler that answers 200, or 503 and what is wrong."""

    async def handler(_: web.Request) -> web.Response:
        wrong = check()
        return web.Response(text="ok\n") if wrong is None else web.Response(text=wrong + "\n", status=503)

    return handler
