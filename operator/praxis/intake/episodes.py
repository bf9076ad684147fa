"""Which Incident a notification belongs to: the group's newest episode, the next one, or none. Pure.

An episode that has not ended takes every alert of its group. After its end:

- Dismissed and ReconciliationRequired keep the alerts that they ended with, as long as those keep firing: a person has
  answered them, or is about to. Anything they did not end with opens the next episode: another alert, one that began
  again, one that had resolved;
- any other end answered nothing that fires now, so whatever fires opens the next episode; so does a reconciled one;
- an alert that resolves is still noted while any alert of the episode fires. When all have cleared, nothing changes.

The API server holds the same (`ended-episode`, `lapsed-episode` in `praxis.api.rules`).
"""

from __future__ import annotations

from dataclasses import dataclass

from praxis.api.incident import Alert, Incident, IncidentSpec, IncidentStatus
from praxis.api.reasons import ConditionType, Reason
from praxis.clock import parse_rfc3339
from praxis.intake.merging import merge, stale
from praxis.intake.payload import Notification
from praxis.machine import TERMINAL, Phase


@dataclass(frozen=True)
class Join:
    """The alerts go into this episode; the spec is equal to the stored one when nothing changes."""

    spec: IncidentSpec


@dataclass(frozen=True)
class Open:
    """The alerts open the next episode."""


@dataclass(frozen=True)
class Ignore:
    """Nothing fires that an Incident should be told of."""


Verdict = Join | Open | Ignore


def judge(current: Incident | None, notification: Notification, *, frozen: bool = False) -> Verdict:
    """What becomes of a notification, given the newest episode of its group.

    `frozen` says that the API server refused to change this episode, whatever it looks like from here.
    """
    if current is None:
        return Open() if notification.firing else Ignore()
    if current.status.phase not in TERMINAL:
        return Join(merge(current.spec, notification))
    if _unanswered(current, notification, frozen=frozen):
        return Open()
    return Join(merge(current.spec, notification)) if current.spec.firing and not frozen else Ignore()


def _unanswered(ended: Incident, notification: Notification, *, frozen: bool) -> bool:
    """Whether the notification tells of something that the ended episode does not stand for."""
    known = {alert.fingerprint: alert for alert in ended.spec.alerts}
    firing = [alert for alert in notification.alerts if alert.firing]
    current = [each for each in firing if each.fingerprint not in known or not stale(each, known[each.fingerprint])]
    if frozen or not ended.spec.firing or not _keeps_alerts(ended.status):
        return notification.truncated > 0 or bool(current)
    return any(_new_to(ended, known.get(each.fingerprint), each) for each in current)


def _keeps_alerts(status: IncidentStatus) -> bool:
    if status.phase is Phase.CLOSED:
        return status.reason == Reason.DISMISSED
    reconciled = status.condition(ConditionType.RECONCILED)
    return status.phase is Phase.RECONCILIATION_REQUIRED and (reconciled is None or reconciled.status != "True")


def _new_to(ended: Incident, known: Alert | None, told: Alert) -> bool:
    """Whether this firing alert is another than those with which the episode ended."""
    began = parse_rfc3339(told.starts_at)
    if known is not None:
        return not known.firing or began > parse_rfc3339(known.starts_at)
    # One of the truncated alerts cannot be told from a new one by its name, only by when it began.
    end = ended.status.phase_times.get(ended.status.phase)
    return ended.spec.truncated_alerts == 0 or end is None or began > parse_rfc3339(end)
