"""One run: replicas are started, one of them is struck, others take over, time passes, and all come to rest."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.replica import Role, Setting, fork
from tests.chaos.tracing import Fault, Injection

PAUSE_SECONDS = 60.0
ENDLESS_SECONDS = 4 * 3600.0
"""Seconds of the shared time: the longest honest run takes minutes."""
STUCK_SECONDS = 120.0
"""Real seconds without a word from anybody: no honest run is silent for more than one."""


@dataclass(frozen=True)
class Script:
    """What happens in a run.

    `heir`: the first replica dies as soon as its dispatch has come back, and the fault strikes the one that takes over.
    `late`: a paused replica goes on only when the others have come to rest, not already after a minute.
    """

    injection: Injection | None
    replicas: int
    heir: bool = False
    late: bool = False


@dataclass
class Replica:
    """A forked process and what is known of it."""

    pid: int
    line: socket.socket
    slot: int
    role: Role
    stopped: bool = False
    buffer: bytes = b""
    rest: dict[str, Any] | None = None
    broken: str | None = None
    ended: int | None = None

    @property
    def running(self) -> bool:
        """Whether time must wait for it."""
        return self.ended is None and not self.stopped


@dataclass
class Ended:
    """How a run went."""

    struck: bool = False
    replicas: list[Replica] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


def received(line: socket.socket) -> bytes:
    """What a replica said; nothing when it has ended, also when it was killed before it read what we had sent."""
    try:
        return line.recv(1 << 20)
    except ConnectionResetError:
        return b""


class Conductor:
    """Starts replicas, moves time, and wakes the one that was paused."""

    def __init__(self, setting: Setting, script: Script) -> None:
        self._setting = setting
        self._script = script
        self._board = setting.board
        self._ended = Ended()
        self._resume_at: float | None = None

    def run(self, *, through: Path | None = None) -> Ended:
        """Until all have ended. `through`: as in `Role`, for the first replica."""
        self._board.begin(time.time())
        began = self._board.now
        self._start(
            Role(dies_after_dispatch=True) if self._script.heir else Role(self._script.injection, through=through)
        )
        try:
            while any(each.ended is None for each in self._all):
                if not self._listen():
                    self._ended.faults.append("stuck: nobody said a word")
                    break
                if self._board.now - began > ENDLESS_SECONDS:
                    self._ended.faults.append(f"no end after {ENDLESS_SECONDS / 3600:g} hours")
                    break
                self._conduct()
        finally:
            self._stop()
        self._ended.seconds = self._board.now - began
        return self._ended

    @property
    def _all(self) -> list[Replica]:
        return self._ended.replicas

    def _start(self, role: Role) -> None:
        slot = len(self._all)
        pid, line = fork(self._setting, slot, role)
        self._all.append(Replica(pid, line, slot, role))

    def _listen(self) -> bool:
        by_line = {each.line: each for each in self._all if each.ended is None and not each.stopped}
        if not by_line:
            return True
        ready, _, _ = select.select(list(by_line), [], [], STUCK_SECONDS)
        for line in ready:
            replica = by_line[line]
            data = received(line)
            if not data:
                self._reap(replica)
                continue
            *lines, replica.buffer = (replica.buffer + data).split(b"\n")
            for each in lines:
                self._hear(replica, json.loads(each))
        return bool(ready)

    def _hear(self, replica: Replica, said: dict[str, Any]) -> None:
        match said["kind"]:
            case "fault":
                self._struck(replica)
            case "rest":
                replica.rest = said
            case "broken":
                replica.broken = said["error"]

    def _struck(self, replica: Replica) -> None:
        self._ended.struck = True
        assert replica.role.injection is not None
        fault = replica.role.injection.fault
        if fault is Fault.PAUSED:
            os.waitpid(replica.pid, os.WUNTRACED)
            replica.stopped = True
            self._resume_at = self._board.now + PAUSE_SECONDS
        alone = self._script.replicas == 1
        # Killed or paused, one takes over; with three replicas the two others work at the key, without a lease.
        others = (1 if fault in {Fault.KILLED, Fault.PAUSED} else 0) if alone else self._script.replicas - 1
        for _ in range(others):
            self._start(Role())

    def _reap(self, replica: Replica) -> None:
        _, status = os.waitpid(replica.pid, 0)
        replica.line.close()
        replica.ended = status
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if replica.role.dies_after_dispatch and killed:
            self._start(Role(self._script.injection))
            return
        told = replica.role.injection is not None and replica.role.injection.fault is Fault.KILLED
        if status != 0 and not (killed and told and self._ended.struck):
            self._ended.faults.append(f"replica {replica.slot} ended by itself ({status}): {replica.broken}")

    def _conduct(self) -> None:
        live = [each for each in self._all if each.running]
        now = self._board.now
        if any(self._board.sending(each.slot) for each in live):
            return
        if any(self._board.until(each.slot) <= now for each in live):
            return
        due = min((self._board.until(each.slot) for each in live), default=float("inf"))
        if self._resume_at is not None and (not live or (due >= self._resume_at and not self._script.late)):
            self._resume()
        elif live:
            self._board.move(due)
        for each in self._all:
            if each.running:
                self._poke(each)

    def _resume(self) -> None:
        assert self._resume_at is not None
        self._board.move(self._resume_at)
        self._resume_at = None
        for each in self._all:
            if each.stopped:
                each.stopped = False
                os.kill(each.pid, signal.SIGCONT)

    @staticmethod
    def _poke(replica: Replica) -> None:
        try:
            replica.line.send(b".")
        except OSError:
            return  # it has ended; its end is heard next

    def _stop(self) -> None:
        for each in self._all:
            if each.ended is None:
                os.kill(each.pid, signal.SIGKILL)
                os.kill(each.pid, signal.SIGCONT)
                os.waitpid(each.pid, 0)
                each.line.close()
