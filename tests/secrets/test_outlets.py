"""Each place at which somebody's text becomes PRAXIS' own: redacted there, and before it is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from praxis.actions.function_compute.faults import mask
from praxis.api.approval import Decision
from praxis.api.incident import Usage
from praxis.api.reasons import ConditionType, Reason
from praxis.controller.status import applied
from praxis.machine import Phase
from praxis.phases.contract import ConditionUpdate, Transition
from praxis.phases.decisions import another_plan, dismissed
from praxis.reasoning.answers import classification_form
from praxis.reasoning.cleaning import bounded, line
from praxis.reasoning.plan_form import plan_form
from praxis.reasoning.protocol import Reply
from praxis.reasoning.structured import Unacceptable
from tests import builders

TOKEN = "ghp" + "_" + "a1B2c3D4" * 5
SHOWN = "[REDACTED:github-token]"
ACROSS = "x " * 500 + TOKEN
"""Cut at 1024 characters, half of the token would be left."""


def reply(document: Any) -> Reply:
    return Reply(
        content=json.dumps(document), tool_calls=(), finish_reason="stop", model="scripted-fast", usage=Usage()
    )


def test_what_people_say() -> None:
    """Corrections, reasons and messages carry the marker; the trail binds the statement as it was made."""
    reason = "x " * 490 + TOKEN
    said = builders.approval(decision=Decision.REVISE, reason=reason, corrections=[f"use {TOKEN}"])
    revised = another_plan(builders.incident(), said, Reason.REVISION_REQUESTED)
    assert revised.changes["corrections"] == [f"use {SHOWN}", "x " * 490 + SHOWN]
    assert "a1B2" not in revised.message
    assert revised.records[0].digest == said.record_digest
    closed = dismissed(builders.approval(decision=Decision.DISMISS, reason=reason))
    assert "a1B2" not in closed.message
    assert closed.message == f"dismissed by alice: {reason}".replace(TOKEN, SHOWN)[:1024]


def test_what_a_phase_says() -> None:
    """The message of the status and of every condition, whoever worded it."""
    transition = Transition(
        to=Phase.TRIAGED,
        reason=Reason.CLASSIFIED,
        message=ACROSS,
        conditions=[ConditionUpdate(ConditionType.STALLED, status=True, reason=Reason.UNAVAILABLE, message=ACROSS)],
    )
    status = applied(builders.incident(Phase.NEW), transition, actor=builders.OPERATOR, now=builders.NOW)
    assert [len(status.message or ""), len(status.conditions[0].message)] == [1023, 1023]
    assert "a1B2" not in json.dumps(status.dump())


def test_what_a_service_says() -> None:
    """Its credentials are masked by value, anything else by form, before the cut."""
    assert mask(f"key s3cr3t-of-us and {TOKEN}", ["s3cr3t-of-us"]) == f"key [redacted] and {SHOWN}"
    assert "a1B2" not in mask("y" * 230 + " " + TOKEN, [])


@pytest.mark.parametrize("hidden", ["\u200b", "\u202e", "\x00", "\ue000"])
def test_what_a_model_hides(hidden: str) -> None:
    """A token with invisible characters in it is whole once they are dropped: they go first."""
    spread = hidden.join(TOKEN)
    assert bounded(f"see {spread}", 100) == f"see {SHOWN}"
    assert line(f"see\n{spread}", 100) == f"see {SHOWN}"


def test_what_a_model_calls_a_service() -> None:
    """Also a field that should hold a name."""
    answer = {"category": "Other", "severity": "low", "service": TOKEN, "summary": f"uses {TOKEN}"}
    read = classification_form().accept(reply(answer))
    assert (read.service, read.summary) == (SHOWN, f"uses {SHOWN}")


@pytest.mark.parametrize(
    "spoilt",
    [
        {"id": "dapi" + "0123456789abcdef" * 2},
        {"type": "update_config", "tier": "caution", "parameters": {"key": "LOG_LEVEL", "value": TOKEN}},
        {"type": "rollback_deploy", "tier": "dangerous", "parameters": {"revision": TOKEN}},
    ],
)
def test_a_plan_that_holds_a_secret_is_refused(spoilt: dict[str, Any]) -> None:
    """Nothing that would be carried out is mended: the model is told, and the plan is none."""
    action = {"id": "a", "type": "restart_function", "tier": "safe", "target": "checkout-fn", "parameters": {}}
    plan = {"summary": "s", "rationale": "r", "actions": [{**action, "rollback": "none", **spoilt}]}
    with pytest.raises(Unacceptable, match="looks like a secret, which no plan may hold") as refused:
        plan_form([builders.target()]).accept(reply(plan))
    assert "a1B2" not in str(refused.value)


def test_what_a_model_misspells() -> None:
    """A refusal that quotes the model quotes no secret of it."""
    action = {"id": "a", "type": "restart_function", "tier": "safe", "target": TOKEN, "parameters": {}, TOKEN: 1}
    plan = {"summary": "s", "rationale": "r", "actions": [{**action, "rollback": "none"}]}
    with pytest.raises(Unacceptable) as refused:
        plan_form([builders.target()]).accept(reply(plan))
    assert "a1B2" not in str(refused.value)
