"""Everything that etcd has ever held, over its own JSON API on its socket: what was overwritten or deleted, too."""

from __future__ import annotations

import base64
import http.client
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

EVERYTHING = base64.b64encode(b"\0").decode()
"""As key and as end of the range: all keys (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/)."""


@dataclass(frozen=True)
class Stored:
    """What stood under a key at one revision."""

    key: str
    value: bytes
    revision: int


def stored(endpoint: str) -> list[Stored]:
    """All keys and values as they are now."""
    answer = _ask(endpoint, "/v3/kv/range", {"key": EVERYTHING, "range_end": EVERYTHING})
    return [_stored(each) for each in answer.get("kvs", [])]


def history(endpoint: str) -> list[Stored]:
    """All values of all keys since the last compaction, those that were replaced or deleted among them."""
    newest = int(_ask(endpoint, "/v3/kv/range", {"key": EVERYTHING, "limit": 1})["header"]["revision"])
    return list(_changes(endpoint, newest))


def _changes(endpoint: str, newest: int) -> Iterator[Stored]:
    first = 1
    while True:
        watch = {"create_request": {"key": EVERYTHING, "range_end": EVERYTHING, "start_revision": str(first)}}
        connection, answer = _send(endpoint, "/v3/watch", watch)
        try:
            while line := answer.readline():
                result = json.loads(line)["result"]
                if compacted := int(result.get("compact_revision", 0)):
                    first = compacted
                    break
                events = [_stored(each["kv"]) for each in result.get("events", [])]
                yield from events
                if events and events[-1].revision >= newest:
                    return
        finally:
            connection.close()


def _stored(kv: dict[str, Any]) -> Stored:
    return Stored(
        key=base64.b64decode(kv["key"]).decode(errors="replace"),
        value=base64.b64decode(kv.get("value", "")),
        revision=int(kv["mod_revision"]),
    )


def _ask(endpoint: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    connection, answer = _send(endpoint, path, body)
    try:
        document: dict[str, Any] = json.loads(answer.read())
        return document
    finally:
        connection.close()


def _send(
    endpoint: str, path: str, body: dict[str, Any]
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = _Connection(endpoint.removeprefix("unix://"))
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    return connection, answer


class _Connection(http.client.HTTPConnection):
    def __init__(self, socket_path: str) -> None:
        super().__init__("etcd", timeout=60)
        self._socket_path = socket_path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self._socket_path)
