"""The emulator behind HTTP, on a loopback port: signed requests of the service, and its control interface."""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from praxis.demo.function_compute.control import PREFIX, control
from praxis.demo.function_compute.emulator import Answer, Emulator
from praxis.demo.function_compute.signature import Request

BODY_BYTES: Final = 1024 * 1024


class EmulatorServer:
    """Serves an emulator on a loopback port, on threads of its own. Use as a context manager."""

    def __init__(self, emulator: Emulator, *, port: int = 0) -> None:
        self.emulator = emulator
        self._server = _Server(("127.0.0.1", port), _handler(emulator))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> EmulatorServer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.emulator.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """What goes into a target's `endpoint`."""
        return f"http://127.0.0.1:{self.port}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that went away, or was killed, is what this emulator is for.
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def _handler(emulator: Emulator) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it so
            del format, args

        def _any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if length > BODY_BYTES:
                self.close_connection = True
                return
            body = self.rfile.read(length)
            parts = urlsplit(self.path)
            if parts.path.startswith(PREFIX):
                self._answer(control(emulator, self.command, parts.path, dict(parse_qsl(parts.query)), body))
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._answer(emulator.handle(Request(self.command, parts.path, parts.query, headers, body)))

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815  # the base class names them so

        def _answer(self, answer: Answer | None) -> None:
            if answer is None:
                self.close_connection = True
                return
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if not answer.pace:
                self.wfile.write(answer.body)
                return
            for index in range(len(answer.body)):
                self.wfile.write(answer.body[index : index + 1])
                threading.Event().wait(answer.pace)

    return Handler
