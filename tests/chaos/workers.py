"""Runs cases in several processes side by side, each with a lab of its own."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import socket
import struct
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from praxis.controlplane import ControlPlane
from tests.chaos import forking
from tests.chaos.lab import Lab, Result
from tests.chaos.matrix import Case

LENGTH = struct.Struct("I")


class WorkerFailed(RuntimeError):
    """A worker ended before its cases did: a mistake of these tests, not a violation."""


def results(plane: ControlPlane, cases: Sequence[Case], workers: int) -> Iterator[Result]:
    """Each case's result, as they come.

    Raises:
        WorkerFailed: the harness itself is broken.
    """
    # Nothing that is forked from here on has to copy the pages that the collector would touch.
    gc.collect()
    gc.freeze()
    started = [_start(plane, cases[number::workers]) for number in range(min(workers, len(cases)))]
    lines = {line: pid for pid, line in started}
    received = 0
    try:
        while lines:
            ready, _, _ = select.select(list(lines), [], [])
            for line in ready:
                result = _read(line)
                if result is None:
                    os.waitpid(lines.pop(line), 0)
                    continue
                received += 1
                yield result
    finally:
        for pid in lines.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    if received != len(cases):
        raise WorkerFailed(f"{received} of {len(cases)} cases were run")


def _start(plane: ControlPlane, cases: Sequence[Case]) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair()
    pid = forking.fork()
    if not pid:
        ours.close()
        _work(plane, cases, theirs)
    theirs.close()
    return pid, ours


def _work(plane: ControlPlane, cases: Sequence[Case], line: socket.socket) -> NoReturn:
    try:
        with tempfile.TemporaryDirectory(prefix="praxis-chaos-") as directory:
            for result in Lab(plane, Path(directory)).run(cases):
                message = pickle.dumps(result)
                line.sendall(LENGTH.pack(len(message)) + message)
    except BaseException:  # noqa: BLE001  # a forked process must not return into its parent's code
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _read(line: socket.socket) -> Result | None:
    head = line.recv(LENGTH.size, socket.MSG_WAITALL)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    result: Result = pickle.loads(line.recv(length, socket.MSG_WAITALL))
    return result
