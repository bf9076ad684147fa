"""A process that owns the servers of one control plane, so that they never outlive whoever asked for them.

It is told what to run over its stdin, and it is single-threaded and unknown to the terminal. It ends on SIGTERM, or
when stdin closes, which happens however the parent goes, SIGKILL included; then it kills its servers (nothing of
theirs is kept, so there is nothing to flush) and removes the directory. Should it be killed itself, the kernel kills
them (PR_SET_PDEATHSIG). That alone would not do without this process: the signal comes when the *thread* that
started the child ends, and a test's thread ends before its control plane should.

`detach` makes it outlive its parent; from then on only SIGTERM ends it. Standard library only: it starts in no time.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from praxis.controlplane.errors import StartFailed
from praxis.controlplane.process import ProcessIdentity

PATIENCE = 20.0
"""Seconds that a supervisor has to kill its servers and remove their files, before it is killed."""
PR_SET_PDEATHSIG = 1


class Supervisor:
    """The parent's end: starts a supervisor for `directory`, which the supervisor removes when it ends."""

    def __init__(self, directory: Path) -> None:
        package_root = str(Path(__file__).parents[2])
        with (directory / "supervisor.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-P", "-m", __name__, str(directory)],
                env={**os.environ, "PYTHONPATH": package_root},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                # What could not be sent must not be kept, to fail again when the pipe is closed.
                bufsize=0,
            )
        self._directory = directory
        self._log = log.name

    @property
    def identity(self) -> ProcessIdentity:
        """The supervisor itself; raises `StartFailed` when it has ended."""
        identity = ProcessIdentity.of(self._process.pid)
        if identity is None:
            raise StartFailed(f"The supervisor ended by itself; see {self._log}.")
        return identity

    def run(self, command: Sequence[str], log: Path) -> ProcessIdentity:
        """Start a server that writes its output to `log`; raises `StartFailed` when it cannot be started."""
        answer = self._ask({"run": list(command), "log": str(log)})
        if "error" in answer:
            raise StartFailed(f"Could not start {command[0]}: {answer['error']}")
        return ProcessIdentity(**answer)

    def detach(self) -> None:
        """Let the supervisor and its servers outlive this process."""
        self._ask({"detach": True})

    def end(self) -> None:
        """End the supervisor, its servers, and their directory; does nothing the second time."""
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # A supervisor that was stopped before it took notice of signals, or that was killed, could not do it.
        shutil.rmtree(self._directory, ignore_errors=True)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            answer = b""
        else:
            answer = self._process.stdout.readline()
        if not answer:
            raise StartFailed(f"The supervisor ended by itself; see {self._log}.")
        decoded: dict[str, Any] = json.loads(answer)
        return decoded


class _Owner:
    """The supervising process itself."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._servers: list[subprocess.Popen[bytes]] = []
        self._detached = False
        self._libc = ctypes.CDLL(None)
        self._pid = os.getpid()

    def serve(self) -> None:
        """Do as told until SIGTERM, or until the parent is gone."""
        wakeup = _signals(signal.SIGTERM, signal.SIGCHLD)
        sources = {sys.stdin.fileno(), wakeup}
        rest = b""
        try:
            while True:
                ready, _, _ = select.select(sources, [], [])
                if wakeup in ready and signal.SIGTERM in os.read(wakeup, 4096):
                    return
                for server in self._servers:
                    server.poll()
                if sys.stdin.fileno() in ready:
                    chunk = os.read(sys.stdin.fileno(), 65536)
                    if not chunk and not self._detached:
                        return
                    if not chunk:
                        sources.discard(sys.stdin.fileno())
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        self._answer(json.loads(line))
        finally:
            self._end()

    def _answer(self, request: dict[str, Any]) -> None:
        answer: dict[str, Any] = {}
        if "run" in request:
            answer = self._run(request["run"], request["log"])
        else:
            self._detached = True
        os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")

    def _run(self, command: list[str], log: str) -> dict[str, Any]:
        try:
            with Path(log).open("ab") as output:
                server = subprocess.Popen(
                    command,
                    cwd=self._directory,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    preexec_fn=self._die_together,  # noqa: PLW1509 this process has one thread
                )
        except OSError as error:
            return {"error": str(error)}
        self._servers.append(server)
        return asdict(ProcessIdentity.of_child(server.pid))

    def _die_together(self) -> None:
        self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The supervisor may have gone before the call above.
        if os.getppid() != self._pid:
            os._exit(1)

    def _end(self) -> None:
        for server in self._servers:
            server.kill()
        for server in self._servers:
            server.wait()
        shutil.rmtree(self._directory, ignore_errors=True)


def _signals(*numbers: signal.Signals) -> int:
    """A file descriptor from which the numbers of arriving signals can be read."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return read


if __name__ == "__main__":
    _Owner(Path(sys.argv[1])).serve()
