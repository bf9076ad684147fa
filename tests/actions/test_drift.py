"""What a person is told has changed."""

from __future__ import annotations

import pytest

from praxis.actions.drift import drift
from praxis.actions.function_compute.state import configuration_parts

BEFORE = ["cpu=1", "environmentVariables.A=2", "memorySize=3"]


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (BEFORE, ""),
        (["cpu=1", "environmentVariables.A=9", "memorySize=3"], ": environmentVariables.A changed"),
        (["cpu=1", "memorySize=3"], ": environmentVariables.A was removed"),
        ([*BEFORE, "timeout=4"], ": timeout was added"),
        (
            ["cpu=0", "environmentVariables.A=9", "timeout=4"],
            (
                ": cpu changed, environmentVariables.A changed, memorySize was removed, timeout was added,"
                " or the digest key was rotated"
            ),
        ),
        ([], ""),
        (
            ["cpu=1", *(f"f{number}=1" for number in range(4))],
            ": environmentVariables.A was removed, f0 was added, f1 was added, f2 was added, f3 was added and 1 more",
        ),
    ],
)
def test_words(now: list[str], told: str) -> None:
    """Each part by name, five at most; nothing when one side kept no parts."""
    assert drift(BEFORE, now) == told
    assert drift([], now) == ""


def test_a_name_with_an_equals_sign() -> None:
    """The digits come last: whatever a name holds, it is not taken for a digest."""
    assert drift(["a=b=1", "c=3"], ["a=b=2", "c=3"]) == ": a=b changed"


def test_a_name_that_cannot_be_shown() -> None:
    """It reaches a status, and from there terminals."""
    assert drift(["a\x1b[31m\n=1", "c=3"], ["a\x1b[31m\n=2", "c=3"]) == ": a\ufffd[31m\ufffd changed"


def test_nothing_is_said_of_what_may_have_been_cut_off() -> None:
    """One more variable pushes the last name out of the 64 that are kept: that one was not removed."""
    before = {"environmentVariables": {f"V{number:04}": "v" for number in range(300)}}
    now = {"environmentVariables": {**before["environmentVariables"], "A": "x"}}
    kept, present = configuration_parts(b"key", before), configuration_parts(b"key", now)
    assert (len(kept), len(present)) == (64, 64)
    assert drift(kept, present) == ": environmentVariables.A was added"
    assert drift(present, kept) == ": environmentVariables.A was removed"


def test_a_rotated_key() -> None:
    """The same function, digested with another key."""
    function = {"functionName": "checkout", "memorySize": 512, "environmentVariables": {"A": "x"}}
    told = drift(configuration_parts(b"key", function), configuration_parts(b"other", function))
    assert told == (
        ": environmentVariables.A changed, functionName changed, memorySize changed, or the digest key was rotated"
    )


def test_equal_values_do_not_show() -> None:
    """Who reads a status does not learn that two secrets are the same."""
    parts = configuration_parts(b"key", {"environmentVariables": {"A": "x", "B": "x"}})
    assert len({part.rpartition("=")[2] for part in parts}) == 2


def test_parts() -> None:
    """A field or a variable each, as short keyed digests; volatile fields are none, values are never told."""
    function = {
        "functionName": "checkout",
        "memorySize": 512,
        "requestId": "r",
        "environmentVariables": {"LOG_LEVEL": "info", "TOKEN": "hunter2hunter2"},
    }
    parts = configuration_parts(b"key", function)
    assert [part.rpartition("=")[0] for part in parts] == [
        "environmentVariables.LOG_LEVEL",
        "environmentVariables.TOKEN",
        "functionName",
        "memorySize",
    ]
    assert all(len(part.rpartition("=")[2]) == 16 for part in parts)
    assert "hunter2" not in str(parts)
    assert configuration_parts(b"other", function) != parts
    longest = configuration_parts(b"key", {f"{'f' * 200}{number}": number for number in range(80)})
    assert len(longest) == 64
    assert max(map(len, longest)) == 137
