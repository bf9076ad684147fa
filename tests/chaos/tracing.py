"""Finds every point at which the controller waits, by driving its coroutines, and breaks one of them.

A coroutine of the operator is wrapped where it becomes a task. Whenever it really suspends, the chain of coroutines
inside it is walked to the innermost frame of the operator: that chain is the await point. Nothing is listed by hand, so
an `await` that is added is found by the next run.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import praxis

ROOT = Path(praxis.__file__).parent
PREFIX = f"{ROOT}/"


class Side(StrEnum):
    """When: as the point is reached, or when what was waited for has come, right before it is handed over."""

    REACHED = "reached"
    ANSWERED = "answered"


class Fault(StrEnum):
    """What happens there."""

    KILLED = "killed"
    """SIGKILL."""
    EXCEPTION = "exception"
    """An error that nobody expects."""
    CANCELLED = "cancelled"
    """The task is cancelled."""
    PAUSED = "paused"
    """SIGSTOP, while another takes over."""


@dataclass(frozen=True)
class Place:
    """One suspension of a process' life: the point, and how many times it had been reached before."""

    point: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.point}.{self.occurrence}"


@dataclass(frozen=True)
class Injection:
    """What happens, where, and on which side of the wait."""

    fault: Fault
    place: Place
    side: Side


class Injected(RuntimeError):
    """The error that nobody expects."""


@dataclass
class Tracer:
    """Watches the coroutines of one process. `strike` carries out a fault that takes the process away, and tells it."""

    strike: Callable[[Fault], None]
    injection: Injection | None = None
    chains: dict[str, str] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    places: list[Place] = field(default_factory=list)
    struck: bool = False

    def factory(self, loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> asyncio.Task[Any]:
        """A task factory: the operator's own coroutines are driven step by step."""
        code = getattr(coro, "cr_code", None)
        if code is not None and code.co_filename.startswith(PREFIX):
            coro = Driven(coro, self)
        return asyncio.Task(coro, loop=loop, **kwargs)

    def reached(self, chain: str) -> Place:
        """A coroutine suspends here."""
        point = hashlib.sha256(chain.encode()).hexdigest()[:6]
        self.chains[point] = chain
        place = Place(point, self.seen[point])
        self.seen[point] += 1
        self.places.append(place)
        return place

    def strikes(self, place: Place | None, side: Side) -> Fault | None:
        """The fault that is due here, once."""
        due = self.injection
        if self.struck or due is None or place != due.place or side is not due.side:
            return None
        self.struck = True
        self.strike(due.fault)
        return due.fault


class Driven(Coroutine[Any, Any, Any]):
    """A coroutine that is watched where it suspends."""

    def __init__(self, inner: Coroutine[Any, Any, Any], tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer
        self._place: Place | None = None

    def send(self, value: Any) -> Any:
        """Go on; what was waited for has come."""
        return self._step(lambda: self._inner.send(value))

    def throw(self, typ: Any, val: Any = None, tb: TracebackType | None = None) -> Any:
        """Go on with an error, which is how asyncio hands over that what was waited for has failed."""
        error = typ if val is None else val
        return self._step(lambda: self._inner.throw(error))

    def close(self) -> None:
        """End it."""
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise NotImplementedError("it is only driven by a task")

    def _step(self, go_on: Callable[[], Any]) -> Any:
        error = self._error(self._tracer.strikes(self._place, Side.ANSWERED))
        awaited = go_on() if error is None else self._inner.throw(error)
        while True:
            self._place = self._tracer.reached(chain_of(self._inner))
            fault = self._tracer.strikes(self._place, Side.REACHED)
            if fault is not Fault.EXCEPTION:
                if fault is Fault.CANCELLED:
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()
                return awaited
            awaited = self._inner.throw(Injected("told to fail"))

    @staticmethod
    def _error(fault: Fault | None) -> BaseException | None:
        if fault is Fault.EXCEPTION:
            return Injected("told to fail")
        return asyncio.CancelledError() if fault is Fault.CANCELLED else None


def chain_of(coroutine: Any) -> str:
    """The operator's frames from the outermost to the one that waits: `file.py:LINE name < file.py:LINE name`."""
    frames: list[str] = []
    while coroutine is not None:
        frame: FrameType | None = next(
            (getattr(coroutine, each) for each in ("cr_frame", "gi_frame", "ag_frame") if hasattr(coroutine, each)),
            None,
        )
        if frame is not None and frame.f_code.co_filename.startswith(PREFIX):
            where = frame.f_code.co_filename.removeprefix(PREFIX)
            frames.append(f"{where}:{frame.f_lineno} {frame.f_code.co_qualname}")
        coroutine = next(
            (getattr(coroutine, each) for each in ("cr_await", "gi_yieldfrom", "ag_await") if hasattr(coroutine, each)),
            None,
        )
    return " > ".join(frames)
