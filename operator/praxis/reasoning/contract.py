"""What the reasoning gives the phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from praxis.api import bounds
from praxis.api.incident import Classification, Evidence, Incident, Recalled, Usage
from praxis.api.plan import ActionType, Diagnosis, Tier
from praxis.api.target import RemediationTarget
from praxis.evidence.contract import Scope

Answer = TypeVar("Answer")


class ProposedAction(BaseModel):
    """An action as the model writes it; the catalogue and the phase check and pin it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    type: ActionType
    tier: Tier
    target: Annotated[str, Field(min_length=1, max_length=253)]
    parameters: Annotated[dict[str, str], Field(max_length=bounds.PARAMETERS)] = {}
    rollback: Annotated[str, Field(min_length=1, max_length=1024)]


class ProposedPlan(BaseModel):
    """A plan as the model writes it: validated, not yet pinned to targets as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    summary: Annotated[str, Field(min_length=1, max_length=1024)]
    rationale: Annotated[str, Field(max_length=4096)] = ""
    actions: Annotated[list[ProposedAction], Field(min_length=1, max_length=bounds.ACTIONS)]


@dataclass(frozen=True)
class Answered(Generic[Answer]):
    """An answer that held, what it cost, the model that gave it, by its own word; `run` is the record's digest."""

    answer: Answer
    usage: Usage
    model: str
    evidence: Sequence[Evidence] = field(default_factory=tuple)
    run: str | None = None


def spent_on(error: BaseException) -> Usage:
    """What the models had cost when an error ended their work: it counts against the budget like an answer."""
    usage = getattr(error, "usage", None)
    return usage if isinstance(usage, Usage) else Usage()


class Reasoner(Protocol):
    """Asks the models. Every method raises RetryLater (outage, throttle, a spent budget), NeedsPerson (key, billing) or
    InvalidAnswer (bounded attempts: what came did not hold, after one repair turn); each carries what it had cost by
    then, see `spent_on`."""

    async def classify(self, incident: Incident) -> Answered[Classification]:
        """What kind of incident it is (fast model)."""
        ...

    async def diagnose(self, scope: Scope, recalled: Sequence[Recalled]) -> Answered[Diagnosis]:
        """What is wrong (reasoning model, bounded tool loop); the answer carries the evidence that was gathered."""
        ...

    async def draft(self, incident: Incident, targets: Sequence[RemediationTarget]) -> Answered[ProposedPlan]:
        """A plan on the diagnosis, evidence, recalled memories and corrections that the incident's status holds."""
        ...
