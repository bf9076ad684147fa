"""The Function Compute emulator as a witness: at the moment a dispatch arrives it reads what the incident says.

A consistent read while the answer is held back: whoever dispatched cannot have stored an outcome of it yet, so an
outcome that is there is another's, or of an earlier dispatch.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from praxis.api.incident import Incident
from praxis.demo.function_compute.emulator import Emulator
from praxis.demo.function_compute.functions import CredentialSeed, Seed
from praxis.demo.function_compute.server import EmulatorServer
from praxis.demo.function_compute.signature import Request
from praxis.kube import path_of
from tests.chaos import forking
from tests.chaos.api import Api
from tests.chaos.timing import Board

KEY, SECRET = "LTAIchaos0000000", "chaos-secret-0123456789"


class Witness(Emulator):
    """Functions are named as the incidents that act on them."""

    def __init__(self, *, api: Api, namespace: str, board: Board) -> None:
        credential = CredentialSeed(access_key_id=KEY, access_key_secret=SECRET)
        super().__init__(Seed(credentials=[credential]), now=lambda: board.wall)
        self._api = api
        self._namespace = namespace
        self._witnessed: dict[str, list[dict[str, Any]]] = {}

    def describe(self, function: str) -> dict[str, Any]:
        """Also each dispatch that arrived, and which markers the running instances were started with."""
        running = [{"id": each.id, "environment": dict(each.environment)} for each in self.instances(function)]
        dispatches = [
            {**seen, "applied": arrival.applied, "status": arrival.status}
            for seen, arrival in zip(self._witnessed.get(function, []), self.dispatches(function), strict=True)
        ]
        return {**super().describe(function), "running": running, "dispatches": dispatches}

    def _record(self, operation: str, function: str, request: Request) -> int:
        number = super()._record(operation, function, request)
        arrival = self._arrivals[number]
        if arrival.mutating:
            self._witnessed.setdefault(function, []).append(self._look(function, str(arrival.marker)))
        return number

    def _look(self, function: str, marker: str) -> dict[str, Any]:
        incident = self._api.get(path_of(Incident, self._namespace, function))
        steps = [each for each in incident["status"].get("steps", []) if each.get("intent", {}).get("id") == marker]
        return {
            "marker": marker,
            "intended": bool(steps),
            "concluded": [each["outcome"]["result"] for each in steps if "outcome" in each],
            "phase": incident["status"]["phase"],
        }


@contextmanager
def witness(connect: Callable[[], Api], namespace: str, board: Board) -> Iterator[str]:
    """Run one in a process of its own; its URL. It ends with this context, or with this process."""
    ours, theirs = socket.socketpair()
    pid = forking.fork()
    if not pid:
        ours.close()
        serve(theirs, Witness(api=connect(), namespace=namespace, board=board))
    theirs.close()
    try:
        yield ours.recv(256).decode()
    finally:
        # Not by closing the line: replicas that were forked meanwhile hold it open too.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        ours.close()


def serve(line: socket.socket, seen: Witness) -> NoReturn:
    """Until nobody holds the other end of the line."""
    try:
        with EmulatorServer(seen) as server:
            line.sendall(server.url.encode())
            line.recv(1)
    finally:
        os._exit(0)
