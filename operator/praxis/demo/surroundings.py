"""What a cluster would show of the demo's trouble: a Deployment in front of the function, and the Events about it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from praxis.clock import rfc3339


def surroundings(service: str, namespace: str, *, note: str, reason: str, now: datetime) -> list[dict[str, Any]]:
    """Objects for the evidence tools to read."""
    labels = {"app": service}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"{service}-edge", "namespace": namespace, "labels": labels},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "edge", "image": "shop/edge:1.4.2"}]},
                },
            },
        },
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{service}-edge.{reason.lower()}", "namespace": namespace},
            "eventTime": rfc3339(now),
            "reportingController": "shop.demo/probe",
            "reportingInstance": "probe-0",
            "action": "Probe",
            "reason": reason,
            "type": "Warning",
            "note": note,
            "regarding": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": f"{service}-edge",
                "namespace": namespace,
            },
        },
    ]
