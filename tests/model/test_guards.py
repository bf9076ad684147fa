"""Removing any one guard of invariants 1 to 5 makes the model fail, and says how."""

from __future__ import annotations

import pytest

from tests.model.explorer import explore
from tests.model.guards import GUARDS, Guard, without
from tests.model.looks import deterministic

MOST = 20_000


@pytest.mark.parametrize("guard", GUARDS, ids=[guard.name for guard in GUARDS])
def test_model_fails_without_a_guard(guard: Guard) -> None:
    """Without it, something happens that must not, and the shortest way there is told; with it, nothing does so far."""
    with deterministic(), without(guard):
        found = explore(guard.scenario, most=MOST)
    print(f"{guard.name}: {found.states} states", *found.violations[:1], sep="\n")
    assert guard.shows in {violation.what for violation in found.violations}
    with deterministic():
        assert explore(guard.scenario, most=found.states).violations == []
