"""Time that all processes of a run share and that costs nothing: it moves only when everybody sleeps.

Times are seconds since boot, in memory that forked processes share. Each replica has a slot there that it alone writes:
until when it sleeps, and whether a request that it was permitted may be on its way. The conductor moves time on to the
earliest end of a sleep once every replica that runs sleeps. While a request is on its way time stands still: a request
takes no time here, or it would seem to arrive after the deadlines of others, which on the service's side no clock of
ours could prevent.
"""

from __future__ import annotations

import asyncio
import mmap
import struct
import threading
from datetime import UTC, datetime
from typing import Final

SLOTS: Final = 8
_DOUBLE: Final = struct.Struct("d")
_HEADER: Final = 2
_FIELDS: Final = 2


class Board:
    """The shared memory. Every cell has one writer and is written in one piece."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, (_HEADER + SLOTS * _FIELDS) * _DOUBLE.size)

    def begin(self, wall: float) -> None:
        """Start a run: `wall` is the time of day, seconds since 1970; nobody sleeps."""
        self._set(0, 1000.0)
        self._set(1, wall - 1000.0)
        for slot in range(SLOTS):
            self.sleeps(slot, 0.0)
            self.sends(slot, False)

    @property
    def now(self) -> float:
        """Seconds since boot."""
        return self._get(0)

    @property
    def wall(self) -> float:
        """Seconds since 1970."""
        return self._get(0) + self._get(1)

    def move(self, to: float) -> None:
        """Let time pass; never backwards."""
        self._set(0, max(self.now, to))

    def sleeps(self, slot: int, until: float) -> None:
        """A replica sleeps; 0: it does not."""
        self._set(_HEADER + slot * _FIELDS, until)

    def until(self, slot: int) -> float:
        """Until when a replica sleeps; 0: it does not."""
        return self._get(_HEADER + slot * _FIELDS)

    def sends(self, slot: int, sending: bool) -> None:
        """A replica's request may be on its way."""
        self._set(_HEADER + slot * _FIELDS + 1, float(sending))

    def sending(self, slot: int) -> bool:
        """Whether a replica's request may be on its way."""
        return self._get(_HEADER + slot * _FIELDS + 1) != 0

    def _get(self, index: int) -> float:
        value: float = _DOUBLE.unpack_from(self._memory, index * _DOUBLE.size)[0]
        return value

    def _set(self, index: int, value: float) -> None:
        _DOUBLE.pack_into(self._memory, index * _DOUBLE.size, value)


class SharedClock:
    """A replica's clock (`praxis.clock.Clock`), for its event loop and for its threads."""

    def __init__(self, board: Board, slot: int, tell: Tell) -> None:
        self._board = board
        self._slot = slot
        self._tell = tell
        self._lock = threading.Lock()
        self._sleepers: list[tuple[float, threading.Event | asyncio.Event]] = []

    def now(self) -> datetime:
        """Wall time, UTC."""
        return datetime.fromtimestamp(self._board.wall, UTC)

    def boottime(self) -> float:
        """Seconds since boot."""
        return self._board.now

    async def sleep(self, seconds: float) -> None:
        """Let time pass; the event loop goes on."""
        woken = asyncio.Event()
        self._enter(seconds, woken)
        try:
            await woken.wait()
        finally:
            self._leave(woken)

    def pause(self, seconds: float) -> None:
        """Let time pass on a thread of its own."""
        woken = threading.Event()
        self._enter(seconds, woken)
        woken.wait()
        self._leave(woken)

    def look(self) -> None:
        """Time has moved: wake whoever is due. Called on the event loop."""
        with self._lock:
            for until, woken in self._sleepers:
                if until <= self._board.now:
                    woken.set()

    def _enter(self, seconds: float, woken: threading.Event | asyncio.Event) -> None:
        with self._lock:
            until = self._board.now + max(0.0, seconds)
            self._sleepers.append((until, woken))
            if until <= self._board.now:
                woken.set()
            self._publish()
        self._tell.changed()

    def _leave(self, woken: threading.Event | asyncio.Event) -> None:
        with self._lock:
            self._sleepers = [each for each in self._sleepers if each[1] is not woken]
            self._publish()
        # Another of ours may sleep on, and this one may never say anything again.
        self._tell.changed()

    def _publish(self) -> None:
        self._board.sleeps(self._slot, min((until for until, _ in self._sleepers), default=0.0))


class Tell:
    """How a replica says to the conductor that its slot has changed."""

    def changed(self) -> None:
        """Look at my slot."""
        raise NotImplementedError
