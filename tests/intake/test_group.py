"""The names of episodes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.intake.group import Group

GROUP = Group(receiver="alertmanager", key="{}:{}")
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def test_name() -> None:
    """Receiver, digest of receiver and group key, episode."""
    assert GROUP.name(1) == "alertmanager-0e0a0444652cabe47108-1"
    assert GROUP.labels == {
        "praxis.kopachelli.dev/receiver": "alertmanager",
        "praxis.kopachelli.dev/group": "0e0a0444652cabe47108",
    }


def test_receiver_counts() -> None:
    """The same group key at another receiver is another group, also where both together read the same."""
    assert Group(receiver="webhook", key="{}:{}").digest != GROUP.digest
    assert Group(receiver="a", key="bc").digest != Group(receiver="ab", key="c").digest


@given(st.text(min_size=1).filter(lambda text: text.isprintable()), st.integers(1, 10**8))
def test_name_is_a_dns_label(key: str, episode: int) -> None:
    """Whatever the key, for the longest receiver and many episodes, the name is one, and tells the episode."""
    group = Group(receiver="r" * 32, key=key)
    name = group.name(episode)
    assert len(name) <= 63
    assert DNS_LABEL.fullmatch(name)
    assert group.episode(name) == episode


@pytest.mark.parametrize(
    "name",
    [
        "",
        "other",
        GROUP.name(1)[:-1],
        GROUP.name(1) + "x",
        GROUP.name(0),
        "x" + GROUP.name(1),
        GROUP.name(1)[:-1] + "01",
        GROUP.name(1)[:-1] + "\u0661",
        Group(receiver="webhook", key="{}:{}").name(1),
    ],
)
def test_foreign_names(name: str) -> None:
    """What is no name of the group is no episode of it."""
    assert GROUP.episode(name) == 0
