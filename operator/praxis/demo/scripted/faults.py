"""How the scripted model misbehaves when it is told to: what a real service or a real model has been seen to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from praxis.demo.scripted.reading import Shown, Task
from praxis.demo.scripted.rules import said


class FaultKind(StrEnum):
    """What goes wrong."""

    # the model's answer
    INVALID_JSON = "invalid-json"
    FENCED_JSON = "fenced-json"
    DUPLICATE_KEY = "duplicate-key"
    WRONG_SCHEMA = "wrong-schema"
    EMPTY = "empty"
    CUT = "cut"
    REFUSAL = "refusal"
    UNKNOWN_ACTION = "unknown-action"
    WRONG_TIER = "wrong-tier"
    TWO_REAL_ACTIONS = "two-real-actions"
    FOREIGN_TARGET = "foreign-target"
    FOREIGN_EVIDENCE = "foreign-evidence"
    OBEY_INJECTION = "obey-injection"
    ENDLESS_TOOLS = "endless-tools"
    UNKNOWN_TOOL = "unknown-tool"
    # the service's answer
    FOREIGN_MODEL = "foreign-model"
    NO_MODEL = "no-model"
    NO_USAGE = "no-usage"
    NO_CHOICES = "no-choices"
    ERROR_IN_BODY = "error-in-body"
    CONTENT_FILTER = "content-filter"
    HTML = "html"
    HUGE = "huge"
    # the service's errors
    THROTTLE = "throttle"
    SERVER_ERROR = "server-error"
    UNAUTHORIZED = "unauthorized"
    ARREARAGE = "arrearage"
    DATA_INSPECTION = "data-inspection"
    TOO_LONG = "too-long"
    NO_JSON_SCHEMA = "no-json-schema"
    NO_RESPONSE_FORMAT = "no-response-format"
    NO_THINKING = "no-thinking"
    REDIRECT = "redirect"
    # the connection
    DROP = "drop"
    HANG = "hang"
    # embeddings
    SHORT_VECTOR = "short-vector"
    MISSING_VECTOR = "missing-vector"


ANSWERS = frozenset(
    {
        FaultKind.INVALID_JSON, FaultKind.FENCED_JSON, FaultKind.DUPLICATE_KEY, FaultKind.WRONG_SCHEMA, FaultKind.EMPTY,
        FaultKind.UNKNOWN_ACTION, FaultKind.WRONG_TIER, FaultKind.TWO_REAL_ACTIONS, FaultKind.FOREIGN_TARGET,
        FaultKind.FOREIGN_EVIDENCE, FaultKind.OBEY_INJECTION,
    }
)  # fmt: skip
"""Those that spoil the text of an answer."""
PLAN_ONLY = frozenset(
    {
        FaultKind.UNKNOWN_ACTION, FaultKind.WRONG_TIER, FaultKind.TWO_REAL_ACTIONS, FaultKind.FOREIGN_TARGET,
        FaultKind.OBEY_INJECTION,
    }
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """A fault and when it shows: in the next `times` requests (None: in all) of `task` (None: of any).

    `after` is the Retry-After of a throttle, seconds; None sends none.
    """

    kind: FaultKind
    times: int | None = 1
    task: str | None = None
    after: float | None = None

    def fits(self, task: str, *, answering: bool) -> bool:
        """Whether it shows in a request of this task; what spoils an answer waits for one."""
        if self.kind in ANSWERS and not answering:
            return False
        if self.kind in PLAN_ONLY and task != Task.DRAFT:
            return False
        if self.kind is FaultKind.FOREIGN_EVIDENCE and task != Task.DIAGNOSE:
            return False
        return self.task is None or self.task == task


@dataclass
class FaultQueue:
    """The faults to come, first come first shown."""

    waiting: list[Fault] = field(default_factory=list)

    def add(
        self, kind: FaultKind | str, *, times: int | None = 1, task: str | None = None, after: float | None = None
    ) -> None:
        """Queue a fault. Raises ValueError for an unknown kind."""
        self.waiting.append(Fault(FaultKind(kind), times, task, after))

    def clear(self) -> None:
        """Behave from now on."""
        self.waiting.clear()

    def take(self, task: str, *, answering: bool) -> Fault | None:
        """The fault of this request, used up once."""
        for index, fault in enumerate(self.waiting):
            if fault.fits(task, answering=answering):
                if fault.times is not None:
                    self.waiting[index : index + 1] = [replace(fault, times=fault.times - 1)] if fault.times > 1 else []
                return fault
        return None


def spoiled(kind: FaultKind, document: dict[str, Any], shown: Shown) -> str:
    """The text of an answer with the fault in it."""
    text = json.dumps(document)
    match kind:
        case FaultKind.INVALID_JSON:
            return "Sure! Here is what I would do: " + text[:-1]
        case FaultKind.FENCED_JSON:
            return f"```json\n{json.dumps(document, indent=2)}\n```"
        case FaultKind.DUPLICATE_KEY:
            return text[:-1] + ', "summary": "a second summary"}'
        case FaultKind.WRONG_SCHEMA:
            return json.dumps({"verdict": "restart everything", "confidence": 11})
        case FaultKind.EMPTY:
            return ""
        case FaultKind.FOREIGN_EVIDENCE:
            claims = [{"text": said("Nobody saw this."), "evidence": ["e99"]}]
            return json.dumps({**document, "claims": claims, "confidence": "high"})
        case _:
            return json.dumps({**document, "actions": _spoiled_actions(kind, document["actions"], shown)})


def _spoiled_actions(kind: FaultKind, actions: list[dict[str, Any]], shown: Shown) -> list[dict[str, Any]]:
    first, rest = actions[0], actions[1:]
    match kind:
        case FaultKind.UNKNOWN_ACTION:
            return [{**first, "type": "delete_everything"}, *rest]
        case FaultKind.WRONG_TIER:
            return [{**first, "tier": "safe" if first["tier"] != "safe" else "dangerous"}, *rest]
        case FaultKind.FOREIGN_TARGET:
            return [{**first, "target": "payments-production"}, *rest]
        case FaultKind.TWO_REAL_ACTIONS:
            restart = {**first, "type": "restart_function", "tier": "safe", "parameters": {}}
            return [{**restart, "id": "restart-1"}, {**restart, "id": "restart-2"}]
        case _:
            return [{**first, **_obeyed(shown)}, *rest]


def _obeyed(shown: Shown) -> Mapping[str, Any]:
    """What a text in the data orders: the type and target that stand after `action=` and `target=`."""
    text = " ".join([shown.alert_text, *(each.excerpt for each in shown.observations)])
    ordered = {
        word.split("=", 1)[0]: word.split("=", 1)[1].strip(".,;\"'")
        for word in text.split()
        if word.startswith(("action=", "target="))
    }
    return {"type": ordered.get("action", "delete_everything"), "target": ordered.get("target", "everything")}
