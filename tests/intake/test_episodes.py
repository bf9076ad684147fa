"""Which Incident a notification belongs to, for every state of the group's newest episode."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from praxis.api.base import Condition
from praxis.api.incident import Incident
from praxis.api.reasons import Reason
from praxis.clock import parse_rfc3339
from praxis.intake.episodes import Ignore, Join, Open, Verdict, judge
from praxis.intake.merging import opening
from praxis.machine import TERMINAL, Phase
from tests import builders
from tests.intake.notifications import BEGAN, EARLIER, LATER, alert, notification

AT = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)
"""When the episode came to its phase: after BEGAN, before LATER."""
OPEN = [phase for phase in Phase if phase not in TERMINAL]
LAPSED = [(Phase.FAILED, Reason.ATTEMPTS_EXHAUSTED), (Phase.CLOSED, "ApprovalExpired"), (Phase.CLOSED, "DryRunOnly")]
KEPT = [(Phase.CLOSED, "Dismissed"), (Phase.RECONCILIATION_REQUIRED, "OutcomeUnknown")]
CLEARED = [(Phase.RESOLVED, "AlertCleared"), (Phase.CLOSED, "SelfResolved"), *LAPSED, *KEPT]
FIRING = alert("f1")
RESOLVED = alert("f1", "resolved")


def episode(
    phase: Phase, reason: str | None = None, *alerts: dict[str, object], reconciled: bool = False, **changes: object
) -> Incident:
    """The newest episode: one firing alert f1 that began at BEGAN, unless others are given."""
    conditions = [Condition(type="Reconciled", status="True", reason="Reconciled", last_transition_time=BEGAN)]
    spec = opening(notification(*(alerts or [FIRING]), **changes), episode=1, previous=None)
    if not alerts or any(each["status"] == "firing" for each in alerts):
        fields = spec
    else:
        fields = spec.replace(alerts=list(notification(*alerts).alerts))
    incident = builders.incident(phase).replace(spec=fields)
    status = incident.status.replace(
        phase=phase,
        reason=reason or incident.status.reason,
        phase_times={phase: "2026-01-31T12:30:00Z"},
        conditions=conditions if reconciled else [],
    )
    return incident.replace(status=status)


def joined(verdict: Verdict) -> dict[str, str]:
    """The statuses of the alerts after joining."""
    assert isinstance(verdict, Join)
    return {each.fingerprint: each.status for each in verdict.spec.alerts}


def test_unknown_group() -> None:
    """What fires, or may, opens the first episode; a resolve alone opens none."""
    assert judge(None, notification(FIRING)) == Open()
    assert judge(None, notification(RESOLVED)) == Ignore()
    assert judge(None, notification(RESOLVED, truncatedAlerts=1)) == Open()


@pytest.mark.parametrize("phase", OPEN)
def test_open_episode_takes_everything(phase: Phase) -> None:
    """While an episode is open every alert of the group joins it, also one that began again."""
    current = episode(phase)
    assert joined(judge(current, notification(FIRING))) == {"f1": "firing"}
    assert joined(judge(current, notification(RESOLVED))) == {"f1": "resolved"}
    assert joined(judge(current, notification(alert("f2")))) == {"f1": "firing", "f2": "firing"}
    assert joined(judge(current, notification(alert("f1", began=LATER)))) == {"f1": "firing"}


@pytest.mark.parametrize("phase", OPEN)
def test_open_episode_that_has_cleared(phase: Phase) -> None:
    """An open episode takes an alert also when all of its own have cleared."""
    assert joined(judge(episode(phase, None, RESOLVED), notification(alert("f2")))) == {
        "f1": "resolved",
        "f2": "firing",
    }


@pytest.mark.parametrize(("phase", "reason"), CLEARED)
def test_ended_and_cleared(phase: Phase, reason: str) -> None:
    """When every alert had cleared, whatever fires opens the next episode; what does not changes nothing."""
    current = episode(phase, reason, RESOLVED)
    assert judge(current, notification(alert("f1", began=LATER))) == Open()
    assert judge(current, notification(FIRING)) == Open()
    assert judge(current, notification(alert("f2", began=EARLIER))) == Open()
    assert judge(current, notification(RESOLVED)) == Ignore()
    assert judge(current, notification(alert("f2", "resolved"))) == Ignore()
    assert judge(current, notification(alert("f1", began=EARLIER))) == Ignore()
    assert judge(current, notification(RESOLVED, truncatedAlerts=1)) == Open()


@pytest.mark.parametrize(("phase", "reason"), LAPSED)
def test_lapsed(phase: Phase, reason: str) -> None:
    """An end that answered nothing: the next repetition opens the next episode, a resolve is still noted."""
    current = episode(phase, reason)
    assert judge(current, notification(FIRING)) == Open()
    assert judge(current, notification(alert("f2"), RESOLVED)) == Open()
    assert judge(current, notification(RESOLVED, truncatedAlerts=1)) == Open()
    assert joined(judge(current, notification(RESOLVED))) == {"f1": "resolved"}
    assert joined(judge(current, notification(alert("f1", began=EARLIER)))) == {"f1": "firing"}


@pytest.mark.parametrize(("phase", "reason"), KEPT)
def test_kept(phase: Phase, reason: str) -> None:
    """A dismissed episode, and one that waits to be reconciled, keep the alerts that keep firing."""
    current = episode(phase, reason, FIRING, alert("f2"))
    assert joined(judge(current, notification(FIRING))) == {"f1": "firing", "f2": "firing"}
    assert joined(judge(current, notification(RESOLVED, alert("f2")))) == {"f1": "resolved", "f2": "firing"}
    assert joined(judge(current, notification(alert("f1", began=EARLIER)))) == {"f1": "firing", "f2": "firing"}


@pytest.mark.parametrize(("phase", "reason"), KEPT)
@pytest.mark.parametrize("news", [alert("f1", began=LATER), alert("f3"), alert("f3", began=LATER)])
def test_kept_episode_and_something_new(phase: Phase, reason: str, news: dict[str, object]) -> None:
    """An alert that began again, or another one, opens the next episode beside those that keep firing."""
    assert judge(episode(phase, reason, FIRING, alert("f2")), notification(FIRING, news)) == Open()


@pytest.mark.parametrize(("phase", "reason"), KEPT)
def test_kept_episode_and_an_alert_that_had_cleared(phase: Phase, reason: str) -> None:
    """An alert that had resolved while another fires on is something new when it fires."""
    stored = episode(phase, reason, FIRING, alert("f2"))
    merged = judge(stored, notification(alert("f2", "resolved")))
    assert isinstance(merged, Join)
    assert judge(stored.replace(spec=merged.spec), notification(FIRING, alert("f2"))) == Open()


@pytest.mark.parametrize(("phase", "reason"), KEPT)
def test_kept_episode_and_truncated_alerts(phase: Phase, reason: str) -> None:
    """An unknown alert may be one of the truncated when it began before the end; after it, it is new."""
    current = episode(phase, reason, FIRING, truncatedAlerts=3)
    assert parse_rfc3339(BEGAN) < AT < parse_rfc3339(LATER)
    assert joined(judge(current, notification(FIRING, alert("f9", began=EARLIER)))) == {"f1": "firing", "f9": "firing"}
    assert judge(current, notification(FIRING, alert("f9", began=LATER))) == Open()
    assert joined(judge(current, notification(RESOLVED, truncatedAlerts=3))) == {"f1": "resolved"}


def test_reconciled_end() -> None:
    """After a person has said what happened, the next repetition opens the next episode."""
    current = episode(Phase.RECONCILIATION_REQUIRED, reconciled=True)
    assert judge(current, notification(FIRING)) == Open()
    assert joined(judge(current, notification(RESOLVED))) == {"f1": "resolved"}


@pytest.mark.parametrize(("phase", "reason"), [*LAPSED, *KEPT])
def test_frozen_by_the_server(phase: Phase, reason: str) -> None:
    """An episode that the API server refuses to change takes nothing; what fires opens the next one."""
    current = episode(phase, reason)
    assert judge(current, notification(FIRING), frozen=True) == Open()
    assert judge(current, notification(RESOLVED), frozen=True) == Ignore()
