"""An API server that loses answers: a proxy in a process of its own, in front of the real one.

What a replica does about a lost answer (read what is stored, wait, write again) has await points too.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.chaos import forking
from tests.proxy import Exchange, Proxy, answer, drop_after, proxied


@contextmanager
def losing(kubeconfig: Path, directory: Path, incident: str, *, intent: bool) -> Iterator[Path]:
    """A kubeconfig through a proxy that loses the answer to the intent's write, or to the outcome's. Fork-safe."""
    ours, theirs = socket.socketpair()
    pid = forking.fork()
    if not pid:
        ours.close()
        try:
            asyncio.run(_serve(theirs, kubeconfig, directory, incident, intent))
        finally:
            os._exit(1)
    theirs.close()
    try:
        yield Path(ours.recv(4096).decode())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        ours.close()


async def _serve(line: socket.socket, kubeconfig: Path, directory: Path, incident: str, intent: bool) -> None:
    async with proxied(kubeconfig, directory) as proxy:
        status = f"incidents/{incident}/status"
        if not intent:
            proxy.spoil(_passed, path=status)
        proxy.spoil(_lost_and_unreadable(proxy, incident), path=status)
        proxy.spoil(answer(503), path=status)
        line.sendall(str(proxy.kubeconfig).encode())
        line.setblocking(False)
        await asyncio.get_running_loop().sock_recv(line, 1)


async def _passed(exchange: Exchange) -> web.Response:
    status, body = await exchange.forward()
    return web.Response(status=status, body=body, content_type="application/json")


def _lost_and_unreadable(proxy: Proxy, incident: str) -> Any:
    """The write is stored, nobody hears of it, and what is stored cannot be read at once."""

    async def fault(exchange: Exchange) -> None:
        await drop_after()(exchange)
        proxy.spoil(answer(503), method="GET", path=f"incidents/{incident}")

    return fault
