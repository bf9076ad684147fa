"""The one clock: wall time for what people read, boot time for deadlines that a suspended process must not outlive."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the rest of the code may ask of time."""

    def now(self) -> datetime:
        """Wall time, UTC."""
        ...

    def boottime(self) -> float:
        """Seconds since boot; goes on while the process is stopped and while the machine sleeps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for so many seconds."""
        ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        """Wall time, UTC."""
        return datetime.now(UTC)

    def boottime(self) -> float:
        """Seconds since boot (CLOCK_BOOTTIME, Linux)."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for so many seconds."""
        await asyncio.sleep(seconds)


def rfc3339(moment: datetime) -> str:
    """A moment as Kubernetes writes it: UTC, whole microseconds, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_rfc3339(text: str) -> datetime:
    """The moment that an RFC 3339 string names.

    Raises:
        ValueError: it is no RFC 3339 time, has no offset from UTC, or lies outside the years 1 to 9999.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC; write 2026-01-31T12:00:00Z")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is outside the years 1 to 9999 in UTC") from error
