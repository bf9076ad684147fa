"""One blocking connection to the API server, kept open: for processes that fork and may have no threads."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

TIMEOUT_SECONDS = 30.0


class Api:
    """Requests as the identity of a kubeconfig that holds a token."""

    def __init__(self, server: str, ca_file: Path, kubeconfig: Path) -> None:
        address = urlsplit(server)
        self._token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
        self._connection = http.client.HTTPSConnection(
            str(address.hostname),
            address.port,
            context=ssl.create_default_context(cafile=str(ca_file)),
            timeout=TIMEOUT_SECONDS,
        )

    def get(self, path: str) -> dict[str, Any]:
        """Read an object, consistently. Raises AssertionError when it cannot be read."""
        status, document = self.call("GET", path)
        assert status == 200, document
        return document

    def call(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> tuple[int, Any]:
        """One request; the status and the answer. Asks again when the connection had been closed while it was idle."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        content = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, content, headers)
            answer = self._connection.getresponse()
        except (ConnectionError, http.client.RemoteDisconnected):
            self._connection.close()
            self._connection.request(method, path, content, headers)
            answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())
