"""Alertmanager notifications of the demo shop, in the v4 format, as its webhook sends them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from praxis.clock import rfc3339


def memory_leak(service: str, *, began: datetime, ended: datetime | None = None) -> dict[str, Any]:
    """A function whose memory grows until it is killed."""
    return notification(
        {"alertname": "FunctionMemoryHigh", "service": service, "severity": "critical"},
        {
            "summary": f"Memory of function {service} is at 97% of its limit and growing",
            "description": "Resident memory rises by 30 MiB a minute since 02:10; requests fail with out of memory.",
        },
        began=began,
        ended=ended,
    )


def crash_loop(service: str, *, began: datetime, ended: datetime | None = None) -> dict[str, Any]:
    """A function whose handlers panic."""
    return notification(
        {"alertname": "FunctionHandlerPanics", "service": service, "severity": "high"},
        {
            "summary": f"Function {service} keeps crashing: a panic in every third request",
            "description": "panic: pool exhausted, connections are never returned",
        },
        began=began,
        ended=ended,
    )


def notification(
    labels: Mapping[str, str], annotations: Mapping[str, str], *, began: datetime, ended: datetime | None
) -> dict[str, Any]:
    """A group of one alert."""
    group = {name: labels[name] for name in ("alertname", "service")}
    key = ", ".join(f'{name}="{value}"' for name, value in group.items())
    status = "firing" if ended is None else "resolved"
    return {
        "version": "4",
        "groupKey": "{}:{" + key + "}",
        "truncatedAlerts": 0,
        "status": status,
        "receiver": "praxis",
        "groupLabels": group,
        "commonLabels": dict(labels),
        "commonAnnotations": dict(annotations),
        "externalURL": "http://alertmanager.demo:9093",
        "alerts": [
            {
                "status": status,
                "labels": dict(labels),
                "annotations": dict(annotations),
                "startsAt": rfc3339(began),
                "endsAt": rfc3339(ended) if ended else "0001-01-01T00:00:00Z",
                "generatorURL": f"http://prometheus.demo:9090/graph?g0.expr=memory%7Bservice%3D%22{labels['service']}%22%7D",
                "fingerprint": hashlib.sha256(key.encode()).hexdigest()[:16],
            }
        ],
    }
