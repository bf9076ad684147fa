"""What a notification does to the alerts of an Incident. Pure: no client, no clock.

Alertmanager delivers at least once, in any order where its peers are apart, so merging is idempotent and one alert is
compared with itself by `startsAt`:

- a later start replaces what was known: it began anew;
- with the same start the latest word counts: resolved ends it, firing begins it again. The second is no theory: after a
  time-out between Prometheus and Alertmanager an alert is resolved and then fires again with its old start;
- an older start changes nothing, with one exception: a resolve that *ends* after the known start ends that too. Two
  Prometheus servers see an alert begin at different times, and Alertmanager moves the start of the merged alert back
  (`types.Alert.Merge`), so its resolve is told with an older start than its firing was.

Text stays as it was first told: annotations often carry the measured value, and would change with every repetition.
A list holds `bounds.ALERTS`; a firing alert takes the place of one that has resolved, and where nothing is left to make
room, it is counted as truncated. That count never falls: what nobody listed, nobody has seen clear.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from praxis.api import bounds
from praxis.api.incident import Alert, IncidentSpec, Source
from praxis.clock import parse_rfc3339
from praxis.intake.payload import Notification


def opening(notification: Notification, *, episode: int, previous: str | None) -> IncidentSpec:
    """The spec of a new Incident: what fires; where only truncated alerts may fire, what was listed."""
    firing = [alert for alert in notification.alerts if alert.firing]
    alerts = firing or list(notification.alerts)
    return IncidentSpec(
        source=Source(
            receiver=notification.group.receiver,
            group_key=notification.group_key,
            external_url=notification.external_url,
            authentication=notification.authentication,
            episode=episode,
            previous=previous,
        ),
        summary=notification.summary,
        severity=notification.severity,
        alerts=alerts[: bounds.ALERTS],
        truncated_alerts=notification.truncated + max(0, len(firing) - bounds.ALERTS),
    )


def merge(spec: IncidentSpec, notification: Notification) -> IncidentSpec:
    """The spec with the notification merged into it; equal to the spec when there was nothing new."""
    told = {alert.fingerprint: alert for alert in notification.alerts}
    known = {alert.fingerprint for alert in spec.alerts}
    alerts = [updated(alert, told.get(alert.fingerprint)) for alert in spec.alerts]
    joining = [alert for alert in notification.alerts if alert.firing and alert.fingerprint not in known]
    joined = _with_room(alerts, len(joining))
    joined += joining[: bounds.ALERTS - len(joined)]
    left_out = len({each.fingerprint for each in joining} - {each.fingerprint for each in joined})
    truncated = max(spec.truncated_alerts, notification.truncated + left_out)
    return spec.replace(alerts=joined, truncated_alerts=truncated)


def updated(known: Alert, told: Alert | None) -> Alert:
    """A known alert after what is told of it."""
    if told is None or stale(told, known):
        return known
    if _start(told) > _start(known):
        return told
    if told.status == known.status:
        return known
    return known.replace(status=told.status, ends_at=told.ends_at)


def stale(told: Alert, known: Alert) -> bool:
    """Whether a report is older than what is known."""
    if _start(told) >= _start(known):
        return False
    ended = None if told.firing or told.ends_at is None else parse_rfc3339(told.ends_at)
    return ended is None or ended <= _start(known)


def _with_room(alerts: Sequence[Alert], wanted: int) -> list[Alert]:
    """The alerts without so many resolved ones, those that ended first, as must make room."""
    surplus = len(alerts) + wanted - bounds.ALERTS
    resolved = sorted((alert for alert in alerts if not alert.firing), key=_end)
    leaving = {alert.fingerprint for alert in resolved[: max(0, surplus)]}
    return [alert for alert in alerts if alert.fingerprint not in leaving]


def _start(alert: Alert) -> datetime:
    return parse_rfc3339(alert.starts_at)


def _end(alert: Alert) -> datetime:
    return parse_rfc3339(alert.ends_at or alert.starts_at)
