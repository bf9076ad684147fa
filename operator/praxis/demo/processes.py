"""Processes of the demo and the end-to-end tests: started with a log of their own, stopped by what was started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 60.0
STOP_SECONDS = 40.0
"""Above what an operator takes to finish what it is working on."""
POLL_SECONDS = 0.05
TAIL_LINES = 30


class ProcessError(RuntimeError):
    """A process of the stack did not start, or ended; the message shows the end of its log."""


@dataclass
class Running:
    """A running process."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    port: int | None = None

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.popen.poll() is None

    def send(self, signum: signal.Signals) -> None:
        """Send it a signal, if it runs."""
        if self.alive:
            self.popen.send_signal(signum)

    def kill(self) -> None:
        """End it as a crash would: SIGKILL, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self.popen.wait()

    def stop(self) -> None:
        """Ask it to end, and insist after a while. A paused process is woken up, or it could not hear."""
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)
        try:
            self.popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def tail(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])


def start(
    name: str, command: Sequence[str], *, directory: Path, environment: Mapping[str, str], port_file: Path | None = None
) -> Running:
    """Start a process; with a port file, wait until it has written its port.

    Raises:
        ProcessError: it ended, or wrote no port in time.
    """
    log = directory / f"{name}.log"
    if port_file is not None:
        port_file.unlink(missing_ok=True)
    with log.open("ab") as output:
        popen = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    running = Running(name=name, popen=popen, log=log)
    if port_file is not None:
        try:
            running.port = _port(running, port_file)
        except BaseException:
            running.kill()
            raise
    return running


def _port(running: Running, port_file: Path) -> int:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if port_file.exists():
            return int(port_file.read_text())
        if not running.alive:
            raise ProcessError(f"{running.name} ended with {running.popen.returncode}:\n{running.tail()}")
        time.sleep(POLL_SECONDS)
    raise ProcessError(f"{running.name} did not start within {START_SECONDS:g} s:\n{running.tail()}")
