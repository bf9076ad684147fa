"""Whatever two operators, faults, people and time do, in any order: invariants 1 to 5 hold, and nothing gets stuck."""

from __future__ import annotations

import pytest

from tests.model.explorer import Scenario, explore
from tests.model.looks import deterministic
from tests.model.scenarios import CHANGED, KILLED, LOST, PAUSED, QUORUM, TWO, UNKNOWN

AT_LEAST = {
    KILLED.name: 6000,
    TWO.name: 2500,
    LOST.name: 8500,
    PAUSED.name: 8000,
    CHANGED.name: 2500,
    QUORUM.name: 1600,
    UNKNOWN.name: 650,
}
"""States. Fewer would mean that something cannot happen any more, and that nobody has noticed."""


@pytest.mark.timeout(900)  # all of it takes a minute on an idle machine
@pytest.mark.parametrize(
    "scenario", [KILLED, TWO, LOST, PAUSED, CHANGED, QUORUM, UNKNOWN], ids=lambda scenario: scenario.name
)
def test_invariants_hold_in_every_state(scenario: Scenario) -> None:
    """The whole of it is explored, nothing is wrong anywhere, and from everywhere a healthy process comes to an end."""
    with deterministic():
        explored = explore(scenario)
    assert not explored.violations, "\n\n".join(map(str, explored.violations))
    assert explored.whole
    assert explored.states >= AT_LEAST[scenario.name]
