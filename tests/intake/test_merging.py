"""What a notification does to the alerts of an Incident, by example and for any sequence of notifications."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praxis.api import bounds
from praxis.api.incident import IncidentSpec
from praxis.clock import parse_rfc3339
from praxis.intake.merging import merge, opening
from praxis.intake.payload import Notification
from tests.intake.notifications import BEGAN, EARLIER, ENDED, LATER, alert, many, notification


def spec(*alerts: dict[str, object], **changes: object) -> IncidentSpec:
    """An Incident's spec as the first notification made it."""
    return opening(notification(*alerts, **changes), episode=1, previous=None)


def told(before: IncidentSpec) -> dict[str, tuple[str, str, str | None]]:
    """Status, start and end of each alert."""
    return {each.fingerprint: (each.status, each.starts_at, each.ends_at) for each in before.alerts}


def test_opening() -> None:
    """An Incident begins with what fires, and says where it came from."""
    made = opening(notification(alert("f1"), alert("f2", "resolved")), episode=2, previous="alertmanager-x-1")
    assert told(made) == {"f1": ("firing", BEGAN, None)}
    assert (made.summary, made.severity, made.truncated_alerts) == ("Checkout is slow.", "high", 0)
    assert made.source.dump() == {
        "receiver": "alertmanager",
        "groupKey": '{}/{team="shop"}:{alertname="HighLatency", service="checkout"}',
        "externalURL": "http://alertmanager:9093",
        "authentication": "bearer",
        "episode": 2,
        "previous": "alertmanager-x-1",
    }


def test_opening_of_truncated_alerts_only() -> None:
    """When only alerts that were left out may fire, the listed ones stand for the group."""
    made = opening(notification(alert("f1", "resolved"), truncatedAlerts=2), episode=1, previous=None)
    assert told(made) == {"f1": ("resolved", BEGAN, ENDED)}
    assert made.firing


@pytest.mark.parametrize(("count", "listed", "truncated"), [(63, 63, 5), (64, 64, 5), (65, 64, 6)])
def test_opening_at_the_bound(count: int, listed: int, truncated: int) -> None:
    """64 alerts are listed, those beyond are counted with those that the sender left out."""
    made = spec(*many(count), truncatedAlerts=5)
    assert (len(made.alerts), made.truncated_alerts) == (listed, truncated)


def test_joining_alert_is_added() -> None:
    """An alert that fires and is not known joins, behind those that are."""
    merged = merge(spec(alert("f1")), notification(alert("f2")))
    assert told(merged) == {"f1": ("firing", BEGAN, None), "f2": ("firing", BEGAN, None)}


def test_unknown_resolve_adds_nothing() -> None:
    """That an alert has cleared which nobody knew is no news."""
    before = spec(alert("f1"))
    assert merge(before, notification(alert("f1"), alert("f2", "resolved"))) == before


def test_resolve_flips_status_and_end() -> None:
    """A known alert that resolves keeps everything but its status and its end."""
    before = spec(alert("f1", annotations={"summary": "as it began"}))
    after = merge(before, notification(alert("f1", "resolved", annotations={"summary": "as it ended"})))
    assert told(after) == {"f1": ("resolved", BEGAN, ENDED)}
    assert after.alerts[0].annotations == {"summary": "as it began"}


def test_repetition_with_another_measured_value_changes_nothing() -> None:
    """Annotations that carry a value change with every repetition; the Incident keeps the first."""
    before = spec(alert("f1", annotations={"summary": "97%"}))
    assert merge(before, notification(alert("f1", annotations={"summary": "98%"}))) == before


def test_later_start_replaces() -> None:
    """An alert that began again is told anew, with its text."""
    before = spec(alert("f1"))
    after = merge(before, notification(alert("f1", began=LATER, annotations={"summary": "again"})))
    assert told(after) == {"f1": ("firing", LATER, None)}
    assert after.alerts[0].annotations == {"summary": "again"}


@pytest.mark.parametrize("status", ["firing", "resolved"])
def test_older_start_changes_nothing(status: str) -> None:
    """A report of an alert's earlier life, firing or resolved before it began again, is no news."""
    earlier = alert("f1", status, began=EARLIER, endsAt="2026-01-31T11:30:00Z")
    fires = spec(alert("f1"), alert("f2"))
    for before in (fires, merge(fires, notification(alert("f1", "resolved")))):
        assert merge(before, notification(earlier)) == before


def test_same_moment_spelt_differently_changes_nothing() -> None:
    """Starts are compared as moments, not as text."""
    before = spec(alert("f1"))
    assert merge(before, notification(alert("f1", began="2026-01-31T14:00:00.000+02:00"))) == before


def test_resolve_whose_start_was_moved_back() -> None:
    """A resolve that ends after the known start ends that: Alertmanager moved the start back when it merged alerts."""
    after = merge(spec(alert("f1")), notification(alert("f1", "resolved", began=EARLIER)))
    assert told(after) == {"f1": ("resolved", BEGAN, ENDED)}


def test_older_resolve_that_ends_at_the_known_start() -> None:
    """A life that ended at the moment the next began is another life."""
    before = spec(alert("f1"))
    assert merge(before, notification(alert("f1", "resolved", began=EARLIER, endsAt=BEGAN))) == before
    assert merge(before, notification(alert("f1", "resolved", began=EARLIER, endsAt=None))) == before


def test_firing_again_with_the_same_start() -> None:
    """An alert that was resolved by a time-out fires again with its old start; it is not lost."""
    resolved = merge(spec(alert("f1"), alert("f2")), notification(alert("f1", "resolved")))
    assert told(merge(resolved, notification(alert("f1"))))["f1"] == ("firing", BEGAN, None)


@pytest.mark.parametrize(("known", "listed", "truncated"), [(62, 64, 0), (63, 64, 1), (64, 64, 2)])
def test_joining_at_the_bound(known: int, listed: int, truncated: int) -> None:
    """Alerts that find no room beside firing ones are counted."""
    merged = merge(spec(*many(known)), notification(*many(2, prefix="new")))
    assert (len(merged.alerts), merged.truncated_alerts) == (listed, truncated)


def test_firing_takes_the_place_of_resolved() -> None:
    """In a full list the alerts that ended first make room; as many as must."""
    full = spec(*many(64))
    ended = [alert(f"f{n}", "resolved", endsAt=f"2026-01-31T14:0{9 - n}:00Z") for n in range(3)]
    merged = merge(merge(full, notification(*ended)), notification(*many(2, prefix="new")))
    assert len(merged.alerts) == 64
    assert {each.fingerprint for each in full.alerts} - told(merged).keys() == {"f1", "f2"}
    assert told(merged)["f0"][0] == "resolved"
    assert {"new0", "new1"} <= told(merged).keys()
    assert merged.truncated_alerts == 0


def test_truncated_never_falls() -> None:
    """What nobody listed nobody has seen clear, whatever later notifications say."""
    before = spec(alert("f1"), truncatedAlerts=7)
    assert merge(before, notification(alert("f1", "resolved"), truncatedAlerts=0)).truncated_alerts == 7
    assert merge(before, notification(alert("f1"), truncatedAlerts=8)).truncated_alerts == 8
    assert merge(before, notification(alert("f1", "resolved"))).firing


MOMENTS = [f"2026-01-31T{hour:02}:00:00Z" for hour in range(10, 16)]
ALERTS = st.builds(
    alert,
    st.integers(0, 80).map(lambda number: f"f{number}"),
    st.sampled_from(["firing", "resolved"]),
    st.sampled_from(MOMENTS),
    endsAt=st.sampled_from(MOMENTS),
)
NOTIFICATIONS = st.builds(
    lambda alerts, truncated: notification(*alerts, truncatedAlerts=truncated),
    st.lists(ALERTS, min_size=1, max_size=90, unique_by=lambda each: each["fingerprint"]),
    st.integers(0, 3),
)
SPECS = st.builds(
    lambda first, others: _merged(opening(first, episode=1, previous=None), others),
    NOTIFICATIONS,
    st.lists(NOTIFICATIONS, max_size=3),
)


def _merged(before: IncidentSpec, notifications: list[Notification]) -> IncidentSpec:
    for each in notifications:
        before = merge(before, each)
    return before


@settings(max_examples=100, deadline=None)
@given(SPECS, NOTIFICATIONS)
def test_merging_twice_is_merging_once(before: IncidentSpec, news: Notification) -> None:
    """A notification that is delivered again changes nothing."""
    once = merge(before, news)
    assert merge(once, news) == once


@settings(max_examples=50, deadline=None)
@given(NOTIFICATIONS)
def test_opening_and_merging_the_same(news: Notification) -> None:
    """The notification that opened an Incident changes nothing when it is delivered again."""
    made = opening(news, episode=1, previous=None)
    assert merge(made, news) == made


@settings(max_examples=100, deadline=None)
@given(SPECS, NOTIFICATIONS)
def test_no_firing_alert_is_lost(before: IncidentSpec, news: Notification) -> None:
    """What fires is listed as firing afterwards, or counted as truncated, unless a later life of it is known."""
    after = merge(before, news)
    known = {each.fingerprint: parse_rfc3339(each.starts_at) for each in before.alerts}
    current = {
        each.fingerprint
        for each in news.alerts
        if each.firing and parse_rfc3339(each.starts_at) >= known.get(each.fingerprint, parse_rfc3339(each.starts_at))
    }
    listed = {each.fingerprint for each in after.alerts if each.firing}
    assert len(current - listed) <= after.truncated_alerts
    if len(before.alerts) + len(news.alerts) <= bounds.ALERTS:
        assert current <= listed


@settings(max_examples=100, deadline=None)
@given(SPECS, NOTIFICATIONS)
def test_nothing_else_stops_firing(before: IncidentSpec, news: Notification) -> None:
    """An alert that fired and that is not told to have resolved fires on; the bounds hold; truncated never falls."""
    after = merge(before, news)
    resolving = {each.fingerprint for each in news.alerts if not each.firing}
    still = {each.fingerprint for each in before.alerts if each.firing} - resolving
    assert still <= {each.fingerprint for each in after.alerts if each.firing}
    assert after.truncated_alerts >= before.truncated_alerts
    assert len(after.alerts) == len({each.fingerprint for each in after.alerts}) <= bounds.ALERTS
    assert after.source == before.source


@settings(max_examples=50, deadline=None)
@given(SPECS)
def test_older_notification_changes_nothing(before: IncidentSpec) -> None:
    """A notification of alerts that all began, and ended, before what is known changes nothing."""
    old = "2026-01-01T00:00:00Z"
    stale = [alert(each.fingerprint, began=old) for each in before.alerts]
    assert merge(before, notification(*stale)) == before
    ended = [alert(each.fingerprint, "resolved", began=old, endsAt=old) for each in before.alerts]
    assert merge(before, notification(*ended)) == before
