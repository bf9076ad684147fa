"""The longest life that the table and the bounds allow fits the trail, so no incident ever outgrows its own record."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import cache

import pytest

from praxis.api import bounds
from praxis.api.incident import Incident
from praxis.machine import TRANSITIONS, Phase
from praxis.settings import OperatorSettings, Quorum
from tests import builders
from tests.phases.processes import Api, Process
from tests.phases.world import World, drafted, proposed

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


SCALE = {"type": "scale_service", "tier": "caution", "parameters": {"replicas": "3"}}


def test_the_longest_life_is_lived() -> None:
    """The operator itself, led through four plans of four approvals and four actions that do not help, ends at 55."""
    world, loop = World(), asyncio.new_event_loop()
    world.declare(builders.target())
    world.keep(builders.incident(Phase.NEW))
    settings = OperatorSettings(quorum=Quorum(safe=4, caution=4, dangerous=4))

    async def made() -> Process:
        return Process(
            "writer-a", world, Api(world, lambda before, after: None), loop, off=timedelta(0), settings=settings
        )

    operator = loop.run_until_complete(made())

    def worked() -> Incident:
        for _ in range(12):
            operator.start(builders.INCIDENT)
            if operator.busy:
                operator.finish()
        return world.incidents[(builders.NAMESPACE, builders.INCIDENT)]

    try:
        for number in range(bounds.PLANS):
            dry = [proposed(id=f"scale-{each}", **SCALE) for each in range(bounds.ACTIONS - 1)]
            world.reasoner.queued["draft"].append(drafted("", *dry, proposed()))
            waiting = worked()
            assert waiting.status.phase is Phase.AWAITING_APPROVAL
            for by in ("alice", "bob", "carol", "dave"):
                expires = world.time.wall + timedelta(hours=1)
                world.say(builders.approval(by, of=waiting, name=f"{by}-{number}", expires=expires))
            assert worked().status.phase is Phase.OBSERVING
            world.time.forward(settings.deadlines.observing)
        ended = worked()
    finally:
        operator.kill()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    assert (ended.status.phase, ended.status.reason) == (Phase.FAILED, "PlansExhausted")
    assert len(ended.status.trail) == 55
    assert len(ended.status.steps) == bounds.STEPS
    assert len(world.function.sends) == bounds.PLANS
