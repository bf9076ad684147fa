"""The gateway's metrics: everything that was received ends in exactly one outcome, so that the two counters add up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from praxis.api.incident import Authentication
from praxis.intake.payload import Notification
from praxis.intake.receipt import OUTCOMES, Cause, Outcome

DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
STATUSES = ("firing", "resolved")
METHODS = (Authentication.BEARER, Authentication.HMAC)


class Metrics:
    """The counters of one gateway process, every series present from the start."""

    def __init__(self, *, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._received = Counter(
            "praxis_notifications_received_total",
            "Notifications that arrived, with whatever outcome.",
            ["authentication"],
            registry=registry,
        )
        self._outcomes = Counter(
            "praxis_notifications_handled_total",
            "Notifications by what became of them: created, merged, suppressed or refused, and why.",
            ["authentication", "outcome", "reason"],
            registry=registry,
        )
        self._alerts = Counter(
            "praxis_alerts_received_total",
            "Alerts in notifications that were authenticated and understood.",
            ["authentication", "status"],
            registry=registry,
        )
        self._truncated = Counter(
            "praxis_alerts_truncated_total",
            "Alerts that senders left out of such notifications.",
            ["authentication"],
            registry=registry,
        )
        self._durations = Histogram(
            "praxis_gateway_request_duration_seconds",
            "Seconds from the first byte of a notification to its answer.",
            ["authentication"],
            buckets=DURATION_BUCKETS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "praxis_gateway_requests_in_flight",
            "Notifications that are being handled.",
            ["authentication"],
            registry=registry,
        )
        self._conflicts = Counter(
            "praxis_incident_write_conflicts_total",
            "Writes of Incidents that were repeated, because another writer was first or an answer was lost.",
            registry=registry,
        )
        for method in METHODS:
            self._prepare(method)

    def _prepare(self, method: Authentication) -> None:
        for counter in (self._received, self._truncated, self._durations, self._in_flight):
            counter.labels(method)
        for status in STATUSES:
            self._alerts.labels(method, status)
        for cause in Cause:
            self._outcomes.labels(method, OUTCOMES.get(cause, Outcome.REFUSED), cause)

    @contextmanager
    def handling(self, method: Authentication) -> Iterator[None]:
        """Count a notification that arrived, and measure how long it takes."""
        self._received.labels(method).inc()
        with self._in_flight.labels(method).track_inprogress(), self._durations.labels(method).time():
            yield

    def ended(self, method: Authentication, cause: Cause) -> None:
        """Count what became of it."""
        self._outcomes.labels(method, OUTCOMES.get(cause, Outcome.REFUSED), cause).inc()

    def understood(self, notification: Notification) -> None:
        """Count its alerts."""
        for alert in notification.alerts:
            self._alerts.labels(notification.authentication, alert.status).inc()
        self._truncated.labels(notification.authentication).inc(notification.truncated)

    def repeated(self) -> None:
        """Count a write that must be done again."""
        self._conflicts.inc()
