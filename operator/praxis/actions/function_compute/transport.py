"""The SDK's HTTP, held to rules of our own: one request an exchange, a guard right before it, no redirects, a deadline.

The SDK gives no way to pass a session in. It keeps one for each scheme, host and pool size in a registry of its own, so
a `Channel` registers a session under a pool size that nothing else uses. Whoever calls must check `Channel.left` after
a read: an answer that did not come through here means that the registry has changed.
"""

from __future__ import annotations

import io
import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import requests
from darabonba.core import DaraCore
from darabonba.runtime import RuntimeOptions
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from praxis.actions.function_compute.credentials import Endpoint

ANSWER_BYTES: Final = 8 * 1024 * 1024
"""The largest answer that is read."""
CHUNK_BYTES: Final = 64 * 1024
CONNECT_SECONDS: Final = 5.0

Guard = Callable[[], str | None]
"""Asked when the connection stands and nothing has been written to it: None, or why nothing may be."""

_pool_sizes = itertools.count(1_000_000)


class TransportError(Exception):
    """Why an exchange was cut short here; mapped with everything else that the SDK raises, in `faults`."""


class NotPermitted(TransportError):
    """The guard said no: nothing was written."""


class DeadlinePassed(TransportError):
    """The whole exchange took too long."""


class SentTwice(TransportError):
    """Something below tried to send the same request again."""


class Redirected(TransportError):
    """The service answered with a redirect; following one would hand the environment and the token to another host."""


class AnswerTooLarge(TransportError):
    """The answer is larger than ANSWER_BYTES."""


class Exchange:
    """One request and its answer.

    `left` is False as long as surely nothing of the request has been written to a connection. That, and not the type
    of an exception, tells a request that was never sent from one whose fate is unknown.
    """

    def __init__(self, *, seconds: float, guard: Guard | None) -> None:
        self.left = False
        self._guard = guard
        self._lock = threading.Lock()
        self._expired = False
        self._socket: socket.socket | None = None
        # A read time-out starts afresh with every byte, so an answer that trickles in would never end: the connection
        # is shut from outside when the time is up. A timer, as SSL sockets take no deadline either.
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def depart(self, connection: socket.socket) -> None:
        """Called with the open connection, right before the first byte is written.

        Raises:
            TransportError: nothing may be written.
        """
        if self.left:
            raise SentTwice("the request was already sent once")
        with self._lock:
            if self._expired:
                raise DeadlinePassed("connecting took too long")
            self._socket = connection
        if self._guard is not None and (why := self._guard()) is not None:
            raise NotPermitted(why)
        self.left = True

    def finish(self) -> None:
        """Stop the timer; to be called however the exchange ended."""
        self._timer.cancel()
        with self._lock:
            self._socket = None

    def _expire(self) -> None:
        with self._lock:
            self._expired = True
            if self._socket is not None:
                try:
                    # The plain socket's method: SSLSocket.shutdown takes the TLS state from under the reading thread.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
                except OSError:
                    return  # closed already


class Channel:
    """A session of one thread with one service. Use as a context manager."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._pool_size = next(_pool_sizes)
        # The SDK's own key: its request's port is 80 whatever the scheme, as the real one is part of the host.
        self._key = f"{endpoint.scheme}://{endpoint.host}:80:pool={self._pool_size}"
        self._session = requests.Session()
        self._session.trust_env = False
        for prefix in ("http://", "https://"):
            self._session.mount(prefix, _Adapter(self))
        self._exchange: Exchange | None = None
        DaraCore._sessions[self._key] = self._session  # noqa: SLF001  # there is no public way

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *exc: object) -> None:
        DaraCore._sessions.pop(self._key, None)  # noqa: SLF001
        self._session.close()

    def runtime(self, seconds: float) -> RuntimeOptions:
        """The SDK's options for one call: this channel's session, time-outs in milliseconds, no retry."""
        return RuntimeOptions(
            max_idle_conns=self._pool_size,
            connect_timeout=int(min(seconds, CONNECT_SECONDS) * 1000),
            read_timeout=int(seconds * 1000),
        )

    @property
    def left(self) -> bool:
        """Whether anything of the last exchange's request may have been written."""
        return self._exchange is not None and self._exchange.left

    @contextmanager
    def exchange(self, *, seconds: float, guard: Guard | None) -> Iterator[None]:
        """One request: whatever the SDK does inside, no more than one is sent."""
        self._exchange = None
        self._exchange = Exchange(seconds=seconds, guard=guard)
        try:
            yield
        finally:
            self._exchange.finish()

    def depart(self, connection: socket.socket) -> None:
        """Pass on to the exchange under way. Raises TransportError."""
        if self._exchange is None:
            raise TransportError("a request outside an exchange")
        self._exchange.depart(connection)


class _Adapter(HTTPAdapter):
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {
            "http": _pool(HTTPConnectionPool, HTTPConnection, self._channel),
            "https": _pool(HTTPSConnectionPool, HTTPSConnection, self._channel),
        }

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:  # type: ignore[override]
        response = super().send(request, **{**kwargs, "stream": True})
        try:
            body = _body(response)
        except BaseException:
            response.close()
            raise
        response.raw = io.BytesIO(body)
        return response


def _body(response: requests.Response) -> bytes:
    if 300 <= response.status_code < 400:
        raise Redirected(f"the service answered {response.status_code}, a redirect")
    body = bytearray()
    while chunk := response.raw.read(CHUNK_BYTES, decode_content=True):
        body += chunk
        if len(body) > ANSWER_BYTES:
            raise AnswerTooLarge(f"the answer is larger than {ANSWER_BYTES} bytes")
    return bytes(body)


def _pool(pool: type[HTTPConnectionPool], connection: type[HTTPConnection], channel: Channel) -> Any:
    class Guarded(connection):  # type: ignore[misc,valid-type]
        """Connects first, then asks, then writes: a slow connection must not age the guard's answer."""

        def request(self, *args: Any, **kwargs: Any) -> None:
            if self.sock is None:
                self.connect()
            channel.depart(self.sock)
            super().request(*args, **kwargs)

    return type(f"Guarded{pool.__name__}", (pool,), {"ConnectionCls": Guarded})
