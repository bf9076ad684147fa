"""Which tools the scripted model calls, from the tools it is offered and what it has seen so far."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from praxis.demo.scripted.reading import Shown
from praxis.demo.scripted.signals import usable

CALLS = 8
POD = re.compile(r"\b(?:pod/)?([a-z0-9](?:[a-z0-9-]*[a-z0-9])?-(?:[a-f0-9]{6,10}-)?[a-z0-9]{4,5})\b")
LISTED_POD = re.compile(r"([a-z0-9][a-z0-9.-]*) phase=")
TROUBLED = re.compile(r"OOMKilled|CrashLoop|Error|BackOff|restart", re.IGNORECASE)
QUERIES = (
    (re.compile(r"memory|oom|leak|heap", re.IGNORECASE), "process_resident_memory_bytes"),
    (re.compile(r"latenc|slow|p9[59]", re.IGNORECASE), "http_request_duration_seconds_sum"),
    (re.compile(r"error|5xx", re.IGNORECASE), "http_requests_errors_total"),
)


def next_calls(shown: Shown) -> list[tuple[str, str]]:
    """Tool names and JSON arguments; none when there is nothing more to look at."""
    calls = []
    for name, schema in shown.tools.items():
        arguments = None if name in shown.called else _arguments(name, schema, shown)
        if arguments is not None:
            calls.append((name, json.dumps(arguments, sort_keys=True)))
    return calls[:CALLS]


def _arguments(tool: str, schema: Mapping[str, Any], shown: Shown) -> dict[str, Any] | None:
    """Arguments for a tool, None while a required one is not known."""
    properties = schema.get("properties") or {}
    required = schema.get("required") or []
    arguments: dict[str, Any] = {}
    for name, kind in properties.items():
        value = _value(tool, name, kind, shown)
        if value is not None and (name in required or _telling(name)):
            arguments[name] = value
        elif name in required:
            return None
    return arguments


def _telling(name: str) -> bool:
    return any(word in name for word in ("query", "expr", "target", "function", "pod"))


def _value(tool: str, name: str, kind: Mapping[str, Any], shown: Shown) -> Any:
    targets = [str(each.get("name")) for each in shown.targets]
    if options := kind.get("enum"):
        return next((each for each in targets if each in options), options[0])
    if "target" in name or "function" in name or (name == "name" and "function" in tool):
        return targets[0] if targets else None
    if "pod" in name or (name == "name" and ("pod" in tool or "log" in tool)):
        return _pod(shown)
    if "namespace" in name:
        return shown.incident.get("namespace")
    if "query" in name or "expr" in name:
        return _query(shown)
    if name in ("name", "workload", "deployment", "service"):
        return shown.service or None
    return _number_or_time(name, kind, shown)


def _number_or_time(name: str, kind: Mapping[str, Any], shown: Shown) -> Any:
    starts = min((str(each.get("startsAt")) for each in shown.alerts), default=None)
    if name == "start":
        return starts
    if kind.get("type") in ("integer", "number"):
        return max(kind.get("minimum", 1), min(kind.get("maximum", 15), 15))
    return None


def _query(shown: Shown) -> str:
    metric = next((metric for pattern, metric in QUERIES if pattern.search(shown.alert_text)), "up")
    service = shown.service
    return f'{metric}{{service="{service}"}}' if re.fullmatch(r"[\w.-]+", service) else metric


def _pod(shown: Shown) -> str | None:
    """A pod that was seen, one in trouble first."""
    lines = [line for each in usable(shown) if "pod" in each.tool for line in each.excerpt.splitlines()]
    lines.sort(key=lambda line: not TROUBLED.search(line))
    found = [listed for line in lines if (listed := LISTED_POD.match(line) or POD.search(line))]
    return found[0][1] if found else None
