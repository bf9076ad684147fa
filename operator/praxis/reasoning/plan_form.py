"""The form that a plan must hold: catalogue actions only, each of its exact tier, on the targets given and no others.

The schema already allows nothing else, for models that heed it; the reader checks everything again and has the last
word. It mends lengths and deceiving characters of prose, never an id, a tier, a target or a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from praxis.actions.catalogue import CATALOGUE, Entry
from praxis.api import bounds
from praxis.api.plan import REAL, TIERS
from praxis.api.target import RemediationTarget
from praxis.reasoning.cleaning import bounded, line
from praxis.reasoning.contract import ProposedAction, ProposedPlan
from praxis.reasoning.protocol import Schema
from praxis.reasoning.structured import PROBLEMS, Form, Unacceptable, described
from praxis.redaction import redact_json

PROSE = {"summary": 1024, "rationale": 4096}
ROLLBACK = 1024
PARAMETER_VALUE = 256
ID_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def plan_form(targets: Sequence[RemediationTarget]) -> Form[ProposedPlan]:
    """The form of a plan on these targets."""
    by_name = {target.metadata.name: target for target in targets}
    return Form(Schema("plan", _schema(list(by_name))), lambda document: _plan(document, by_name))


def problems_of(plan: ProposedPlan, targets: Mapping[str, RemediationTarget]) -> Iterator[str]:
    """Everything that a plan breaks, in words for the model."""
    ids = [action.id for action in plan.actions]
    if len(set(ids)) != len(ids):
        yield "actions: an id is used twice"
    real = [action.id for action in plan.actions if action.type in REAL]
    if len(real) > 1:
        yield f"actions: at most one may be real, {', '.join(real)} are"
    for index, action in enumerate(plan.actions):
        for problem in _problems_of_action(action, targets):
            yield f"actions.{index}.{problem}"


def _problems_of_action(action: ProposedAction, targets: Mapping[str, RemediationTarget]) -> Iterator[str]:
    if action.tier is not TIERS[action.type]:
        yield f"tier: {action.type} is of tier {TIERS[action.type]}, not {action.tier}"
    target = targets.get(action.target)
    if target is None:
        yield f"target: {line(action.target, 64)!r} is none of: {', '.join(targets)}"
    elif action.type in REAL and not target.spec.disposable:
        yield f"target: {action.target} is not disposable, so {action.type} cannot run on it"
    # A parameter is never mended: with a marker in it the action would be another one.
    if redact_json({"id": action.id, **action.parameters}) != {"id": action.id, **action.parameters}:
        yield "parameters: the id or a value looks like a secret, which no plan may hold"
    if any(len(value) > PARAMETER_VALUE for value in action.parameters.values()):
        yield f"parameters: a value exceeds {PARAMETER_VALUE} characters"
    try:
        CATALOGUE[action.type].parameters.model_validate(dict(action.parameters))
    except ValidationError as error:
        yield f"parameters: {described(error)}"


def _plan(document: Any, targets: Mapping[str, RemediationTarget]) -> ProposedPlan:
    plan = ProposedPlan.model_validate(_with_fitting_prose(document))
    problems = list(problems_of(plan, targets))
    if problems:
        raise Unacceptable("; ".join(problems[:PROBLEMS]))
    return plan


def _with_fitting_prose(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    fitting = {**document, **{name: _prose(document[name], limit) for name, limit in PROSE.items() if name in document}}
    if isinstance(document.get("actions"), list):
        fitting["actions"] = [
            {**action, "rollback": _prose(action["rollback"], ROLLBACK)}
            if isinstance(action, dict) and "rollback" in action
            else action
            for action in document["actions"]
        ]
    return fitting


def _prose(value: Any, limit: int) -> Any:
    return bounded(value, limit) if isinstance(value, str) else value


def _schema(targets: list[str]) -> dict[str, Any]:
    return _object(
        {
            "summary": {"type": "string", "description": "What the plan does, in a sentence or two."},
            "rationale": {"type": "string", "description": "Why it should help; cites evidence ids such as e1."},
            "actions": {
                "type": "array",
                "minItems": 1,
                "maxItems": bounds.ACTIONS,
                "items": {"anyOf": [_action(entry, targets) for entry in CATALOGUE.values()]},
            },
        }
    )


def _action(entry: Entry, targets: list[str]) -> dict[str, Any]:
    parameters = entry.schema()
    return _object(
        {
            "id": {"type": "string", "pattern": ID_PATTERN, "description": "Unique in the plan."},
            "type": {"type": "string", "enum": [entry.type.value]},
            "tier": {"type": "string", "enum": [entry.tier.value]},
            "target": {"type": "string", "enum": targets},
            "parameters": _object(
                {
                    name: {key: value for key, value in field.items() if key != "title"}
                    for name, field in parameters.get("properties", {}).items()
                }
            ),
            "rollback": {"type": "string", "description": "How to undo it."},
        }
    )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    # Strict structured output wants every property required and no others.
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
