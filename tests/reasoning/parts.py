"""What the reasoning tests share: a toolbox with scripted sources, a clock that does not wait, and a house to put up.

The model is the real scripted server over a real socket; nothing of praxis.reasoning is replaced.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry

from praxis.api.incident import Incident
from praxis.api.target import RemediationTarget
from praxis.demo.scripted_model import EMBEDDING, FAST, REASONING, ScriptedModel
from praxis.digest import digest
from praxis.evidence.contract import Observation, Scope, ToolSpec
from praxis.reasoning.client import ModelClient
from praxis.reasoning.reasoner import QwenReasoner
from praxis.settings import ModelSettings
from tests import builders
from tests.records import HeldRecords

NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
TOOLS = (
    ToolSpec("list_pods", "Pods of the namespace.", NOTHING),
    ToolSpec(
        "pod_logs",
        "The log of a pod.",
        {"type": "object", "properties": {"pod": {"type": "string"}}, "required": ["pod"]},
    ),
    ToolSpec(
        "function_status",
        "A function and its instances.",
        {"type": "object", "properties": {"target": {"type": "string"}}, "required": ["target"]},
    ),
)
LEAKING = {
    "list_pods": "NAME READY STATUS RESTARTS\ncheckout-7d9f8b6c5d-x2x4z 0/1 OOMKilled 5",
    "pod_logs": "12:00:01 heap usage 1.9 GiB of 2 GiB\n12:00:02 memory leak suspected in session cache",
    "function_status": "function checkout: state Active, 2 active instances",
}
QUIET = {
    "list_pods": "NAME READY STATUS RESTARTS\ncheckout-7d9f8b6c5d-x2x4z 1/1 Running 0",
    "pod_logs": "12:00:01 served",
    "function_status": "function checkout: state Active, 2 active instances",
}


class StillClock:
    """A clock that stands; sleeping is recorded, not done."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return builders.NOW

    def boottime(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@dataclass
class Sources:
    """A toolbox over fixed texts."""

    texts: Mapping[str, str] = field(default_factory=lambda: dict(LEAKING))
    calls: list[tuple[str, str]] = field(default_factory=list)
    tools: Sequence[ToolSpec] = TOOLS

    def specs(self) -> Sequence[ToolSpec]:
        return self.tools

    async def call(self, scope: Scope, name: str, arguments: str) -> Observation:
        self.calls.append((name, arguments))
        text = self.texts.get(name, f"error: there is no tool {name}")
        return Observation(
            query=f"{name} {arguments} in {scope.namespace}", excerpt=text, truncated=False, digest=digest(text)
        )


@dataclass
class House:
    """A scripted model and a reasoner that asks it."""

    model: ScriptedModel
    client: ModelClient
    reasoner: QwenReasoner
    sources: Sources
    clock: StillClock
    registry: CollectorRegistry
    records: HeldRecords

    def metric(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0

    def bodies(self) -> list[dict[str, Any]]:
        return [each.body for each in self.model.requests]


def settings(url: str, **changes: Any) -> ModelSettings:
    """Settings that ask the scripted model."""
    return ModelSettings(
        **{"base_url": url, "fast": FAST, "reasoning": REASONING, "embedding": EMBEDDING, "timeout": 10, **changes}
    )


@asynccontextmanager
async def house(
    *, sources: Sources | None = None, url: str | None = None, model: ScriptedModel | None = None, **changes: Any
) -> AsyncIterator[House]:
    """Put up a house; `changes` are model settings."""
    async with model or ScriptedModel() as asked:
        chosen, clock, registry = sources or Sources(), StillClock(), CollectorRegistry()
        configured = settings(url or asked.url, **changes)
        client = ModelClient(settings=configured, clock=clock, registry=registry, environment={})
        try:
            records = HeldRecords()
            reasoner = QwenReasoner(client=client, toolbox=chosen, settings=configured, clock=clock, recorder=records)
            yield House(asked, client, reasoner, chosen, clock, registry, records)
        finally:
            await client.close()


def incident(
    alertname: str = "MemoryHigh", summary: str = "memory of checkout grows without end", **status: Any
) -> Incident:
    """An incident in New with one alert."""
    alert = builders.alert(
        labels={"alertname": alertname, "service": "checkout", "severity": "critical"},
        annotations={"summary": summary},
    )
    return builders.incident(
        builders.Phase.NEW, spec={"alerts": [alert], "summary": f"{alertname}: checkout"}, **status
    )


def scope(of: Incident | None = None, *targets: RemediationTarget) -> Scope:
    """The scope of an incident, with the usual target."""
    return Scope(incident=of or incident(), targets=targets or (builders.target(),))


async def investigated(of: House, at: Incident, *targets: RemediationTarget) -> Incident:
    """The incident with the diagnosis and the evidence that the house comes to."""
    answered = await of.reasoner.diagnose(scope(at, *targets), at.status.recalled)
    return at.replace(status=at.status.replace(evidence=list(answered.evidence), diagnosis=answered.answer))


def blocks_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The data blocks of a request."""
    found: dict[str, Any] = {}
    for message in body["messages"]:
        parts = str(message["content"]).split('<data name="')[1:]
        for part in parts:
            name, rest = part.split('">\n', 1)
            found.setdefault(name, json.loads(rest.split("\n</data>", 1)[0]))
    return found
