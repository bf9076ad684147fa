"""Faults of a watch, for `tests.proxy`: `proxy.spoil(cut(2), method="GET", watch=True)`. `after` counts events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from aiohttp import web

from tests.proxy import Exchange, Fault, Lines

GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
LOOK_SECONDS = 0.1


class Cut(Exception):  # the end of a stream, not an error of the test's
    """The connection ends here."""


def through(lines: Lines) -> Fault:
    """The watch passes, its events through `lines`; where they raise Cut, the connection ends."""

    async def fault(exchange: Exchange) -> web.StreamResponse | None:
        try:
            return await exchange.relay(lines)
        except Cut:
            return None

    return fault


async def first(count: int, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """So many of the events; it ends when the one after them comes, or their end."""
    async for event in events:
        if count == 0:
            break
        count -= 1
        yield event


def cut(after: int) -> Fault:
    """The connection ends after some events."""

    async def lines(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for event in first(after, events):
            yield event
        raise Cut

    return through(lines)


def twice() -> Fault:
    """Each event comes twice."""

    async def lines(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for event in events:
            yield event
            yield event

    return through(lines)


def swapped() -> Fault:
    """Each second event comes before the one before it; the last may wait until the watch ends."""

    async def lines(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        held: bytes | None = None
        async for event in events:
            if held is None:
                held = event
                continue
            yield event
            yield held
            held = None
        if held is not None:
            yield held

    return through(lines)


def late(seconds: float) -> Fault:
    """Each event comes so much later."""

    async def lines(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for event in events:
            await asyncio.sleep(seconds)
            yield event

    return through(lines)


def gone(after: int) -> Fault:
    """After some events the server says that it no longer knows the version: list anew."""

    async def lines(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for event in first(after, events):
            yield event
        yield json.dumps(GONE).encode() + b"\n"

    return through(lines)


def silent(after: int) -> Fault:
    """After some events it stays open and delivers nothing, until the client goes away."""

    async def fault(exchange: Exchange) -> web.StreamResponse:
        async def lines(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            async for event in first(after, events):
                yield event
            while exchange.request.transport is not None:  # noqa: ASYNC110  # aiohttp tells nobody when a client leaves
                await asyncio.sleep(LOOK_SECONDS)

        return await exchange.relay(lines)

    return fault
