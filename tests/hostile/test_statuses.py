"""A status that was damaged after it was stored: it is refused, or it stands still; it never takes the incident on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from praxis.api.incident import Incident, Result
from praxis.api.plan import plan_digest
from praxis.cli import main
from praxis.controller.reconciler import decide
from praxis.errors import PraxisError
from praxis.machine import Phase
from praxis.phases.contract import Transition, Wait
from tests import builders
from tests.hostile.strategies import clear, damaged
from tests.phases.world import World, executing

FORWARD = {Phase.EXECUTING, Phase.OBSERVING, Phase.RESOLVED}
STATES = [state for phase in Phase for state in builders.history(phase)]


def world_of(incident: Incident) -> World:
    """The world as it was before the damage: approved where it was approved."""
    world, _ = executing()
    world.keep(incident)
    return world


def binding(incident: Incident) -> Any:
    """What people approved, and what was done: nothing of it may differ where an incident goes on."""
    status, plan = incident.status, incident.status.plan
    digest = plan and plan_digest(
        incident_uid=incident.metadata.uid,
        revision=plan.revision,
        actions=plan.actions,
        evidence_digest=plan.evidence_digest,
    )
    return status.phase, digest, plan and plan.digest, status.approvals, status.steps, status.approvals_required


@given(st.sampled_from(STATES).flatmap(lambda state: st.tuples(st.just(state), damaged(state.dump(), below="status"))))
@settings(max_examples=800, deadline=None)
async def test_any_status(case: tuple[Incident, dict[str, Any]]) -> None:
    """In every phase, damaged in up to three places: PRAXIS' own errors only, and no step forward on what is not so."""
    original, document = case
    try:
        incident = Incident.parse(document)
    except ValidationError:
        return
    world = world_of(incident)
    try:
        decision = await decide(incident, world.tools())
    except PraxisError as error:
        clear(error)
        return
    if isinstance(decision, Wait):
        assert not decision.stalled or decision.message
        return
    assert decision.reason
    forward = decision.to in FORWARD - {incident.status.phase} or decision.then is not None or applied(decision)
    assert not forward or binding(incident) == binding(original), document


def applied(decision: Transition) -> bool:
    """Whether it says of a step that it was applied."""
    steps = decision.changes.get("steps", ())
    return any(each.outcome is not None and each.outcome.result is Result.APPLIED for each in steps)


@given(st.sampled_from(STATES).flatmap(lambda state: damaged(state.dump(), most=4)))
@settings(max_examples=150, deadline=None)
@pytest.mark.parametrize("command", [("trail", "verify"), ("audit", "--audit-log", "/dev/null")])
def test_any_document_offline(
    tmp_path_factory: pytest.TempPathFactory, command: tuple[str, ...], document: dict[str, Any]
) -> None:
    """The offline commands say what they make of it, and end with a code of theirs."""
    file = _file(tmp_path_factory.getbasetemp() / "hostile.json", document)
    result = CliRunner().invoke(main, [*command, str(file)])
    assert result.exception is None or isinstance(result.exception, SystemExit), document
    assert result.exit_code in {0, 1, 2, 3}
    assert result.output.strip()


def _file(path: Path, document: dict[str, Any]) -> Path:
    incident = {"apiVersion": "praxis.kopachelli.dev/v1alpha1", "kind": "Incident", **document}
    path.write_text(json.dumps(incident))
    return path
