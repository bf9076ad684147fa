"""From bytes to a notification: what is taken, what is refused, and in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from praxis.api import bounds
from praxis.api.incident import IncidentSpec
from praxis.intake.merging import opening
from tests.intake.notifications import BEGAN, ENDED, GROUP_KEY, LATER, ZERO, alert, notification, payload, read


def refusal(body: bytes) -> str:
    """The sentence with which a body is refused."""
    with pytest.raises(ValueError, match=r".") as caught:
        read(body)
    return str(caught.value)


def refused(document: Any) -> str:
    """The sentence with which a document is refused."""
    return refusal(json.dumps(document).encode())


def test_whole_notification() -> None:
    """Everything that an Incident shows is taken over in Alertmanager's words."""
    told = notification(alert("f1"), alert("f2", "resolved"), truncatedAlerts=3)
    assert told.group.receiver == "alertmanager"
    assert told.group.key == GROUP_KEY
    assert (told.summary, told.severity, told.truncated) == ("Checkout is slow.", "high", 3)
    assert told.external_url == "http://alertmanager:9093"
    assert told.authentication == "bearer"
    assert told.alerts[0].dump() == {
        "fingerprint": "f1",
        "status": "firing",
        "startsAt": BEGAN,
        "labels": {"alertname": "HighLatency", "service": "checkout", "severity": "high", "pod": "f1"},
        "annotations": {"summary": "f1 is slow"},
        "generatorURL": "http://prometheus:9090/graph?g0.expr=latency",
    }
    assert (told.alerts[1].status, told.alerts[1].ends_at) == ("resolved", ENDED)


def test_smallest_notification() -> None:
    """A sender of its own needs a group key and alerts with status, labels and start; nothing else."""
    body = {"groupKey": "disk", "alerts": [{"status": "firing", "labels": {"alertname": "Full"}, "startsAt": BEGAN}]}
    told = read(json.dumps(body).encode())
    assert (told.summary, told.severity, told.external_url) == ("Full", "", None)
    assert told.alerts[0].fingerprint == "5898c200b7a3a89e"


def test_nulls_are_absent() -> None:
    """What another implementation sends as null counts as not sent."""
    told = notification(alert(annotations={}, generatorURL=""), groupLabels={}, commonLabels={}, commonAnnotations={})
    document = payload(alert() | {"annotations": None, "generatorURL": None, "endsAt": None})
    document |= {"groupLabels": None, "commonLabels": None, "commonAnnotations": None, "externalURL": None}
    assert read(json.dumps(document).encode()).alerts == told.alerts


def test_unknown_fields_are_ignored() -> None:
    """Fields of newer releases change nothing."""
    newer = payload(alert() | {"silenceURL": "x"}, notification_reason="repeat", routeLabels={"a": "b"})
    assert read(json.dumps(newer).encode()) == notification()


def test_firing_alert_has_no_end() -> None:
    """A firing alert's endsAt is a guess of the sender, and is not kept."""
    assert notification(alert(endsAt=LATER)).alerts[0].ends_at is None
    assert notification(alert(endsAt=ZERO)).alerts[0].ends_at is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"version": "3"}, "version: Input should be '4'"),
        ({"groupKey": None}, "groupKey: Field required"),
        ({"groupKey": ""}, "groupKey: empty: it must tell this group from others"),
        ({"groupKey": 7}, "groupKey: Input should be a valid string"),
        ({"alerts": []}, "alerts: List should have at least 1 item after validation, not 0"),
        ({"alerts": {}}, "alerts: Input should be a valid list"),
        ({"truncatedAlerts": -1}, "truncatedAlerts: Input should be greater than or equal to 0"),
        ({"truncatedAlerts": 10**9 + 1}, "truncatedAlerts: Input should be less than or equal to 1000000000"),
        ({"truncatedAlerts": "1"}, "truncatedAlerts: Input should be a valid integer"),
        ({"truncatedAlerts": True}, "truncatedAlerts: Input should be a valid integer"),
        ({"commonLabels": {"a": 1}}, "commonLabels.a: Input should be a valid string"),
        ({"alerts": ["x"]}, "alerts[0]: Input should be an object"),
        ({"alerts": [alert(status="pending")]}, "alerts[0].status: Input should be 'firing' or 'resolved'"),
        ({"alerts": [alert(), alert(labels=None)]}, "alerts[1].labels: Field required"),
        ({"alerts": [alert(labels={"a": None})]}, "alerts[0].labels.a: Input should be a valid string"),
        (
            {"alerts": [alert(began="yesterday")]},
            "alerts[0].startsAt: not an RFC 3339 time such as 2026-01-31T12:00:00Z",
        ),
        (
            {"alerts": [alert(began="2026-01-31T12:00:00")]},
            "alerts[0].startsAt: not an RFC 3339 time such as 2026-01-31T12:00:00Z",
        ),
        ({"alerts": [alert(began="2026-02-30T12:00:00Z")]}, "alerts[0].startsAt: day is out of range for month"),
        (
            {"alerts": [alert(began="0001-01-01T00:00:00+01:00")]},
            "alerts[0].startsAt: '0001-01-01T00:00:00+01:00' is outside the years 1 to 9999 in UTC",
        ),
        (
            {"alerts": [alert(began=BEGAN + "\n")]},
            "alerts[0].startsAt: not an RFC 3339 time such as 2026-01-31T12:00:00Z",
        ),
        (
            {"alerts": [alert(fingerprint="")]},
            "alerts[0].fingerprint: String should match pattern '^[0-9A-Za-z._:-]{1,64}$'",
        ),
        ({"groupKey": "\ud800"}, "groupKey: half of a surrogate pair is no character"),
        ({"groupKey": 7, "version": 4}, "version: Input should be '4' (and 1 more)"),
    ],
)
def test_refused_documents(changes: dict[str, Any], sentence: str) -> None:
    """A document that is no notification is refused with where and what is wrong."""
    assert refused(payload(**changes)) == sentence


@pytest.mark.parametrize("place", ["labels", "annotations"])
def test_half_a_surrogate_pair(place: str) -> None:
    """A lone surrogate is refused wherever it would be kept, in a name too."""
    assert refused(payload(alert(**{place: {"a": "\udfff"}}))) == (
        f"alerts[0].{place}.a: half of a surrogate pair is no character"
    )
    assert "half of a surrogate pair is no character" in refused(payload(alert(**{place: {"\ud800": "a"}})))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "the body is not JSON: Expecting value at line 1, column 1"),
        (b"\xff{}", "the body is not UTF-8: byte 0 cannot be decoded"),
        (b'{"a": "\xc3\x28"}', "the body is not UTF-8: byte 7 cannot be decoded"),
        (b'{\n"groupKey": }', "the body is not JSON: Expecting value at line 2, column 13"),
        (b"[1]", "the body is not a JSON object"),
        (b"null", "the body is not a JSON object"),
        (b'"text"', "the body is not a JSON object"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": -Infinity}', "-Infinity is no JSON number"),
        (b'{"alerts": [], "alerts": []}', "the name alerts occurs twice in one object"),
        (b'{"alerts": [{"labels": {"a": "1", "a": "1"}}]}', "the name a occurs twice in one object"),
        (b'{"\\ud800": 1, "\\ud800": 2}', "the name ? occurs twice in one object"),
        (b"[" * 100_000, "the body is nested too deeply"),
        (b'{"a":' * 40_000 + b"1" + b"}" * 40_000, "the body is nested too deeply"),
    ],
)
def test_refused_bodies(body: bytes, sentence: str) -> None:
    """Bytes that two readers could take differently, or that no reader takes, are refused in a sentence."""
    assert refusal(body) == sentence


def test_endless_number() -> None:
    """A number of more digits than Python converts is refused, not an error in here."""
    assert "digits" in refusal(b'{"truncatedAlerts": ' + b"1" * 5000 + b"}")
    assert refusal(b'{"groupKey": "a", "alerts": 1e999}') == "alerts: Input should be a valid list"


def test_sentence_shows_no_secret_and_no_escape() -> None:
    """A sentence quotes the sender's names redacted, on one line, and not at length."""
    token = "ghp_" + "a1B2" * 9
    assert token not in refused(payload(alert(labels={token: 1})))
    assert "\x1b" not in refused(payload(alert(labels={"\x1b[31m": 1})))
    assert len(refused(payload(alert(labels={"n" * 100_000: 1})))) <= 400


@pytest.mark.parametrize(
    "began",
    [
        "2026-01-31T12:00:00.1Z",
        "2026-01-31T12:00:00.123456789Z",
        "2026-01-31T14:00:00.123+02:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999999Z",
    ],
)
def test_times_stay_as_they_were_sent(began: str) -> None:
    """A time is kept in the sender's spelling, nanoseconds and offset too."""
    assert notification(alert(began=began)).alerts[0].starts_at == began


def test_one_alert_told_twice_in_one_notification() -> None:
    """The later start counts; of two that began together the one that fires, in whichever order they stand."""
    for alerts in ([alert(), alert(status="resolved")], [alert(status="resolved"), alert()]):
        assert [each.status for each in notification(*alerts).alerts] == ["firing"]
    later = alert(status="resolved", began=LATER)
    for alerts in ([alert(), later], [later, alert()]):
        assert [each.starts_at for each in notification(*alerts).alerts] == [LATER]


def test_nothing_of_it_may_fire() -> None:
    """Truncated alerts may fire; a notification that lists everything and nothing that fires does not."""
    assert notification().firing
    assert not notification(alert(status="resolved")).firing
    assert notification(alert(status="resolved"), truncatedAlerts=1).firing


@pytest.mark.parametrize(
    ("changes", "summary"),
    [
        ({}, "Checkout is slow."),
        ({"commonAnnotations": {"description": "Long story"}}, "Long story"),
        ({"commonAnnotations": {"summary": " \n ", "message": "m"}}, "m"),
        ({"commonAnnotations": {}}, "f2 is slow"),
        ({"commonAnnotations": {"summary": "two\nlines\x1b[31m\u202e and\u0000 more"}}, "two lines [31m and more"),
        ({"commonAnnotations": {"summary": "x" * 1025}}, "x" * 1023 + "…"),
        ({"commonAnnotations": {"summary": "x" * 1024}}, "x" * 1024),
    ],
)
def test_summary(changes: dict[str, Any], summary: str) -> None:
    """The group's summary, else what else tells of it, else the first firing alert's; one printable line."""
    assert notification(alert("f1", "resolved"), alert("f2"), **changes).summary == summary


def test_summary_without_annotations() -> None:
    """The alert's name, else the group key, stands for a summary that nobody wrote."""
    bare = alert(annotations={})
    assert notification(bare, commonAnnotations={}).summary == "HighLatency"
    assert notification(alert(annotations={}, labels={}), commonAnnotations={}, commonLabels={}).summary == GROUP_KEY


@pytest.mark.parametrize(
    ("common", "severities", "expected"),
    [
        ({"severity": "warning"}, ["critical"], "warning"),
        ({}, ["warning", "critical", "info"], "critical"),
        ({}, ["sev9", "low"], "low"),
        ({}, ["sev9"], "sev9"),
        ({}, ["x" * 65], "x" * 63 + "…"),
        ({}, [""], ""),
    ],
)
def test_severity(common: dict[str, str], severities: list[str], expected: str) -> None:
    """The group's severity, else that of the most urgent alert that fires."""
    alerts = [alert(f"f{n}", labels={"severity": each}) for n, each in enumerate(severities)]
    resolved = alert("gone", "resolved", labels={"severity": "critical"})
    assert notification(*alerts, resolved, commonLabels=common, groupLabels={}).severity == expected


def test_secrets_do_not_travel() -> None:
    """Every text that is kept is redacted: labels, annotations, addresses, summary, severity, group key."""
    token = "ghp_" + "a1B2" * 9
    told = notification(
        alert(
            labels={"alertname": token, "db_password": "hunter2hunter2", token: "x"},
            annotations={"description": f"curl -H 'Authorization: Bearer {token}'"},
            generatorURL=f"http://user:pa55w0rd@prometheus/?token={token}",
        ),
        commonAnnotations={"summary": f"token={token}"},
        commonLabels={"severity": token},
        externalURL=f"http://user:pa55w0rd@am/?token={token}",
        groupKey=f'{{}}:{{token="{token}"}}',
    )
    kept = json.dumps(opening(told, episode=1, previous=None).dump())
    assert "a1B2a1B2" not in kept
    assert "hunter2" not in kept
    assert "pa55w0rd" not in kept
    assert kept.count("REDACTED") >= 8


def test_group_key_is_shown_cut() -> None:
    """A long group key is cut where it is shown; the name tells it from another one with the same beginning."""
    key = "k" * 2000
    one, other = notification(groupKey=key + "1"), notification(groupKey=key + "2")
    assert one.group_key == "k" * 1023 + "…" == other.group_key
    assert one.group.name(1) != other.group.name(1)
    assert notification(groupKey="k" * 1024).group_key == "k" * 1024


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("version", "groupKey", "truncatedAlerts", "groupLabels", "commonLabels", "commonAnnotations", "externalURL")
ALERT_FIELDS = ("status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint")


def taken_or_refused(body: bytes) -> None:
    """A body either becomes a spec that holds every bound, or is refused in a sentence."""
    try:
        told = read(body)
    except ValidationError:
        raise
    except ValueError:
        assert 0 < len(refusal(body)) <= 400
        return
    spec = opening(told, episode=1, previous=None)
    assert IncidentSpec.model_validate(spec.dump()) == spec
    assert 1 <= len(spec.alerts) <= bounds.ALERTS
    json.dumps(spec.dump(), ensure_ascii=False).encode()


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.dictionaries(st.sampled_from(ALERT_FIELDS), JSON))
def test_any_value_in_any_field(changes: dict[str, Any], alert_changes: dict[str, Any]) -> None:
    """Whatever stands in whichever field, the answer is a notification or a sentence, never another error."""
    document = payload() | changes
    document["alerts"] = [alert() | alert_changes]
    taken_or_refused(json.dumps(document).encode())


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes(body: bytes) -> None:
    """Whatever bytes arrive, the answer is a notification or a sentence."""
    taken_or_refused(body)


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.text(max_size=200), st.text(max_size=4000), max_size=60),
    st.dictionaries(st.text(max_size=200), st.text(max_size=4000), max_size=60),
)
def test_any_text_fits(labels: dict[str, str], annotations: dict[str, str]) -> None:
    """Whatever labels and annotations say, an alert holds its bounds."""
    taken_or_refused(json.dumps(payload(alert(labels=labels, annotations=annotations))).encode())
