"""One model run as it was: every exchange with the model, as sent and as answered, for the flight recorder.

Attributes have the names of OpenTelemetry's semantic conventions for generative AI
(https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai/). Messages and tools are kept as they are on
the wire, each once: a tool loop sends the whole conversation again with every turn. Exchanges name messages by number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from praxis.api.base import IncidentUid
from praxis.clock import Clock, rfc3339
from praxis.digest import canonical
from praxis.errors import PraxisError
from praxis.reasoning.metering import Operation, Tokens
from praxis.reasoning.protocol import WireCompletion

ABOUT = frozenset({"model", "messages", "tools", "max_tokens"})
"""What of a request is told elsewhere in the exchange."""


@dataclass
class Exchange:
    """One request and what came of it; `attempt` counts those of the run."""

    attempt: int
    started: str
    input: list[int]
    tools: list[str]
    parameters: dict[str, Any]
    attributes: dict[str, Any]
    output: dict[str, Any] | None = None
    ended: str = ""
    error: dict[str, str] | None = None

    def answered(self, completion: WireCompletion, tokens: Tokens) -> None:
        """Note an answer, whether or not it holds."""
        choices = [each.model_dump(exclude_none=True) for each in completion.choices]
        self.output = _wellformed({"choices": choices})
        self.attributes |= {
            "gen_ai.response.model": _wellformed(completion.model),
            "gen_ai.response.finish_reasons": [_wellformed(each.finish_reason or "") for each in completion.choices],
            "gen_ai.usage.input_tokens": tokens.input,
            "gen_ai.usage.output_tokens": tokens.output,
        }

    def document(self) -> dict[str, Any]:
        """As it is recorded."""
        told = {"output": self.output, "error": self.error}
        return {
            "attempt": self.attempt,
            "startTime": self.started,
            "endTime": self.ended,
            "input": self.input,
            "tools": self.tools,
            "parameters": self.parameters,
            "attributes": self.attributes,
            **{name: value for name, value in told.items() if value is not None},
        }


@dataclass
class Tape:
    """What one run says and hears."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    tools: dict[str, Any] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    _numbers: dict[bytes, int] = field(default_factory=dict)

    @contextmanager
    def exchange(self, body: Mapping[str, Any], *, provider: str, host: str, clock: Clock) -> Iterator[Exchange]:
        """Note a request as it is sent, and how it ends."""
        tools = [each["function"] for each in body.get("tools", ())]
        self.tools |= {each["name"]: _wellformed(each) for each in tools}
        exchange = Exchange(
            attempt=len(self.exchanges) + 1,
            started=rfc3339(clock.now()),
            input=[self._number(each) for each in body["messages"]],
            tools=[each["name"] for each in tools],
            parameters=_wellformed({name: value for name, value in body.items() if name not in ABOUT}),
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": provider,
                "gen_ai.request.model": body["model"],
                "gen_ai.request.max_tokens": body["max_tokens"],
                "server.address": host,
            },
        )
        self.exchanges.append(exchange)
        try:
            yield exchange
        except PraxisError as error:
            exchange.error = {"error.type": type(error).__name__, "message": _wellformed(str(error))}
            raise
        finally:
            exchange.ended = rfc3339(clock.now())

    def document(self, incident: IncidentUid | str, operation: Operation, prompt: str) -> dict[str, Any]:
        """The run as it is recorded; `prompt` is the version of the instructions."""
        return {
            "incidentUid": incident,
            "operation": str(operation),
            "promptVersion": prompt,
            "messages": self.messages,
            "tools": list(self.tools.values()),
            "exchanges": [each.document() for each in self.exchanges],
        }

    def _number(self, message: Mapping[str, Any]) -> int:
        kept = _wellformed(message)
        name = canonical(kept)
        if name not in self._numbers:
            self._numbers[name] = len(self.messages)
            self.messages.append(kept)
        return self._numbers[name]


def _wellformed(value: Any) -> Any:
    """The value with lone surrogates replaced: a model may write one, and no canonical JSON can hold it."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_wellformed(key): _wellformed(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_wellformed(each) for each in value]
    return value
