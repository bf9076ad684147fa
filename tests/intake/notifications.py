"""Alertmanager notifications as documents, literal, so that a test changes only what it is about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from praxis.api.incident import Authentication
from praxis.intake.payload import Notification, parse

Document = dict[str, Any]

GROUP_KEY = '{}/{team="shop"}:{alertname="HighLatency", service="checkout"}'
BEGAN = "2026-01-31T12:00:00Z"
EARLIER = "2026-01-31T11:00:00Z"
LATER = "2026-01-31T13:00:00Z"
ENDED = "2026-01-31T14:00:00Z"
ZERO = "0001-01-01T00:00:00Z"


def alert(fingerprint: str = "f1", status: str = "firing", began: str = BEGAN, **changes: Any) -> Document:
    """An alert as Alertmanager 0.25 sends it; None as a change removes a field."""
    document: Document = {
        "status": status,
        "labels": {"alertname": "HighLatency", "service": "checkout", "severity": "high", "pod": fingerprint},
        "annotations": {"summary": f"{fingerprint} is slow"},
        "startsAt": began,
        "endsAt": ENDED if status == "resolved" else ZERO,
        "generatorURL": "http://prometheus:9090/graph?g0.expr=latency",
        "fingerprint": fingerprint,
    }
    return {name: value for name, value in (document | changes).items() if value is not None}


def payload(*alerts: Document, key: str = GROUP_KEY, **changes: Any) -> Document:
    """A notification of these alerts, of one that fires unless there are any; None as a change removes a field."""
    told = list(alerts) or [alert()]
    document: Document = {
        "version": "4",
        "groupKey": key,
        "truncatedAlerts": 0,
        "status": "firing" if any(each["status"] == "firing" for each in told) else "resolved",
        "receiver": "praxis",
        "groupLabels": {"alertname": "HighLatency", "service": "checkout"},
        "commonLabels": {"alertname": "HighLatency", "service": "checkout", "severity": "high"},
        "commonAnnotations": {"summary": "Checkout is slow."},
        "externalURL": "http://alertmanager:9093",
        "alerts": told,
    }
    return {name: value for name, value in (document | changes).items() if value is not None}


def notification(*alerts: Document, **changes: Any) -> Notification:
    """The same, as the gateway understands it."""
    return read(json.dumps(payload(*alerts, **changes)).encode())


def read(body: bytes) -> Notification:
    """A body as the gateway understands it, sent with a bearer token."""
    return parse(body, receiver="alertmanager", authentication=Authentication.BEARER)


def many(count: int, status: str = "firing", prefix: str = "f") -> Sequence[Document]:
    """So many alerts, each another one."""
    return [alert(f"{prefix}{number}", status) for number in range(count)]
