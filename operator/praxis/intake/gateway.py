"""One gateway process, put together: connection, senders, server, signals. Only wiring."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web
from kubernetes_asyncio.config import ConfigException
from prometheus_client import CollectorRegistry

from praxis.clock import Clock, SystemClock
from praxis.errors import NeedsPerson
from praxis.intake.authentication import Bearer, Sender, Signed
from praxis.intake.ledger import Ledger
from praxis.intake.metrics import Metrics
from praxis.intake.readiness import Readiness
from praxis.intake.server import Address, Limits, application
from praxis.kube import Kube
from praxis.settings import GatewaySettings

log = logging.getLogger(__name__)

ALERTMANAGER_PATH: Final = "/v1/alertmanager"
ALERTS_PATH: Final = "/v1/alerts"
REQUEST_SECONDS: Final = 10.0
"""For one request to the API server."""
FINISH_SECONDS: Final = 26.0
"""How long a stop waits for what is in flight; below a pod's grace period of 30 s. What is cut off gets no answer, so
its sender sends it again."""
KEEPALIVE_SECONDS: Final = 75.0
LINGER_SECONDS: Final = 2.0
"""How long the rest of a refused body is read, so that the sender gets to see the answer."""
READ_BUFFER: Final = 64 * 1024


async def run(settings: GatewaySettings, *, port_file: Path | None = None) -> None:
    """Run until SIGTERM or SIGINT, then finish what is in flight.

    Raises:
        NeedsPerson: the configuration is not complete; the message says what to set.
        OSError: the address cannot be listened on.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    async with gateway(settings) as port:
        if port_file is not None:
            _write_port(port_file, port)
        await stop.wait()
        log.info("stopping: no more notifications, those in flight are finished")


@asynccontextmanager
async def gateway(settings: GatewaySettings) -> AsyncIterator[int]:
    """A gateway that serves while the context is open; the port it listens on. Raises as `run`."""
    clock = SystemClock()
    senders = authenticated(settings, clock=clock)
    metrics = Metrics(registry=CollectorRegistry())
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(await _connected(settings.kubeconfig))
        ledger = Ledger(kube=kube, namespace=settings.namespace, clock=clock, metrics=metrics)
        app = application(
            addresses=[
                Address(
                    path=path,
                    receiver=receiver,
                    sender=sender,
                    limits=Limits(settings.body_limit, settings.read_timeout, settings.concurrency),
                    ledger=ledger,
                    metrics=metrics,
                )
                for path, receiver, sender in senders
            ],
            metrics=metrics,
            readiness=Readiness(ledger=ledger, senders=[sender for *_, sender in senders], clock=clock),
        )
        yield await _serve(app, settings, stack)


def authenticated(settings: GatewaySettings, *, clock: Clock) -> list[tuple[str, str, Sender]]:
    """Path, receiver and authentication of each address that is configured.

    Raises:
        NeedsPerson: there is none, or its file holds nothing that can be used.
    """
    senders: list[tuple[str, str, Sender]] = []
    if settings.bearer_token_file is not None:
        senders.append((ALERTMANAGER_PATH, settings.receiver, Bearer(settings.bearer_token_file)))
    if settings.webhook_secret_file is not None:
        signed = Signed(settings.webhook_secret_file, replay_window=settings.replay_window, clock=clock)
        senders.append((ALERTS_PATH, settings.webhook_receiver, signed))
    if not senders:
        raise NeedsPerson(
            "no sender could be authenticated. Set PRAXIS_GATEWAY_BEARER_TOKEN_FILE (--bearer-token-file) for "
            f"Alertmanager at {ALERTMANAGER_PATH}, or PRAXIS_GATEWAY_WEBHOOK_SECRET_FILE (--webhook-secret-file) for "
            f"signed notifications at {ALERTS_PATH}, or both"
        )
    for *_, sender in senders:
        sender.check()
    return senders


async def _connected(kubeconfig: Path | None) -> Kube:
    try:
        return await Kube.connect(kubeconfig, request_timeout=REQUEST_SECONDS, user_agent="praxis-gateway")
    except ConfigException as error:
        raise NeedsPerson(
            f"no API server to write to: {error}. Set PRAXIS_GATEWAY_KUBECONFIG (--kubeconfig), or run in a pod"
        ) from error


async def _serve(app: web.Application, settings: GatewaySettings, stack: AsyncExitStack) -> int:
    runner = web.AppRunner(
        app,
        access_log=None,
        shutdown_timeout=FINISH_SECONDS,
        keepalive_timeout=KEEPALIVE_SECONDS,
        lingering_time=LINGER_SECONDS,
        read_bufsize=READ_BUFFER,
        # A compressed body is refused, so nothing unpacks one.
        auto_decompress=False,
    )
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, settings.host, settings.port).start()
    port = int(runner.addresses[0][1])
    log.info("listening", extra={"host": settings.host, "port": port, "namespace": settings.namespace})
    return port


def _write_port(path: Path, port: int) -> None:
    # Renamed into place: whoever waits for the file never reads half a port.
    partial = path.with_suffix(".partial")
    partial.write_text(f"{port}\n")
    partial.replace(path)
