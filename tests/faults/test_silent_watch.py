"""A watch that stays open and delivers nothing is noticed within the canary's deadline; a healthy one never is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from praxis.controller import watch
from praxis.controller.canary import LOOKS, Canary
from praxis.controller.cluster import KubeCluster
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.operator import operator
from praxis.controller.queue import WorkQueue
from praxis.kube import Kube
from tests.faults.conftest import Line
from tests.phases.world import HandClock, Time
from tests.proxy import answer

pytestmark = pytest.mark.controlplane

DEADLINE = 120.0
PATIENCE_SECONDS = 90.0
LOOK_SECONDS = 0.05
TARGETS = "remediationtargets"


def everything(event: bytes) -> bool:
    """Not even a bookmark arrives."""
    return True


def all_but_bookmarks(event: bytes) -> bool:
    """Bookmarks arrive, so that the connection looks alive."""
    return b'"BOOKMARK"' not in event


@asynccontextmanager
async def watching(line: Line, clock: HandClock) -> AsyncIterator[Canary]:
    """kopf watches through the proxy, for a canary whose clock is moved by hand."""
    registry, queue = CollectorRegistry(), WorkQueue(clock=clock)
    incidents = Incidents(clock=clock, deadlines=line.settings.deadlines)
    metrics = Metrics(registry=registry, incidents=incidents, queue=queue)
    async with await Kube.connect(line.proxy.kubeconfig) as kube:
        cluster = KubeCluster(kube=kube, settings=line.settings)
        canary = Canary(cluster=cluster, clock=clock, registry=registry, deadline=DEADLINE)
        delivery = watch.Delivery(queue=queue, incidents=incidents, metrics=metrics, canary=canary, clock=clock)
        stop = asyncio.Event()
        task = asyncio.create_task(
            watch.watch(kube=kube, delivery=delivery, settings=line.settings, ready=asyncio.Event(), stop=stop)
        )
        try:
            yield canary
        finally:
            stop.set()
            await task


async def test_a_watch_that_ends_cancels_nothing_of_others(line: Line) -> None:
    """kopf cancels whatever came into its loop after itself."""
    async with watching(line, HandClock(Time())) as canary:
        await told(canary)
        answered = asyncio.Event()
        under_way = asyncio.gather(answered.wait(), answered.wait())
    answered.set()
    assert await under_way == [True, True]


async def told(canary: Canary) -> None:
    """Return once nothing is owed; the canary's time stands still."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await canary.look() or canary._watches[TARGETS].owed:  # noqa: ASYNC110  # what others deliver is polled
            await asyncio.sleep(LOOK_SECONDS)


async def test_a_healthy_watch_is_never_noticed(line: Line) -> None:
    """Change after change, and a day in which nothing changes."""
    clock = HandClock(Time())
    async with watching(line, clock) as canary:
        await told(canary)
        for turn in range(10):
            await line.label("first", f"turn-{turn}")
            await told(canary)
            clock.time.forward(DEADLINE)
            assert await canary.look() == []
        clock.time.forward(86400)
        assert await canary.look() == []
        assert canary.age(TARGETS) == 0


@pytest.mark.parametrize("swallows", [everything, all_but_bookmarks])
async def test_a_silent_watch_is_noticed_within_the_deadline(line: Line, swallows: Callable[[bytes], bool]) -> None:
    """Not at the first look, when an event may still be on its way; within the deadline after the change."""
    clock = HandClock(Time())
    async with watching(line, clock) as canary:
        await told(canary)
        line.proxy.swallows = swallows
        await line.label("first", "changed")
        clock.time.forward(1)
        found = []
        for _ in range(LOOKS):
            found.append(await canary.look())
            clock.time.forward(DEADLINE / LOOKS)
        assert found == [[], [], [TARGETS], [TARGETS]]
        assert canary.age(TARGETS) >= DEADLINE


async def test_an_api_server_that_does_not_answer_is_no_silent_watch(line: Line) -> None:
    """What cannot be listed is not owed; the age shows that nothing is known."""
    clock = HandClock(Time())
    async with watching(line, clock) as canary:
        await told(canary)
        line.proxy.spoil(answer(503), method="GET", path="/remediationtargets", times=LOOKS)
        for _ in range(LOOKS):
            clock.time.forward(DEADLINE / LOOKS)
            assert await canary.look() == []
        assert canary.age(TARGETS) == DEADLINE


async def test_an_object_that_is_deleted_is_not_owed(line: Line) -> None:
    """Neither while its end has not been told of, nor afterwards."""
    clock = HandClock(Time())
    async with watching(line, clock) as canary:
        await line.declare("second")
        await told(canary)
        line.proxy.swallows = everything
        await line.admin.delete(f"/apis/praxis.kopachelli.dev/v1alpha1/namespaces/{line.namespace}/{TARGETS}/second")
        for _ in range(LOOKS):
            clock.time.forward(DEADLINE / LOOKS)
            assert await canary.look() == []


async def test_the_operator_begins_a_silent_watch_anew_and_says_so(line: Line, tmp_path: Path) -> None:
    """It goes on by itself: the watches list anew, the metric counts it, and the process is ready again.

    Nothing else notices: what is under way, as in a worker, goes on, and the lease is held.
    """
    port_file = tmp_path / "port"
    async with operator(line.settings, stop=asyncio.Event(), port_file=port_file):
        address = f"http://127.0.0.1:{port_file.read_text().strip()}"
        async with aiohttp.ClientSession(address) as probes, asyncio.timeout(PATIENCE_SECONDS):
            await until(
                probes, lambda ready, metrics: ready == 200 and "praxis_watch_last_event_timestamp_seconds{" in metrics
            )
            await until(probes, lambda _, metrics: "praxis_leader 1.0" in metrics)
            answered = asyncio.Event()
            under_way = asyncio.gather(answered.wait(), answered.wait())
            line.proxy.swallows = all_but_bookmarks
            await line.label("first", "changed")
            await until(probes, lambda ready, metrics: ready == 503 and restarts(metrics) == 1)
            line.proxy.swallows = lambda _: False
            await until(probes, lambda ready, metrics: ready == 200 and restarts(metrics) >= 1)
            await until(probes, lambda _, metrics: "praxis_leader 1.0" in metrics)
            answered.set()
            assert await under_way == [True, True]


async def until(probes: aiohttp.ClientSession, holds: Callable[[int, str], bool]) -> None:
    """Ask /readyz and /metrics until what they say holds."""
    while True:
        async with probes.get("/readyz") as ready, probes.get("/metrics") as metrics:
            if holds(ready.status, await metrics.text()):
                return
        await asyncio.sleep(LOOK_SECONDS)


def restarts(metrics: str) -> float:
    """How often the watch of targets was begun anew."""
    samples = [sample for family in text_string_to_metric_families(metrics) for sample in family.samples]
    (found,) = (
        sample.value
        for sample in samples
        if sample.name == "praxis_watch_restarts_total" and sample.labels["resource"] == TARGETS
    )
    return float(found)
