"""What models take and what they refuse: the structured-output ladder, thinking, and each provider's words for them.

A refusal is remembered for the process: the next request to that model starts on the rung that held.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from praxis.reasoning.family import Provider
from praxis.reasoning.protocol import ChatRequest

THINKING_WORDS = ("thinking", "reasoning")


class Rung(StrEnum):
    """How a model is held to a schema. The prompt always states the schema too, and every answer is validated."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    TEXT = "text"


LADDER = tuple(Rung)


@dataclass(frozen=True)
class Shape:
    """How one request is worded."""

    rung: Rung
    thinking: bool


class Features:
    """What has been learnt about each model."""

    def __init__(self) -> None:
        self._rungs: dict[str, Rung] = {}
        self._thinking: dict[str, bool] = {}

    def shape(self, request: ChatRequest) -> Shape:
        """The highest rung that the model has not refused; thinking as wanted, unless the model insists."""
        return Shape(
            rung=self._rungs.get(request.model, Rung.JSON_SCHEMA),
            thinking=self._thinking.get(request.model, request.thinking),
        )

    def give_up(self, request: ChatRequest, shape: Shape, refusal: str) -> str | None:
        """Learn from a refused parameter; the name of what is given up, None when nothing is left to give up."""
        model, text = request.model, refusal.lower()
        if any(word in text for word in THINKING_WORDS) and model not in self._thinking:
            # Some models think never, some always; some only when streaming, which is not done here.
            self._thinking[model] = not shape.thinking
            return "thinking"
        if request.schema is not None and shape.rung is not Rung.TEXT:
            self._rungs[model] = LADDER[LADDER.index(shape.rung) + 1]
            return shape.rung.value
        return None


def body_of(request: ChatRequest, shape: Shape, provider: Provider, output_tokens: int) -> dict[str, Any]:
    """The request's parameters, without its messages."""
    body: dict[str, Any] = {"model": request.model, "max_tokens": output_tokens}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": each.name, "description": each.description, "parameters": dict(each.parameters)},
            }
            for each in request.tools
        ]
        # Model Studio answers 400 to any other choice while thinking.
        body["tool_choice"] = "auto"
    if request.schema is not None and (form := _response_format(request, shape.rung)):
        body["response_format"] = form
    if provider is Provider.OPENROUTER:
        # Without require_parameters OpenRouter drops what a provider does not know in silence.
        body["extra_body"] = {
            "reasoning": {"enabled": shape.thinking},
            "provider": {"require_parameters": True, "data_collection": "deny"},
        }
    else:
        # Always said: the default differs from model to model.
        body["extra_body"] = {"enable_thinking": shape.thinking}
    return body


def _response_format(request: ChatRequest, rung: Rung) -> dict[str, Any] | None:
    assert request.schema is not None
    if rung is Rung.JSON_SCHEMA:
        schema = {"name": request.schema.name, "strict": True, "schema": dict(request.schema.document)}
        return {"type": "json_schema", "json_schema": schema}
    return {"type": "json_object"} if rung is Rung.JSON_OBJECT else None
