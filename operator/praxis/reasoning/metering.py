"""What model calls cost and how they went: Prometheus metrics, and an incident's token budget.

Metric names follow Prometheus' conventions and the meaning of OpenTelemetry's GenAI metrics. The `model` label is the
configured id, so a server cannot make new series.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Histogram

from praxis.api.incident import Incident, Usage
from praxis.api.reasons import Reason
from praxis.errors import PraxisError, RetryLater

DURATION_BUCKETS = (0.01, 0.04, 0.16, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84)
"""OpenTelemetry's advice for gen_ai.client.operation.duration, thinned below and extended to the time-out."""


class Operation(StrEnum):
    """What a model is asked for."""

    CLASSIFY = "classify"
    DIAGNOSE = "diagnose"
    DRAFT = "draft"
    EMBED = "embed"


class CallOutcome(StrEnum):
    """How one call ended."""

    ANSWERED = "answered"
    FOREIGN_MODEL = "foreign_model"
    INVALID_ANSWER = "invalid_answer"
    PARAMETER_REFUSED = "parameter_refused"
    RETRY_LATER = "retry_later"
    NEEDS_PERSON = "needs_person"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Tokens:
    """The tokens of one answer; cached and reasoning tokens are part of input and output."""

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0


class ModelMetrics:
    """The metrics of the model client."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.calls = Counter(
            "praxis_model_calls", "Requests sent to a model.", ["model", "operation", "outcome"], registry=registry
        )
        self.tokens = Counter(
            "praxis_model_tokens",
            "Tokens sent (input) and received (output).",
            ["model", "direction"],
            registry=registry,
        )
        self.cached = Counter(
            "praxis_model_cached_input_tokens",
            "Input tokens that the service had cached.",
            ["model"],
            registry=registry,
        )
        self.reasoning = Counter(
            "praxis_model_reasoning_tokens", "Output tokens spent on thinking.", ["model"], registry=registry
        )
        self.cost = Counter(
            "praxis_model_cost_usd", "Money spent by list price, US dollars.", ["model"], registry=registry
        )
        self.fallbacks = Counter(
            "praxis_model_fallbacks",
            "Features given up, as the model refused them.",
            ["model", "feature"],
            registry=registry,
        )
        self.repairs = Counter(
            "praxis_model_repair_turns",
            "Answers that did not hold and were asked for again.",
            ["model", "operation"],
            registry=registry,
        )
        self.duration = Histogram(
            "praxis_model_call_duration_seconds", "Time to a model's answer.", ["model", "operation"],
            registry=registry, buckets=DURATION_BUCKETS,
        )  # fmt: skip

    def prepare(self, model: str, operations: tuple[Operation, ...]) -> None:
        """Set the series of a model to zero, so that a first failure is an increase."""
        for operation in operations:
            self.duration.labels(model, operation)
            for outcome in CallOutcome:
                self.calls.labels(model, operation, outcome)
        for direction in ("input", "output"):
            self.tokens.labels(model, direction)

    def spent(self, model: str, tokens: Tokens, cost_micro_usd: int | None) -> None:
        """Count an answer's tokens and money."""
        self.tokens.labels(model, "input").inc(tokens.input)
        self.tokens.labels(model, "output").inc(tokens.output)
        self.cached.labels(model).inc(tokens.cached)
        self.reasoning.labels(model).inc(tokens.reasoning)
        if cost_micro_usd is not None:
            self.cost.labels(model).inc(cost_micro_usd / 1_000_000)


@dataclass
class Ledger:
    """What one piece of work spends of its incident's budget."""

    before: Usage
    limit: int
    spent: Usage = field(default_factory=Usage)

    @classmethod
    def of(cls, incident: Incident, limit: int) -> Ledger:
        """The ledger of an incident, with what it has cost so far."""
        return cls(before=incident.status.usage or Usage(), limit=limit)

    def require(self) -> None:
        """Raises RetryLater (BudgetSpent) when the incident's tokens are used up: it stalls, nothing more is asked."""
        used = sum(each.input_tokens + each.output_tokens for each in (self.before, self.spent))
        if used >= self.limit:
            raise RetryLater(
                f"the models have used {used} tokens for this incident, the limit is {self.limit}; "
                "raise PRAXIS_MODELS__TOKENS_PER_INCIDENT or handle it by hand",
                reason=Reason.BUDGET_SPENT,
            )

    def add(self, usage: Usage) -> None:
        """Count an answer, whether or not it holds."""
        self.spent = Usage(
            model_calls=self.spent.model_calls + usage.model_calls,
            input_tokens=self.spent.input_tokens + usage.input_tokens,
            output_tokens=self.spent.output_tokens + usage.output_tokens,
            cost_micro_usd=self.spent.cost_micro_usd + usage.cost_micro_usd,
        )

    @contextmanager
    def billed(self) -> Iterator[None]:
        """Whatever error ends the work carries what it has cost until then, as `usage`."""
        try:
            yield
        except PraxisError as error:
            error.usage = self.spent
            raise
