"""What is real here: the commands, the `kubernetes` client, sockets.

What a real API server cannot be made to do (drop a connection, answer 502 as HTML) comes from `answering`, a server on
the wire. Everything else is tried on the embedded control plane, in test_people.py.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from praxis.controlplane import ControlPlane
from praxis.demo.stack import install
from tests.cli.shop import Shop

Answer = tuple[int, Mapping[str, Any] | str] | None
"""Status and body; None closes the connection without an answer."""


@dataclass
class Answering:
    """A server that answers each request by a function of method, path and body, and remembers what was asked."""

    kubeconfig: Path
    answer: Callable[[str, str, dict[str, Any]], Answer] = field(default=lambda method, path, body: None)
    asked: list[tuple[str, str]] = field(default_factory=list)


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[Answering]:
    """A server that answers as a test says, and a kubeconfig that points at it."""
    server = Answering(tmp_path / "kubeconfig")
    with serving(server) as port:
        server.kubeconfig.write_text(yaml.safe_dump(kubeconfig(f"http://127.0.0.1:{port}")))
        yield server


def kubeconfig(host: str, *, namespace: str | None = "shop") -> dict[str, Any]:
    """A kubeconfig with one context."""
    context = {"cluster": "c", "user": "u", **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": host}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": context}],
    }


@contextmanager
def serving(server: Answering) -> Iterator[int]:
    """Serve on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond({})

        def do_POST(self) -> None:
            self._respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            del format, args

        def _respond(self, body: dict[str, Any]) -> None:
            server.asked.append((self.command, self.path))
            answer = server.answer(self.command, self.path, body)
            if answer is None:
                self.close_connection = True
                return
            status, content = answer
            data = (content if isinstance(content, str) else json.dumps(content)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield httpd.server_address[1]
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


@pytest.fixture(scope="session")
def installed(plane: ControlPlane) -> ControlPlane:
    """The control plane with PRAXIS' CRDs, roles and policies."""
    install(plane)
    return plane


@pytest.fixture
def shop(installed: ControlPlane, request: pytest.FixtureRequest) -> Shop:
    """A namespace of its own for each test."""
    name = "cli-" + re.sub("[^a-z0-9]+", "-", request.node.name.lower())[-58:].strip("-")
    installed.kubectl("create", "namespace", name)
    return Shop(installed, name)
