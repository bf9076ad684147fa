"""A real Prometheus for tests, with measurements of a known hour in its store and an exporter that it scrapes."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
"""When the known hour ends."""
INSTALLED = shutil.which("prometheus") is not None and shutil.which("promtool") is not None

EXPOSITION = b"""\
# TYPE queue_depth gauge
queue_depth{queue="orders"} 42
queue_depth{queue="mails"} 7
# TYPE build_info gauge
build_info{version="1.2.3",token="ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2"} 1
"""


def measurements() -> str:
    """An hour of OpenMetrics, one sample a minute: checkout's memory climbs from 100 to 700, search's stays at 50."""
    end = int(NOON.timestamp())
    lines = ["# TYPE memory_mib gauge"]
    for service, value in (("checkout", lambda minute: 100 + 10 * minute), ("search", lambda _: 50)):
        lines += [
            f'memory_mib{{service="{service}"}} {value(minute)} {end - 3600 + 60 * minute}' for minute in range(61)
        ]
    return "\n".join([*lines, "# EOF", ""])


class _Exporter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(EXPOSITION)

    def log_message(self, *_: object) -> None:
        """Nothing on the tests' output."""


@contextmanager
def exporter() -> Iterator[int]:
    """An exporter on a free loopback port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Exporter)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def prometheus(directory: Path, *, scraped: int) -> Iterator[str]:
    """The base URL of a Prometheus that holds `measurements` and scrapes an exporter twice a second."""
    (directory / "hour.om").write_text(measurements())
    (directory / "prometheus.yml").write_text(
        "global: {scrape_interval: 500ms, scrape_timeout: 500ms}\n"
        f"scrape_configs: [{{job_name: shop, static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]}}]\n"
    )
    data = directory / "data"
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(directory / "hour.om"), str(data)]
    subprocess.run(blocks, check=True, capture_output=True)
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={data}",
            "--storage.tsdb.retention.time=100y",
            "--web.listen-address=127.0.0.1:0",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    reading = threading.Thread(target=lambda: None)
    try:
        assert process.stderr is not None
        address = ""
        for line in process.stderr:
            if found := re.search(r'msg="Listening on" address=(\S+)', line):
                address = found[1]
            if "Server is ready to receive web requests" in line:
                break
        else:
            raise AssertionError("prometheus ended before it was ready")
        # Read on, or a full pipe would stop it.
        reading = threading.Thread(target=process.stderr.read)
        reading.start()
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()
        if reading.is_alive():
            reading.join()
        if process.stderr:
            process.stderr.close()
