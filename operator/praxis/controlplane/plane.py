"""A control plane that lives as long as its owner: start, restart of the API server, stop."""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

from praxis.controlplane.access import Access
from praxis.controlplane.binaries import Binaries, Report, resolve, to_stderr
from praxis.controlplane.errors import StartFailed
from praxis.controlplane.process import ProcessIdentity
from praxis.controlplane.servers import Layout, apiserver_command, etcd_command
from praxis.controlplane.supervisor import Supervisor

START_TIMEOUT = 120.0
"""Seconds until the servers must be ready: 3 on an idle machine, more where the processors are shared."""
STOP_GRACE = 30.0
"""Seconds that the API server has to finish what it is doing when it is stopped alone."""
POLL = 0.05
TAIL = 30
"""Lines of a server's log that an error shows."""


class ControlPlane(Access):
    """etcd and kube-apiserver, run for the length of a `with` block; all of its files are gone afterwards.

    They end with this process however it ends, and are no part of its process group: Ctrl-C reaches this process only.
    Any number can run side by side.
    """

    def __init__(self, layout: Layout, binaries: Binaries, supervisor: Supervisor) -> None:
        """Nothing is started yet; use `start`."""
        self._reservation = _reserve_port()
        port: int = self._reservation.getsockname()[1]
        super().__init__(layout, f"https://127.0.0.1:{port}", binaries.kubectl)
        self._supervisor = supervisor
        self._etcd_command = etcd_command(binaries, layout)
        self._apiserver_command = apiserver_command(binaries, layout, port)
        self._etcd: ProcessIdentity | None = None
        self._apiserver: ProcessIdentity | None = None

    @classmethod
    def start(cls, *, timeout: float = START_TIMEOUT, report: Report = to_stderr) -> Self:
        """A new one in a temporary directory, ready to serve; `timeout` is in seconds.

        Builds the binaries first when there are none yet, which takes minutes and is told to `report`. Raises
        `BinariesUnavailable` and `BuildFailed` from that, `StartFailed` when a server does not get ready.
        """
        binaries = resolve(report)
        return cls.start_in(Path(tempfile.mkdtemp(prefix="praxis-controlplane-")), binaries, timeout)

    @classmethod
    def start_in(cls, directory: Path, binaries: Binaries, timeout: float) -> Self:
        """A new one in this empty directory, which is removed when it stops; see `start`."""
        try:
            supervisor = Supervisor(directory)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        try:
            layout = Layout(directory)
            layout.create()
            plane = cls(layout, binaries, supervisor)
        except BaseException:
            supervisor.end()
            raise
        try:
            plane._run_etcd()
            plane.start_apiserver(timeout)
        except BaseException:
            plane.stop()
            raise
        return plane

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the servers and remove their files; does nothing the second time."""
        self._supervisor.end()
        self._reservation.close()

    def stop_apiserver(self) -> None:
        """Stop kube-apiserver alone, gracefully; its port stays reserved and what is stored stays."""
        if self._apiserver is not None:
            self._apiserver.end(STOP_GRACE)

    def start_apiserver(self, timeout: float = START_TIMEOUT) -> None:
        """Start kube-apiserver again, on the same port, and wait until it is ready; raises `StartFailed`."""
        if self._apiserver is None or not self._apiserver.alive:
            self._apiserver = self._supervisor.run(self._apiserver_command, self._layout.apiserver_log)
        self._wait(timeout)

    @property
    def processes(self) -> dict[str, ProcessIdentity]:
        """Every process of this control plane that was started last, by name."""
        known = {"supervisor": self._supervisor.identity, "etcd": self._etcd, "kube-apiserver": self._apiserver}
        return {name: process for name, process in known.items() if process is not None}

    def detach(self) -> None:
        """Let it run on when this process ends; only its supervisor can stop it then."""
        self._supervisor.detach()
        self._reservation.close()

    def _run_etcd(self) -> None:
        self._etcd = self._supervisor.run(self._etcd_command, self._layout.etcd_log)

    def _wait(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while reason := self.unreadiness():
            for log, process in ((self._layout.etcd_log, self._etcd), (self._layout.apiserver_log, self._apiserver)):
                if process is None or not process.alive:
                    raise StartFailed(f"{log.stem} ended by itself. The end of its log:\n{_tail(log)}")
            if time.monotonic() > deadline:
                log = self._layout.apiserver_log
                raise StartFailed(f"Not ready in {timeout:g} s: {reason}\nThe end of {log.stem}'s log:\n{_tail(log)}")
            time.sleep(POLL)


def _reserve_port() -> socket.socket:
    """A loopback port that nobody else gets while this socket is open; a server that shares ports may listen on it."""
    reservation = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reservation.bind(("127.0.0.1", 0))
    return reservation


def _tail(log: Path) -> str:
    with log.open(errors="replace") as lines:
        return "".join(deque(lines, TAIL)).rstrip()
