"""Whatever is posted to the real gateway: an incident that the API server takes, or a 4xx that says why."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from praxis.demo.stack import WEBHOOK_TOKEN, Stack
from tests.hostile.strategies import VALUES, damaged
from tests.intake.notifications import alert, payload

pytestmark = [pytest.mark.e2e, pytest.mark.controlplane]

TAKEN, REFUSED = {200, 202}, {400, 413, 415, 422}
SENT = payload(alert(), alert(status="resolved"))
HEADERS = {"Content-Type": "application/json", "Authorization": f"Bearer {WEBHOOK_TOKEN}"}


def post(stack: Stack, body: bytes, path: str = "/v1/alertmanager", **headers: str) -> tuple[int, dict[str, Any]]:
    """Post bytes; the status and the answer, which is always a JSON object."""
    request = urllib.request.Request(f"{stack.gateway_url}{path}", data=body, headers=HEADERS | headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def clean(status: int, answer: dict[str, Any]) -> None:
    """Taken, or refused with a reason and a sentence."""
    assert status in TAKEN | REFUSED, answer
    if status in REFUSED:
        assert answer["reason"], answer
        assert 0 < len(answer["error"]) < 1000, answer


@given(damaged(SENT, most=4))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_notification(stack: Stack, document: dict[str, Any]) -> None:
    """Damaged anywhere, in up to four places."""
    clean(*post(stack, json.dumps(document).encode()))


@given(st.binary(max_size=300) | VALUES.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_body(stack: Stack, body: bytes) -> None:
    """Not even JSON."""
    clean(*post(stack, body))


def test_a_body_that_is_deep(stack: Stack) -> None:
    """Nested past what a parser's stack takes."""
    for deep in ("[" * 100_000, '{"a":' * 50_000, "[" * 100_000 + "]" * 100_000):
        clean(*post(stack, deep.encode()))


def test_the_gateway_is_still_there(stack: Stack) -> None:
    """After all that it takes what is in order, and its log holds no traceback."""
    status, _ = post(stack, json.dumps(payload(alert(labels={"alertname": "After", "service": "none"}))).encode())
    assert status in TAKEN
    gateway = next(each for each in stack.started if each.name == "gateway")
    assert gateway.alive
    assert "Traceback" not in gateway.log.read_text(errors="replace")
