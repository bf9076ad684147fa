"""A client of the emulator's control interface, for the demo and for tests that run it as a process of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

from praxis.demo.function_compute.faults import Fault

MARGIN_SECONDS = 10.0
"""How much longer to wait for an answer than the emulator was asked to wait."""


class AdminError(RuntimeError):
    """The emulator did not accept a request to its control interface: a mistake of whoever called."""


class Admin:
    """Controls an emulator at a URL. Blocking: call it through `asyncio.to_thread` from a coroutine."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._address = urlsplit(url).netloc

    def function(self, name: str) -> dict[str, Any]:
        """Configuration and active instances of a function."""
        found: dict[str, Any] = self._call("GET", f"functions/{name}")
        return found

    def add_function(self, **seed: Any) -> None:
        """Declare a function: fields of FunctionSeed, camelCase or not."""
        self._call("POST", "functions", body=seed)

    def change(self, name: str, **settings: Any) -> None:
        """Change how a function behaves: fields of FunctionSeed."""
        self._call("PATCH", f"functions/{name}", body=settings)

    def add_credential(self, **seed: Any) -> None:
        """Declare an access key: fields of CredentialSeed."""
        self._call("POST", "credentials", body=seed)

    def deploy(self, name: str, environment: Mapping[str, str]) -> None:
        """Change a function's environment as a deployer would."""
        self._call("POST", f"functions/{name}/environment", body=dict(environment))

    def start_instance(self, name: str) -> str:
        """Start an instance; its id."""
        return str(self._call("POST", f"functions/{name}/instances")["id"])

    def stop_instance(self, name: str, instance: str) -> None:
        """End an instance at once."""
        self._call("DELETE", f"functions/{name}/instances/{instance}")

    def arm(self, fault: Fault) -> str:
        """Put a fault in force; its id."""
        return str(self._call("POST", "faults", body=fault.model_dump(mode="json", exclude_none=True))["id"])

    def disarm(self, fault_id: str) -> None:
        """Remove a fault and let go whatever it holds."""
        self._call("DELETE", f"faults/{fault_id}")

    def wait_for_hits(self, fault_id: str, count: int = 1, *, timeout: float = 30) -> bool:
        """Wait until a fault has hit so many requests; whether it has."""
        query = {"hits": str(count), "timeout": str(timeout)}
        return bool(self._call("GET", f"faults/{fault_id}", query=query, wait=timeout)["reached"])

    def light(self) -> None:
        """End the dark."""
        self._call("POST", "light")

    def skew(self, seconds: float) -> None:
        """Put the service's clock off."""
        self._call("POST", "skew", body={"seconds": seconds})

    def arrivals(
        self, *, function: str | None = None, operation: str | None = None, count: int = 0, timeout: float = 30
    ) -> list[dict[str, Any]]:
        """The requests that arrived, after waiting for `count` of them."""
        query = {"function": function, "operation": operation, "count": str(count), "timeout": str(timeout)}
        found: list[dict[str, Any]] = self._call("GET", "arrivals", query=query, wait=timeout)
        return found

    def dispatches(self, *, function: str | None = None, marker: str | None = None) -> list[dict[str, Any]]:
        """The mutating requests that arrived: number, operation, function, marker, applied, status."""
        found: list[dict[str, Any]] = self._call("GET", "dispatches", query={"function": function, "marker": marker})
        return found

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | None] | None = None,
        body: Mapping[str, Any] | None = None,
        wait: float = 0,
    ) -> Any:
        connection = HTTPConnection(self._address, timeout=wait + MARGIN_SECONDS)
        asked = urlencode({name: value for name, value in (query or {}).items() if value is not None})
        try:
            connection.request(method, f"/_emulator/{path}?{asked}", json.dumps(body or {}))
            response = connection.getresponse()
            document = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise AdminError(f"{method} {path}: {document['error']}")
        return document
