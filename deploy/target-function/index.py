"""The disposable function that PRAXIS may restart: it says which instance it is and which restart it was started by.

Runs on Function Compute 3.0's built-in runtime `python3.10` as an event function (`handler`), and on a custom runtime
as a web server (`python index.py`, port FC_SERVER_PORT, 9000 if unset). Needs nothing but the standard library.
"""

import json
import os
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HEALTH_PATH = os.environ.get("HEALTH_PATH", "/praxis/health")
# FC_INSTANCE_ID is set by the service. Anywhere else, one id for the life of the process means the same.
INSTANCE_ID = os.environ.get("FC_INSTANCE_ID") or "local-" + uuid.uuid4().hex


def answer(path):
    """What a path answers: the identity at the health path, otherwise a greeting."""
    if path == HEALTH_PATH:
        return {"instanceId": INSTANCE_ID, "restartId": os.environ.get("PRAXIS_RESTART_ID")}
    return {"ok": True, "message": "a disposable function; its health path is " + HEALTH_PATH}


def handler(event, context):
    """Event function: the event is JSON, `{"path": "/praxis/health"}`."""
    return json.dumps(answer(path_of(event)))


def path_of(event):
    """The path that an event asks for; `/` for anything that is no such event."""
    try:
        document = json.loads(event or "{}")
    except ValueError:
        return "/"
    # An HTTP trigger's event calls it rawPath.
    return str(document.get("path") or document.get("rawPath") or "/") if isinstance(document, dict) else "/"


class Web(BaseHTTPRequestHandler):
    """Custom runtime: paths as they are, and POST /invoke with the event as its body, as the service calls it."""

    def do_GET(self):
        self._reply(answer(self.path.partition("?")[0]))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._reply(answer(path_of(body)))

    def _reply(self, document):
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    ThreadingHTTPServer(("0.0.0.0", int(os.environ.get("FC_SERVER_PORT", "9000"))), Web).serve_forever()  # noqa: S104
