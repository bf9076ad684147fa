"""What each request is answered, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from praxis.clock import SystemClock
from praxis.errors import NeedsPerson
from praxis.intake.gateway import authenticated, gateway
from praxis.intake.readiness import CACHE_SECONDS
from praxis.settings import GatewaySettings
from tests.intake.conftest import JSON, Answer, Site
from tests.intake.notifications import alert, payload
from tests.intake.test_authentication import SECRET, TOKEN, signed_headers
from tests.proxy import answer, drop_before, first

pytestmark = pytest.mark.controlplane

LIMIT = 256 * 1024
HALF_A_PAIR = json.dumps(payload(alert(labels={"a": "\ud800"}))).encode()


def padded(size: int) -> bytes:
    """A notification of exactly so many bytes."""
    document = payload()
    document["padding"] = "x" * (size - len(json.dumps({**document, "padding": ""})))
    return json.dumps(document).encode()


async def refused(site: Site, body: bytes | dict[str, object], expected: int, **headers: str) -> str:
    """The sentence with which a notification is refused; nothing is written."""
    status, told = await site.post(body, **headers)
    assert status == expected, told
    assert await site.incidents() == []
    return str(told["error"])


# ---- who may send ----


async def test_wrong_token(site: Site) -> None:
    """Another token, or none, is answered 401 with the scheme to use, before the body is looked at."""
    url = f"{site.urls[0]}/v1/alertmanager"
    for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": f"Basic {TOKEN}"}):
        async with site.session.post(url, data=b"\xff", headers=headers) as reply:
            assert reply.status == 401
            assert reply.headers["WWW-Authenticate"] == 'Bearer realm="praxis"'
            assert (await reply.json())[
                "error"
            ] == "/v1/alertmanager takes notifications with valid bearer authentication only"
    assert await site.outcomes() == {"refused Unauthenticated": 3}


async def test_rotated_token(site: Site) -> None:
    """A token that is replaced in its file counts from the next notification on."""
    (site.directory / "token").write_text("another-token-0123")
    assert (await site.post(payload()))[0] == 401
    assert (await site.post(payload(), token="another-token-0123"))[0] == 202


async def test_lost_token_file(site: Site) -> None:
    """Without the file nobody can be authenticated: that is no fault of the sender, who is told to come again."""
    (site.directory / "token").unlink()
    status, told = await site.post(payload())
    assert (status, told["reason"]) == (503, "Unavailable")
    assert str(site.directory) not in str(told)
    async with site.session.get(f"{site.urls[0]}/readyz") as reply:
        assert reply.status == 503
        assert "cannot be read" in await reply.text()


async def test_signed(site: Site) -> None:
    """A signed notification is taken; the same signature over another body is not."""
    assert (await site.sign_and_post(payload()))[0] == 202
    stolen = signed_headers(body=json.dumps(payload()).encode(), sent_as="msg_2")
    status, _ = await site.sign_and_post(payload(alert("f2")), sent_as="msg_2", **stolen)
    assert status == 401
    (incident,) = await site.incidents()
    assert incident.spec.source.authentication == "hmac"
    assert len(incident.spec.alerts) == 1


async def test_unsigned(site: Site) -> None:
    """Without a signature, and with the token of the other address, a notification is answered 401."""
    url = f"{site.urls[0]}/v1/alerts"
    async with site.session.post(url, json=payload(), headers={"Authorization": f"Bearer {TOKEN}"}) as reply:
        assert reply.status == 401
        assert reply.headers["WWW-Authenticate"] == 'StandardWebhooks realm="praxis"'
    assert await site.incidents() == []


async def test_replayed(site: Site) -> None:
    """A signed notification that was taken is not taken again, also when the alert has changed meanwhile."""
    _, first = await site.sign_and_post(payload(), sent_as="msg_1")
    await site.sign_and_post(payload(alert("f1", "resolved")), sent_as="msg_2")
    status, told = await site.sign_and_post(payload(), sent_as="msg_1")
    assert (status, told["outcome"], told["incident"]) == (200, "suppressed", first["incident"])
    (incident,) = await site.incidents()
    assert [each.status for each in incident.spec.alerts] == ["resolved"]
    assert await site.outcomes() == {
        "created FirstEpisode": 1,
        "merged Changed": 1,
        "suppressed AlreadyReceived": 1,
    }


async def test_refused_is_not_remembered(site: Site) -> None:
    """A sender that was told to come again does so under the same id, and is heard."""
    site.proxy.spoil(answer(503), method="GET", path="incidents")
    assert (await site.sign_and_post(payload()))[0] == 503
    assert (await site.sign_and_post(payload()))[0] == 202


async def test_old_signature(site: Site) -> None:
    """A signature from outside the replay window is answered 401."""
    body = json.dumps(payload()).encode()
    status, _ = await site.sign_and_post(payload(), **signed_headers(at=1_700_000_000, body=body))
    assert status == 401


async def test_two_different_ids_in_one_request(site: Site) -> None:
    """A header that is sent twice does not let a signature count under another id."""
    body = json.dumps(payload()).encode()
    headers = [*JSON.items(), ("webhook-id", "msg_other"), *signed_headers(body=body).items()]
    async with site.session.post(f"{site.urls[0]}/v1/alerts", data=body, headers=headers) as reply:
        assert reply.status == 401


def test_nobody_could_send() -> None:
    """Without any authentication the gateway does not start, and says what to set."""
    with pytest.raises(NeedsPerson) as caught:
        authenticated(GatewaySettings(), clock=SystemClock())
    for word in ("PRAXIS_GATEWAY_BEARER_TOKEN_FILE", "PRAXIS_GATEWAY_WEBHOOK_SECRET_FILE", "--bearer-token-file"):
        assert word in str(caught.value)


@pytest.mark.parametrize(("configured", "absent"), [("bearer", "alerts"), ("webhook", "alertmanager")])
async def test_one_way_only(idle: Site, configured: str, absent: str) -> None:
    """An address whose authentication is not configured is not there."""
    other = {"bearer": "webhook_secret_file", "webhook": "bearer_token_file"}[configured]
    url = await idle.start(**{other: None})
    async with idle.session.post(f"{url}/v1/{absent}", json=payload()) as reply:
        assert reply.status == 404
        assert (await reply.json())["error"].startswith("nothing is here; notifications go to POST /v1/alert")


# ---- what is sent ----


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "the body is not JSON: Expecting value at line 1, column 1"),
        (b"\xff\xfe", "the body is not UTF-8: byte 0 cannot be decoded"),
        (b"[" * 200_000, "the body is nested too deeply"),
        (b'{"version": NaN}', "NaN is no JSON number"),
        (b'{"a": 1, "a": 2}', "the name a occurs twice in one object"),
        (HALF_A_PAIR, "alerts[0].labels.a: half of a surrogate pair is no character"),
        (json.dumps(payload(alerts=7)).encode(), "alerts: Input should be a valid list"),
    ],
)  # fmt: skip
async def test_hostile_bodies(site: Site, body: bytes, sentence: str) -> None:
    """What is no notification is answered 422 with what is wrong and where, and nothing is written."""
    assert await refused(site, body, 422) == sentence
    assert await site.outcomes() == {"refused Invalid": 1}


async def test_huge_labels(site: Site) -> None:
    """Labels that fill the whole body are cut, not refused: the alert is not lost."""
    huge = {f"l{number:03}": "<" * 2500 for number in range(100)}
    name = await site.fired(alert(labels={"alertname": "Huge", "n" * 5000: "v", **huge}))
    labels = (await site.incident(name)).spec.alerts[0].labels
    assert labels["alertname"] == "Huge"
    assert 1 < len(labels) <= 32


@pytest.mark.parametrize(("size", "status"), [(LIMIT - 1, 202), (LIMIT, 202), (LIMIT + 1, 413)])
@pytest.mark.parametrize("chunked", [False, True])
async def test_body_limit(site: Site, size: int, status: int, chunked: bool) -> None:
    """256 KiB are taken, a byte more is answered 413, with a length or without one."""

    async def chunks(body: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(body), 50_000):
            yield body[start : start + 50_000]

    body = padded(size)
    assert len(body) == size
    headers = JSON | {"Authorization": f"Bearer {TOKEN}"}
    url = f"{site.urls[0]}/v1/alertmanager"
    async with site.session.post(url, data=chunks(body) if chunked else body, headers=headers) as reply:
        assert reply.status == status
        if status == 413:
            assert "the limit is 262144 bytes" in (await reply.json())["error"]


async def test_length_is_refused_before_the_body_comes(site: Site) -> None:
    """A length above the limit is answered 413 although nothing of the body was sent."""
    head = f"Content-Length: {LIMIT + 1}\r\nContent-Type: application/json\r\nAuthorization: Bearer {TOKEN}"
    assert "HTTP/1.1 413 " in await raw(site, head)


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"Content-Type": "text/plain"}, "send application/json in the Content-Type header"),
        ({"Content-Type": "application/json; charset=utf-16"}, "send JSON in UTF-8: another charset is not understood"),
        ({"Content-Encoding": "gzip"}, "send the body as it is: a Content-Encoding is not understood"),
    ],
)
async def test_media_types(site: Site, headers: dict[str, str], sentence: str) -> None:
    """What is not plain JSON in UTF-8 is answered 415; a compressed body is never unpacked."""
    assert await refused(site, gzip.compress(json.dumps(payload()).encode()), 415, **headers) == sentence


async def test_charset_that_is_named(site: Site) -> None:
    """A charset may be named, as long as it is UTF-8."""
    assert (await site.post(payload(), **{"Content-Type": "application/json; charset=UTF-8"}))[0] == 202


async def test_other_methods_and_paths(site: Site) -> None:
    """Another method is answered 405 with the right one, another path 404, both in JSON with where to go."""
    async with site.session.get(f"{site.urls[0]}/v1/alertmanager") as reply:
        assert (reply.status, reply.headers["Allow"]) == (405, "POST")
        assert "POST /v1/alertmanager, POST /v1/alerts" in (await reply.json())["error"]
    async with site.session.post(f"{site.urls[0]}/v2/alerts", json={}) as reply:
        assert reply.status == 404
        assert "POST /v1/alertmanager" in (await reply.json())["error"]
    assert await site.outcomes() == {}


async def raw(site: Site, head: str, body: bytes = b"", *, close: bool = False) -> str:
    """What the gateway answers to bytes on a connection, of which more may never come."""
    address = urlsplit(site.urls[0])
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(f"POST /v1/alertmanager HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode() + body)
    await writer.drain()
    if close:
        writer.close()
        return ""
    try:
        return (await reader.readuntil(b"}")).decode()
    finally:
        writer.close()


AUTHORISED = f"Content-Type: application/json\r\nAuthorization: Bearer {TOKEN}"


async def test_slow_body(idle: Site) -> None:
    """A body that does not come to its end is answered 503 when its time is up, and the connection is closed."""
    await idle.start(read_timeout=0.2)
    told = await raw(idle, f"Content-Length: 100\r\n{AUTHORISED}", b'{"groupKey')
    assert "HTTP/1.1 503 " in told
    assert "Retry-After: 5" in told
    assert "Connection: close" in told
    assert "the body did not arrive in 0.2 seconds" in told
    assert await idle.outcomes() == {"refused Slow": 1}


async def test_body_that_breaks_off(site: Site) -> None:
    """A connection that ends within the body is accounted as one that was refused."""
    await raw(site, f"Content-Length: 100\r\n{AUTHORISED}", b'{"groupKey', close=True)
    async with asyncio.timeout(30):
        while await site.outcomes() != {"refused Incomplete": 1}:  # noqa: ASYNC110  # seen from outside, as metrics are
            await asyncio.sleep(0.01)


# ---- what the gateway cannot do ----


async def test_api_server_away(site: Site) -> None:
    """While the API server cannot be reached senders are told to come again; when they do nothing is lost."""
    # More than one: the client's library asks again by itself when a read is cut off.
    site.proxy.spoil(drop_before(), method="GET", path="incidents", times=5)
    url, headers = f"{site.urls[0]}/v1/alertmanager", {"Authorization": f"Bearer {TOKEN}"}
    async with site.session.post(url, json=payload(), headers=headers) as reply:
        assert (reply.status, reply.headers["Retry-After"]) == (503, "5")
        assert await reply.json() == {
            "error": "the Incident could not be written; send this again",
            "reason": "Unavailable",
        }
    site.proxy.rules.clear()
    assert (await site.post(payload()))[0] == 202
    assert await site.outcomes() == {"refused Unavailable": 1, "created FirstEpisode": 1}


@pytest.mark.parametrize("status", [403, 404, 409, 413, 422, 429, 500, 504])
async def test_api_server_refuses(site: Site, status: int) -> None:
    """Whatever the API server answers, the sender is never told 2xx or 4xx for what was not stored."""
    site.proxy.spoil(answer(status), method="POST", path="incidents", times=10)
    assert (await site.post(payload()))[0] == 503
    assert await site.incidents() == []


async def test_overload(idle: Site) -> None:
    """Above its limit the gateway answers 503, not 429; what it is working on is finished."""
    await idle.start(concurrency=2)
    arrived, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def hold() -> None:
        arrived.release()
        await go_on.wait()

    idle.proxy.spoil(first(hold), method="GET", path="incidents", times=2)
    working = [asyncio.create_task(idle.post(payload(key=f"{each}"))) for each in range(2)]
    for _ in working:
        await arrived.acquire()
    samples = await idle.metrics()
    assert samples["praxis_gateway_requests_in_flight", "bearer"] == 2
    status, told = await idle.post(payload(key="third"))
    assert (status, told["reason"]) == (503, "Overloaded")
    assert (await idle.sign_and_post(payload()))[0] == 202, "the other address has a limit of its own"
    go_on.set()
    assert [status for status, _ in await asyncio.gather(*working)] == [202, 202]
    assert (await idle.post(payload(key="third")))[0] == 202


async def test_fault_in_here(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """An error that nobody foresaw is answered 503 without its text, which is in the log."""
    name = await site.fired()
    broken = json.dumps({"metadata": {"name": name}, "spec": {"source": {}}})
    site.proxy.spoil(answer(200, broken), method="GET", path=name)
    status, told = await site.post(payload())
    assert (status, told["reason"]) == (503, "InternalError")
    assert "the log of the gateway" in told["error"]
    assert "validation error" in caplog.text


async def test_nothing_secret_in_the_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Neither token nor signature nor body is logged."""
    caplog.set_level("DEBUG", logger="praxis")
    await site.post(payload(alert(labels={"marker": "in-the-body"})))
    await site.post(payload(), token="wrong-token-012345")
    await site.sign_and_post(payload())
    said = " ".join(str(vars(record)) for record in caplog.records if record.name.startswith("praxis"))
    assert "FirstEpisode" in said
    for secret in (TOKEN, "wrong-token-012345", SECRET, "v1,", "in-the-body"):
        assert secret not in said


# ---- what it tells ----


async def test_healthy_and_ready(site: Site) -> None:
    """Ready is who can reach the API server as itself; the answer holds for some seconds, healthy is who answers."""
    for _ in range(3):
        async with site.session.get(f"{site.urls[0]}/readyz") as reply:
            assert (reply.status, await reply.text()) == (200, "ok\n")
    assert site.proxy.count("GET", "incidents?limit=1") == 1
    async with site.session.get(f"{site.urls[0]}/healthz") as reply:
        assert (reply.status, await reply.text()) == (200, "ok\n")
    assert 0 < CACHE_SECONDS <= 10


async def test_not_ready(idle: Site) -> None:
    """Who may not read Incidents is not ready, and says why; healthy all the same."""
    said = json.dumps({"message": "incidents is forbidden"})
    idle.proxy.spoil(answer(403, said), method="GET", path="incidents", times=100)
    url = await idle.start()
    async with idle.session.get(f"{url}/readyz") as reply:
        assert (reply.status, await reply.text()) == (503, "incidents is forbidden\n")
    async with idle.session.get(f"{url}/healthz") as reply:
        assert reply.status == 200


async def test_metrics_from_the_start(site: Site) -> None:
    """Every series is there before anything happens, at 0, so that a first event is seen as a rise."""
    samples = await site.metrics()
    assert samples["praxis_notifications_received_total", "bearer"] == 0
    assert samples["praxis_notifications_received_total", "hmac"] == 0
    assert samples["praxis_notifications_handled_total", "bearer", "created", "FirstEpisode"] == 0
    assert samples["praxis_notifications_handled_total", "bearer", "refused", "Overloaded"] == 0
    assert samples["praxis_alerts_received_total", "bearer", "firing"] == 0
    assert samples["praxis_incident_write_conflicts_total",] == 0


async def test_metrics_add_up(site: Site) -> None:
    """Alerts, durations and outcomes of everything that came."""
    await site.post(payload(alert("f1"), alert("f2", "resolved"), truncatedAlerts=3))
    await site.post(b"{")
    await site.post(payload(), token="wrong-token-012345")
    assert await site.outcomes() == {
        "created FirstEpisode": 1,
        "refused Invalid": 1,
        "refused Unauthenticated": 1,
    }
    samples = await site.metrics()
    assert samples["praxis_alerts_received_total", "bearer", "firing"] == 1
    assert samples["praxis_alerts_received_total", "bearer", "resolved"] == 1
    assert samples["praxis_alerts_truncated_total", "bearer"] == 3
    assert samples["praxis_gateway_request_duration_seconds_count", "bearer"] == 3
    assert samples["praxis_gateway_requests_in_flight", "bearer"] == 0


async def test_stopping_finishes_what_is_in_flight(idle: Site) -> None:
    """A stop takes no more connections, and answers what it has taken."""
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        arrived.set()
        await go_on.wait()

    idle.proxy.spoil(first(hold), method="GET", path="incidents")
    running = gateway(GatewaySettings(**idle.settings))
    url = f"http://127.0.0.1:{await running.__aenter__()}"
    posting: asyncio.Task[Answer] = asyncio.create_task(idle.post(payload(), url=url))
    await arrived.wait()
    stopping = asyncio.create_task(running.__aexit__(None, None, None))
    while await _listens(url):  # noqa: ASYNC110  # whether a port is open can only be tried
        await asyncio.sleep(0.01)
    assert not posting.done()
    go_on.set()
    assert (await posting)[0] == 202
    await stopping
    assert len(await idle.incidents()) == 1


async def _listens(url: str) -> bool:
    address = urlsplit(url)
    try:
        _, writer = await asyncio.open_connection(address.hostname, address.port)
    except OSError:
        return False
    writer.close()
    return True
