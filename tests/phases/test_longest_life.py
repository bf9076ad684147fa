"""The longest life that the table and the bounds allow fits the trail, so no incident ever outgrows its own record."""

from __future__ import annotations

from functools import cache

import pytest

from praxis.api import bounds
from praxis.machine import TRANSITIONS, Phase

STEPS_OF_A_PLAN = (bounds.ACTIONS - 1) + 2
"""An entry for each dry run; of the one real action its intent and its outcome."""


def entries(source: Phase, destination: Phase) -> int:
    """The most entries that a way out of a phase leaves: of the work in it, of decisions, of the change itself."""
    change = 1
    if source is Phase.AWAITING_APPROVAL:
        decided = {Phase.EXECUTING: bounds.APPROVALS, Phase.INVESTIGATED: 1, Phase.CLOSED: 1}
        return decided.get(destination, 0) + change
    if source is Phase.EXECUTING:
        objection = 1 if destination in {Phase.INVESTIGATED, Phase.CLOSED} else 0
        return STEPS_OF_A_PLAN + objection + change
    return change


@cache
def longest(phase: Phase, plans: int, most: int) -> int:
    """The most entries from a phase on, when so many plans were drafted already."""
    if phase is Phase.RECONCILIATION_REQUIRED:
        return 1  # a person's finding
    ways = []
    for following in TRANSITIONS[phase]:
        drafted = plans + (following is Phase.AWAITING_APPROVAL)
        if drafted <= most:
            ways.append(entries(phase, following) + longest(following, drafted, most))
    return max(ways, default=0)


def test_the_longest_life_fits_the_trail() -> None:
    """Four plans, each with four approvals, three dry runs, a restart and no effect: 55 of 64 entries."""
    assert longest(Phase.NEW, 0, bounds.PLANS) == 55
    assert longest(Phase.NEW, 0, bounds.PLANS) <= bounds.TRAIL


@pytest.mark.parametrize(("plans", "fits"), [(4, True), (5, False)])
def test_a_fifth_plan_would_not_fit(plans: int, fits: bool) -> None:
    """The bound on plans is what keeps the trail bounded."""
    assert (longest(Phase.NEW, 0, plans) <= bounds.TRAIL) is fits
