"""What the scripted model is shown: the task, the data blocks, the observations, and the tools that are offered."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

TASK = re.compile(r"^Task: (?P<task>[a-z]+)$", re.MULTILINE)
BLOCK = re.compile(r'<data name="(?P<name>[a-z]+)">\n(?P<json>[^\n]*)\n</data>')
EVERY_STRING_LIMIT = 2_000


class Task(StrEnum):
    """What it is asked to do."""

    CLASSIFY = "classify"
    DIAGNOSE = "diagnose"
    DRAFT = "draft"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Observed:
    """An observation, from a tool result or from the evidence of the incident."""

    id: str
    tool: str
    query: str
    excerpt: str

    @property
    def failed(self) -> bool:
        """Whether the source could not be read."""
        return self.excerpt.startswith("error:")


@dataclass(frozen=True)
class Shown:
    """One request, read."""

    task: Task
    blocks: Mapping[str, Any]
    observations: tuple[Observed, ...]
    tools: Mapping[str, Mapping[str, Any]]
    called: frozenset[str]

    @property
    def incident(self) -> Mapping[str, Any]:
        """The incident block; empty when there is none."""
        return _mapping(self.blocks.get("incident"))

    @property
    def alerts(self) -> list[Mapping[str, Any]]:
        """The alerts."""
        return [_mapping(each) for each in _list(self.incident.get("alerts"))]

    @property
    def service(self) -> str:
        """The service that the labels name; empty when they name none."""
        return self.label("service", "app", "function", "job", "deployment")

    @property
    def targets(self) -> list[Mapping[str, Any]]:
        """The targets that a plan may name."""
        return [_mapping(each) for each in _list(self.blocks.get("targets"))]

    @property
    def memories(self) -> list[Mapping[str, Any]]:
        """What was recalled."""
        return [_mapping(each) for each in _list(self.blocks.get("memories"))]

    @property
    def corrections(self) -> list[str]:
        """What people asked to be changed."""
        return [str(each) for each in _list(self.blocks.get("corrections"))]

    @property
    def earlier(self) -> Mapping[str, Any]:
        """The last plan and how it ended; empty when there is none."""
        return _mapping(self.blocks.get("earlier"))

    def label(self, *names: str) -> str:
        """The first value that any alert has for one of these labels."""
        for name in names:
            for alert in self.alerts:
                if value := _mapping(alert.get("labels")).get(name):
                    return str(value)
        return ""

    @property
    def alert_text(self) -> str:
        """All that the alerts say."""
        return " ".join(_strings([self.alerts, self.incident.get("summary")]))


def read(request: Mapping[str, Any]) -> Shown:
    """Read a chat-completions request; what is missing or odd is simply not there."""
    messages = [_mapping(each) for each in _list(request.get("messages"))]
    texts = [(str(each.get("role")), str(each.get("content") or "")) for each in messages]
    found = TASK.search("\n".join(text for role, text in texts if role == "system"))
    task = found["task"] if found else ""
    blocks: dict[str, Any] = {}
    observations: list[Observed] = []
    for role, text in texts:
        for name, value in _blocks(text):
            if role == "tool" and name == "observation":
                observations.append(_observed(_mapping(value)))
            elif role == "user":
                blocks.setdefault(name, value)
    observations += [_observed(_mapping(each)) for each in _list(blocks.get("evidence"))]
    return Shown(
        task=Task(task) if task in set(Task) else Task.UNKNOWN,
        blocks=blocks,
        observations=tuple(observations),
        tools=_tools(request.get("tools")),
        called=frozenset(_called(messages)),
    )


def _blocks(text: str) -> list[tuple[str, Any]]:
    blocks = []
    for found in BLOCK.finditer(text):
        try:
            blocks.append((found["name"], json.loads(found["json"])))
        except ValueError:
            continue
    return blocks


def _observed(document: Mapping[str, Any]) -> Observed:
    return Observed(**{name: str(document.get(name) or "") for name in ("id", "tool", "query", "excerpt")})


def _tools(value: Any) -> dict[str, Mapping[str, Any]]:
    functions = [_mapping(_mapping(each).get("function")) for each in _list(value)]
    return {str(each.get("name")): _mapping(each.get("parameters")) for each in functions}


def _called(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    calls = [_mapping(call) for message in messages for call in _list(message.get("tool_calls"))]
    return [str(_mapping(call.get("function")).get("name")) for call in calls]


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value[:EVERY_STRING_LIMIT]]
    if isinstance(value, Mapping):
        return [text for held in value.values() for text in _strings(held)]
    return [text for held in value for text in _strings(held)] if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
