"""A real Alertmanager (Debian's package) notifies a real gateway, with bearer authentication."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from praxis.clock import rfc3339
from tests.intake.conftest import Site
from tests.proxy import answer

pytestmark = pytest.mark.controlplane

PATIENCE_SECONDS = 60.0
LABELS = {"alertname": "HighLatency", "service": "checkout", "severity": "critical", "pod": "checkout-1"}
CONFIGURATION = """
route:
  receiver: praxis
  group_by: [alertname, service]
  group_wait: 100ms
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: praxis
    webhook_configs:
      - url: {url}/v1/alertmanager
        send_resolved: true
        http_config:
          authorization:
            credentials_file: {token}
"""


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds, for as long as a busy machine may take."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await holds():  # noqa: ASYNC110  # another process is looked at from outside
            await asyncio.sleep(0.05)


class Alertmanager:
    """A running Alertmanager, as Prometheus sees it."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self._session = session

    async def tell(self, *, began: datetime, ended: datetime | None = None, **labels: str) -> None:
        """Send an alert that fires until further notice, or that has ended."""
        told: dict[str, Any] = {
            "labels": LABELS | labels,
            "annotations": {"summary": "Checkout is slow."},
            "startsAt": rfc3339(began),
            "endsAt": rfc3339(ended or datetime.now(UTC) + timedelta(hours=1)),
        }
        async with self._session.post(f"{self.url}/api/v2/alerts", json=[told]) as reply:
            assert reply.status == 200, await reply.text()

    async def ready(self) -> bool:
        """Whether it answers."""
        try:
            async with self._session.get(f"{self.url}/-/ready") as reply:
                return reply.status == 200
        except aiohttp.ClientError:
            return False

    async def failures(self) -> float:
        """How many notifications it could not deliver."""
        async with self._session.get(f"{self.url}/metrics") as reply:
            lines = (await reply.text()).splitlines()
        name = 'alertmanager_notifications_failed_total{integration="webhook"'
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


@pytest.fixture
async def alertmanager(site: Site) -> AsyncIterator[Alertmanager]:
    """An Alertmanager whose only receiver is the site's gateway."""
    binary = shutil.which("prometheus-alertmanager")
    assert binary, "install Debian's prometheus-alertmanager: make packages"
    configuration = site.directory / "alertmanager.yml"
    configuration.write_text(CONFIGURATION.format(url=site.urls[0], token=site.directory / "token"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log = (site.directory / "alertmanager.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        binary,
        f"--config.file={configuration}",
        f"--storage.path={site.directory / 'data'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=log,
    )
    log.close()
    try:
        running = Alertmanager(f"http://{address}", site.session)
        await until(running.ready)
        yield running
    finally:
        process.terminate()
        await process.wait()


async def test_fires_resolves_and_fires_again(site: Site, alertmanager: Alertmanager) -> None:
    """An alert becomes an Incident, a second one joins, both resolve in it, and what fires then is the next episode."""
    began = datetime.now(UTC) - timedelta(minutes=1)

    async def statuses() -> list[dict[str, str]]:
        return [{each.labels["pod"]: each.status for each in one.spec.alerts} for one in await site.incidents()]

    async def are(*expected: dict[str, str]) -> None:
        async def hold() -> bool:
            return await statuses() == list(expected)

        await until(hold)

    await alertmanager.tell(began=began)
    await are({"checkout-1": "firing"})
    await alertmanager.tell(began=began, pod="checkout-2")
    await are({"checkout-1": "firing", "checkout-2": "firing"})
    ended = datetime.now(UTC)
    await alertmanager.tell(began=began, ended=ended)
    await are({"checkout-1": "resolved", "checkout-2": "firing"})
    await alertmanager.tell(began=began, ended=ended, pod="checkout-2")
    await are({"checkout-1": "resolved", "checkout-2": "resolved"})

    (incident,) = await site.incidents()
    assert incident.spec.source.group_key == '{}:{alertname="HighLatency", service="checkout"}'
    assert (incident.spec.summary, incident.spec.severity) == ("Checkout is slow.", "critical")
    assert len(incident.spec.alerts[0].fingerprint) == 16
    await site.lead(incident.metadata.name, "Closed", reason="SelfResolved")

    await alertmanager.tell(began=datetime.now(UTC))
    await are({"checkout-1": "resolved", "checkout-2": "resolved"}, {"checkout-1": "firing"})
    again = (await site.incidents())[1]
    assert (again.spec.source.episode, again.spec.source.previous) == (2, incident.metadata.name)
    outcomes = await site.outcomes()
    assert outcomes["created FirstEpisode"] == 1
    assert outcomes["created NextEpisode"] == 1
    assert not [each for each in outcomes if each.startswith("refused")]
    assert await alertmanager.failures() == 0


async def test_tries_again_after_503(site: Site, alertmanager: Alertmanager) -> None:
    """A notification that was answered 503 comes again by itself, and nothing is lost."""
    site.proxy.spoil(answer(503), method="GET", path="incidents", times=10_000)

    async def refused() -> bool:
        return (await site.outcomes()).get("refused Unavailable", 0) > 0

    async def arrived() -> bool:
        return len(await site.incidents()) == 1

    await alertmanager.tell(began=datetime.now(UTC))
    await until(refused)
    site.proxy.rules.clear()
    await until(arrived)
