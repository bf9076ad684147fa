"""What a rule is, and the phrases that the rules are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from praxis.api.incident import Result
from praxis.api.reasons import Reason
from praxis.machine import Phase


@dataclass(frozen=True)
class Rule:
    """A CEL rule and what a writer is told whom it refuses.

    `at` is the place in the object: names joined by dots, `[]` for each item of a list, empty for the whole object.
    """

    name: str
    at: str
    rule: str
    message: str
    message_expression: str | None = None

    def rendered(self) -> dict[str, str]:
        """An entry of `x-kubernetes-validations`."""
        entry = {"rule": self.rule, "message": self.message}
        return {**entry, "messageExpression": self.message_expression} if self.message_expression else entry


def literal(values: Sequence[str] | frozenset[str]) -> str:
    """A CEL list of strings, in a stable order."""
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


def entering(phase: Phase) -> str:
    """This write enters the phase."""
    return f"(self.phase == '{phase}' && oldSelf.phase != '{phase}')"


def leaving(phase: Phase, *destinations: Phase) -> str:
    """This write leads from the phase to one of the others."""
    return f"(oldSelf.phase == '{phase}' && self.phase in {literal(destinations)})"


def unchanged(*fields: str) -> str:
    """Each of these optional fields is as it was, absent or equal.

    CEL's optional types (`self.?field == oldSelf.?field`) would say it shorter, but the cost estimate takes them for
    unbounded, and the API server refuses the CRD.
    """
    return " && ".join(
        f"(has(self.{field}) ? has(oldSelf.{field}) && self.{field} == oldSelf.{field} : !has(oldSelf.{field}))"
        for field in fields
    )


FIRING = "(self.spec.truncatedAlerts > 0 || self.spec.alerts.exists(a, a.status == 'firing'))"
OLD_FIRING = FIRING.replace("self.", "oldSelf.")
CURRENT = "self.steps.filter(s, s.revision == self.plan.revision)"
"""The steps of the plan that stands."""
INTENTS = "steps.filter(s, has(s.intent)).size()"
PROPOSING = leaving(Phase.INVESTIGATED, Phase.AWAITING_APPROVAL)
LAPSED = (Reason.APPROVAL_EXPIRED, Reason.DRY_RUN_ONLY)
"""Reasons of a closed episode that answered nothing: the next alert opens another one."""
CLOSED = (Reason.SELF_RESOLVED, Reason.DISMISSED, *LAPSED)


def result_in(*results: Result) -> str:
    """The step `s` has one of these outcomes."""
    return f"(has(s.outcome) && s.outcome.result in {literal(results)})"
