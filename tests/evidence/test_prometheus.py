"""Prometheus as evidence: a real one for what it answers, a server that misbehaves for what it should not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from praxis.clock import Clock, SystemClock
from praxis.evidence import prometheus, toolbox
from praxis.evidence.contract import Observation, Scope
from praxis.evidence.reader import ReadOnlyKube
from praxis.evidence.toolbox import EvidenceToolbox
from praxis.machine import Phase
from tests import builders
from tests.evidence import measuring
from tests.evidence.clocks import StillClock
from tests.evidence.measuring import INSTALLED

SCOPE = Scope(incident=builders.incident(Phase.TRIAGED), targets=())
real = pytest.mark.skipif(not INSTALLED, reason="needs prometheus and promtool (Debian package prometheus)")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a real Prometheus."""
    with (
        measuring.exporter() as port,
        measuring.prometheus(tmp_path_factory.mktemp("prometheus"), scraped=port) as address,
    ):
        yield address


Ask = Callable[..., Awaitable[Observation]]


@pytest.fixture
def ask(no_cluster: ReadOnlyKube) -> Ask:
    """Calls a tool at noon: `ask(url, tool, **arguments)`."""

    async def asked(url: str, tool: str, *, clock: Clock | None = None, **arguments: Any) -> Observation:
        box = EvidenceToolbox(kube=no_cluster, prometheus_url=url, clock=clock or StillClock())
        return await box.call(SCOPE, tool, json.dumps(arguments))

    return asked


@real
async def test_an_instant_query(ask: Ask, url: str) -> None:
    """One line a series, sorted by labels, with the moment that was asked for."""
    seen = await ask(url, "prometheus_query", query="memory_mib")

    assert seen.excerpt == (
        '2 series at 2026-01-31T12:00:00Z\nmemory_mib{service="checkout"} 700\nmemory_mib{service="search"} 50'
    )
    assert seen.query == "query=memory_mib minutes_ago=0"
    assert seen.truncated is False


@real
async def test_an_instant_query_in_the_past(ask: Ask, url: str) -> None:
    """Evaluated so many minutes before now."""
    seen = await ask(url, "prometheus_query", query='memory_mib{service="checkout"}', minutes_ago=30)
    assert seen.excerpt == '1 series at 2026-01-31T11:30:00Z\nmemory_mib{service="checkout"} 400'


@real
async def test_scalars_strings_and_nothing(ask: Ask, url: str) -> None:
    """Every kind of result that an instant query has."""
    assert (await ask(url, "prometheus_query", query="scalar(vector(3))")).excerpt == (
        "scalar at 2026-01-31T12:00:00Z: 3"
    )
    assert (await ask(url, "prometheus_query", query='"text"')).excerpt == "string at 2026-01-31T12:00:00Z: text"
    assert (await ask(url, "prometheus_query", query="no_such_metric")).excerpt == "no series at 2026-01-31T12:00:00Z"
    assert (await ask(url, "prometheus_query", query="memory_mib[2m]", minutes_ago=30)).excerpt == (
        "2 series at 2026-01-31T11:30:00Z\n"
        'memory_mib{service="checkout"} n=3 min=380@2026-01-31T11:28:00Z max=400@2026-01-31T11:30:00Z mean=390: '
        "2026-01-31T11:28:00Z=380 2026-01-31T11:29:00Z=390 2026-01-31T11:30:00Z=400\n"
        'memory_mib{service="search"} n=3 min=50@2026-01-31T11:28:00Z max=50@2026-01-31T11:28:00Z mean=50: '
        "2026-01-31T11:28:00Z=50 2026-01-31T11:29:00Z=50 2026-01-31T11:30:00Z=50"
    )


@real
async def test_a_range_is_summarised(ask: Ask, url: str) -> None:
    """Count, extremes with their times, mean, and eight points with the first and the last."""
    seen = await ask(url, "prometheus_query_range", query='memory_mib{service="checkout"}', step_seconds=60)

    assert seen.excerpt == (
        "1 series 2026-01-31T11:00:00Z to 2026-01-31T12:00:00Z step 60s\n"
        'memory_mib{service="checkout"} n=61 min=100@2026-01-31T11:00:00Z max=700@2026-01-31T12:00:00Z mean=400: '
        "2026-01-31T11:00:00Z=100 2026-01-31T11:09:00Z=190 2026-01-31T11:17:00Z=270 2026-01-31T11:26:00Z=360 "
        "2026-01-31T11:34:00Z=440 2026-01-31T11:43:00Z=530 2026-01-31T11:51:00Z=610 2026-01-31T12:00:00Z=700"
    )


@real
@pytest.mark.parametrize(
    ("minutes", "step", "used"),
    [
        (60, None, 31),  # 3600 s in 119 steps
        (60, 1, 31),
        (60, 30, 31),
        (60, 31, 31),
        (60, 32, 32),
        (1, None, 15),
        (1, 14, 15),
        (10080, None, 5083),
    ],
)
async def test_a_range_has_a_bounded_number_of_points(
    ask: Ask, url: str, minutes: int, step: int | None, used: int
) -> None:
    """The step is what was asked for, unless that is finer than a scrape or gives more than 120 points."""
    arguments = {"query": "vector(1)", "minutes": minutes, **({"step_seconds": step} if step else {})}
    seen = await ask(url, "prometheus_query_range", **arguments)

    first, series = seen.excerpt.splitlines()
    assert first.endswith(f" step {used}s")
    assert 0 < int(series.split("n=")[1].split()[0]) <= 120


@real
async def test_the_exporter_is_seen_live(ask: Ask, url: str) -> None:
    """What is scraped now comes through, with a secret in a label redacted."""
    query, clock = '{__name__=~"queue_depth|build_info",job="shop"}', SystemClock()
    async with asyncio.timeout(60):
        # It is another process that scrapes: nothing here could be waited for.
        while "queue_depth" not in (seen := await ask(url, "prometheus_query", query=query, clock=clock)).excerpt:  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    lines = seen.excerpt.splitlines()
    assert any(line.startswith("queue_depth{") and 'queue="orders"' in line and line.endswith(" 42") for line in lines)
    assert 'token="[REDACTED:github-token]"' in seen.excerpt


@real
async def test_a_mistaken_expression_is_an_error_to_read(ask: Ask, url: str) -> None:
    """In Prometheus' own words, so that the model can mend it."""
    seen = await ask(url, "prometheus_query", query="sum(")
    assert seen.excerpt.startswith("error: Prometheus says bad_data: ")
    assert "parse error" in seen.excerpt


@real
async def test_not_numbers_do_not_hide_the_others(ask: Ask, url: str) -> None:
    """NaN and infinities are part of PromQL."""
    seen = await ask(url, "prometheus_query", query="vector(0) / 0 or vector(1) / 0")
    assert seen.excerpt == "1 series at 2026-01-31T12:00:00Z\n{} NaN"
    seen = await ask(url, "prometheus_query_range", query="vector(0) / 0", minutes=1)
    assert seen.excerpt.splitlines()[1] == "{} n=5, no numbers"


@asynccontextmanager
async def _serving(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_asks_only_below_the_base_url_and_only_by_get(ask: Ask) -> None:
    """Whatever the query holds, method, path and host are ours."""
    asked: list[web.Request] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request)
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": []}})

    async with _serving(answer) as url:
        await ask(f"{url}/prefix/", "prometheus_query", query="up&time=1#x/../../admin")

    [request] = asked
    assert (request.method, request.path) == ("GET", "/prefix/api/v1/query")
    assert dict(request.query) == {"query": "up&time=1#x/../../admin", "time": "1769860800.000", "timeout": "20s"}


async def test_redirects_are_not_followed(ask: Ask) -> None:
    """A redirect could lead to a place that the settings do not name."""
    paths: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        paths.append(request.path)
        raise web.HTTPFound("/elsewhere")

    async with _serving(answer) as url:
        seen = await ask(url, "prometheus_query", query="up")

    assert seen.excerpt == "error: Prometheus answers with a redirect, which is not followed"
    assert paths == ["/api/v1/query"]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, "<html>login</html>", "what answers there does not speak Prometheus' HTTP API"),
        (200, '{"status": "success", "data": {"resultType": "vector", "result": [{"value": "x"}]}}', "does not speak"),
        (200, "[]", "does not speak"),
        (200, "", "does not speak"),
        (502, "<html>bad gateway</html>", "Prometheus answers 502"),
        (503, '{"status":"error","errorType":"timeout","error":"query timed out"}', "timeout: query timed out"),
        (422, '{"status":"error","errorType":"execution","error":"too many samples"}', "execution: too many samples"),
    ],
)
async def test_what_is_no_answer_is_an_error_to_read(ask: Ask, status: int, body: str, said: str) -> None:
    """An outage, a login page, an unknown form: an observation, never an exception."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body)

    async with _serving(answer) as url:
        seen = await ask(url, "prometheus_query", query="up")

    assert seen.excerpt.startswith("error: ")
    assert said in seen.excerpt


@pytest.mark.parametrize(("size", "accepted"), [(-1, True), (0, True), (1, False)])
async def test_an_answer_is_read_up_to_its_bound(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, size: int, accepted: bool
) -> None:
    """At the bound it is read; a byte beyond, reading stops."""
    monkeypatch.setattr(prometheus, "ANSWER_BYTES", 200_000)
    whole = '{"status":"success","data":{"resultType":"vector","result":[]}}'

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=whole + " " * (200_000 + size - len(whole)))

    async with _serving(answer) as url:
        seen = await ask(url, "prometheus_query", query="up")

    assert seen.excerpt == (
        "no series at 2026-01-31T12:00:00Z"
        if accepted
        else "error: the answer is larger than 200000 bytes: aggregate more"
    )


async def test_an_endless_answer_is_cut_off(ask: Ask) -> None:
    """A body that never ends is read no further than its bound."""
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b" " * 65536)
                sent += 65536
        except (ConnectionError, asyncio.CancelledError):
            return response

    async with _serving(answer) as url:
        seen = await ask(url, "prometheus_query", query="up")

    assert seen.excerpt.startswith("error: the answer is larger than 4194304 bytes")
    assert sent < 64 * 1024 * 1024


@pytest.mark.parametrize(("count", "shown"), [(39, 39), (40, 40), (41, 40)])
async def test_series_are_limited_and_it_says_so(ask: Ask, count: int, shown: int) -> None:
    """Below, at and above the bound."""
    series = [{"metric": {"n": f"{number:03}"}, "value": [1769860800, "1"]} for number in range(count)]

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": series}})

    async with _serving(answer) as url:
        seen = await ask(url, "prometheus_query", query="up")

    assert seen.excerpt.count("{n=") == shown
    assert seen.truncated is (count > shown)
    assert ("(1 series not shown)" in seen.excerpt) is (count > shown)


async def test_warnings_and_histograms_are_shown(ask: Ask) -> None:
    """What newer versions send besides: native histograms, warnings, infos."""
    histogram = [1769860800, {"count": "10", "sum": "2.5", "buckets": [[0, "0", "1", "10"]]}]

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(
            {
                "status": "success",
                "warnings": ["partial\nresponse"],
                "infos": ["not a counter"],
                "data": {
                    "resultType": "vector",
                    "result": [{"metric": {"__name__": "h"}, "histogram": histogram}],
                },
            }
        )

    async with _serving(answer) as url:
        seen = await ask(url, "prometheus_query", query="h")

    assert seen.excerpt.splitlines()[1:] == ["h{} histogram(count=10, sum=2.5)", "partial response", "not a counter"]


async def test_nobody_there_is_an_error_without_the_url(ask: Ask) -> None:
    """The base URL may hold a password."""
    seen = await ask("http://bob:hunter2@127.0.0.1:1", "prometheus_query", query="up")
    assert seen.excerpt == "error: Prometheus cannot be asked: ClientConnectorError"


async def test_one_that_never_answers_is_given_up(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the tool's time limit."""
    monkeypatch.setattr(toolbox, "PROMETHEUS_SECONDS", 0.05)
    released = asyncio.Event()

    async def answer(_: web.Request) -> web.StreamResponse:
        await released.wait()
        return web.Response()

    async with _serving(answer) as url:
        seen = await ask(url, "prometheus_query", query="up")
        released.set()

    assert seen.excerpt.startswith("error: ")
