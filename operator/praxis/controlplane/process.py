"""Which process is meant, beyond its number: a pid is reused, a pid with its start time is not. Linux only."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class ProcessIdentity:
    """One process for ever: its number, its start in clock ticks since boot, and that boot."""

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The process that has this number now; None when there is none, or when it ended and is only not reaped."""
        try:
            state, identity = cls._read(pid)
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if state in "ZX" else identity

    @classmethod
    def of_child(cls, pid: int) -> ProcessIdentity:
        """A child of this process that was not waited for yet, which has its number even when it ended."""
        return cls._read(pid)[1]

    @classmethod
    def _read(cls, pid: int) -> tuple[str, ProcessIdentity]:
        stat = Path(f"/proc/{pid}/stat").read_text()
        # The name before it is in parentheses and may hold anything, spaces and parentheses too.
        state, *fields = stat.rpartition(")")[2].split()
        return state, cls(pid, int(fields[18]), _boot())

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return ProcessIdentity.of(self.pid) == self

    def end(self, grace: float) -> None:
        """SIGTERM, then SIGKILL after `grace` seconds; returns when it has ended. Harmless when it had already.

        The pidfd is taken before the identity is looked at, so the signals cannot reach a process that took over the
        number in between.
        """
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.alive and not _ends(handle, signal.SIGTERM, grace):
                _ends(handle, signal.SIGKILL, None)
        finally:
            os.close(handle)


def _ends(handle: int, number: signal.Signals, seconds: float | None) -> bool:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, number)
    ending = select.poll()
    ending.register(handle, select.POLLIN)
    return bool(ending.poll(None if seconds is None else seconds * 1000))


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
