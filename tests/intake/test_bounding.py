"""What of a sender's text is kept: at, below and above each bound."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praxis.intake.bounding import ALERT_BYTES, address, cut, line, pairs, stored_bytes
from tests.intake.notifications import alert, notification

PLENTY = 10**6


@pytest.mark.parametrize(("text", "kept"), [("abcd", "abcd"), ("abcde", "abcde"), ("abcdef", "abcd…")])
def test_cut(text: str, kept: str) -> None:
    """A text that is too long ends in an ellipsis and has exactly the length."""
    assert cut(text, 5) == kept


@pytest.mark.parametrize(("size", "kept"), [(1023, True), (1024, True), (1025, False)])
def test_long_addresses_are_left_out(size: int, kept: bool) -> None:
    """An address is kept whole or not at all."""
    url = "http://host/" + "x" * (size - 12)
    assert address(url) == (url if kept else None)
    assert address("") is None
    assert address(None) is None


def test_line_is_redacted_before_it_is_cut() -> None:
    """Half a token is still half a secret: the marker is cut, not the token."""
    assert "ghp_" not in line("x" * 20 + " ghp_" + "a1B2" * 9, 30)


@pytest.mark.parametrize(("count", "kept"), [(31, 31), (32, 32), (33, 32)])
def test_number_of_labels(count: int, kept: int) -> None:
    """At most 32 labels are kept, the first ones of the alphabet."""
    labels = {f"l{number:02}": "v" for number in range(count)}
    assert list(pairs(labels, first=(), length=512, room=PLENTY)[0]) == sorted(labels)[:kept]


def test_which_labels_are_kept() -> None:
    """The group's own labels are kept before alertname and severity, and those before the alphabet."""
    labels = {f"a{number:02}": "v" for number in range(40)} | {"alertname": "A", "severity": "s", "zone": "z"}
    kept = notification(alert(labels=labels), groupLabels={"zone": "z"}).alerts[0].labels
    assert list(kept)[:4] == ["zone", "alertname", "severity", "a00"]
    assert len(kept) == 32


def test_which_annotations_are_kept() -> None:
    """Summary, description, message and runbook go before the alphabet."""
    annotations = {f"a{number:02}": "v" for number in range(40)}
    annotations |= {"runbook_url": "r", "message": "m", "summary": "s", "description": "d"}
    kept = notification(alert(annotations=annotations)).alerts[0].annotations
    assert list(kept)[:5] == ["summary", "description", "message", "runbook_url", "a00"]


@pytest.mark.parametrize(("size", "kept"), [(127, 1), (128, 1), (129, 0)])
def test_long_names_are_left_out(size: int, kept: int) -> None:
    """A label with a name of more than 128 characters is left out."""
    assert len(pairs({"n" * size: "v"}, first=(), length=512, room=PLENTY)[0]) == kept


@pytest.mark.parametrize(("size", "last"), [(511, "v"), (512, "v"), (513, "…")])
def test_long_values_are_cut(size: int, last: str) -> None:
    """A label's value is cut to 512 characters; characters count, not bytes."""
    value = pairs({"n": "v" * size}, first=(), length=512, room=PLENTY)[0]["n"]
    assert len(value) == min(size, 512)
    assert value[-1] == last
    assert pairs({"n": "汉" * 512}, first=(), length=512, room=PLENTY)[0] == {"n": "汉" * 512}


def test_annotations_take_what_room_the_labels_leave() -> None:
    """An alert that would be too large keeps its labels and loses the end of its annotations."""
    large = alert(
        labels={f"l{number}": "x" * 100 for number in range(20)},
        annotations={f"a{number}": "y" * 2048 for number in range(10)},
    )
    kept = notification(large).alerts[0]
    assert kept.labels == large["labels"]
    assert kept.annotations["a0"] == "y" * 2048
    assert 1 <= len(kept.annotations) < 10
    assert list(kept.annotations.values())[-1].endswith("…")
    assert len(json.dumps(kept.dump())) <= ALERT_BYTES


def test_stored_bytes() -> None:
    """What Go escapes counts as it is stored."""
    assert [stored_bytes(text) for text in ("", "a", "<", '"', "汉", "\x00")] == [2, 3, 8, 4, 5, 8]


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=150), st.text(max_size=3000), max_size=50))
def test_an_alert_has_a_size(values: dict[str, str]) -> None:
    """Whatever an alert says, it takes no more than its share as Go stores it."""
    kept = notification(alert(labels=values, annotations=values)).alerts[0].dump()
    stored = json.dumps(kept, ensure_ascii=False)
    assert len(stored.encode()) + 5 * sum(stored.count(each) for each in "<>&") <= ALERT_BYTES
