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
            ": cpu changed, environmentVariables.A changed, memorySize was removed, timeout was added",
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
    assert drift(["a=b=1"], ["a=b=2"]) == ": a=b changed"


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
