"""Reading a request's body without trusting its length, its type or its speed."""

from __future__ import annotations

import asyncio

from aiohttp import web

CHARSETS = (None, "utf-8", "utf8", "us-ascii")


def check_headers(request: web.Request, *, limit: int) -> None:
    """Refuse what is not worth reading.

    Raises:
        aiohttp.web.HTTPUnsupportedMediaType: it says that it is not JSON in UTF-8, or is compressed.
        aiohttp.web.HTTPRequestEntityTooLarge: it says that it is too long.
    """
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send application/json in the Content-Type header")
    if (request.charset or "").lower() not in {charset or "" for charset in CHARSETS}:
        raise web.HTTPUnsupportedMediaType(text="send JSON in UTF-8: another charset is not understood")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise web.HTTPUnsupportedMediaType(text="send the body as it is: a Content-Encoding is not understood")
    if request.content_length is not None and request.content_length > limit:
        raise too_large(limit, request.content_length)


async def read(request: web.Request, *, limit: int, seconds: float) -> bytes:
    """The body; never more than `limit` bytes and one chunk are held.

    Raises:
        aiohttp.web.HTTPRequestEntityTooLarge: there is more.
        aiohttp.web.HTTPBadRequest: it ends early, or is not framed as HTTP says.
        TimeoutError: it has not arrived within so many seconds.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > limit:
                    raise too_large(limit, len(body))
    except (web.RequestPayloadError, ConnectionError) as error:
        raise web.HTTPBadRequest(text="the body ended early") from error
    return bytes(body)


def too_large(limit: int, size: int) -> web.HTTPRequestEntityTooLarge:
    """The refusal that names the limit."""
    return web.HTTPRequestEntityTooLarge(
        max_size=limit, actual_size=size, text=f"the body has {size} bytes or more; the limit is {limit} bytes"
    )
