"""What several phases say in the same words: an alert that cleared by itself, and what the models have cost."""

from __future__ import annotations

from praxis.api.incident import Incident, Result, Usage
from praxis.api.reasons import Reason
from praxis.machine import Phase
from praxis.phases.contract import Transition


def cleared(incident: Incident) -> Transition:
    """Nothing fires any more, and no action is under way or being observed: closed.

    An earlier plan may have been applied, too late to be called what helped; then nobody is told that nothing was done.
    """
    applied = any(step.outcome is not None and step.outcome.result is Result.APPLIED for step in incident.status.steps)
    before = "another action was taken; an earlier plan's was applied" if applied else "anything was done"
    return Transition(
        to=Phase.CLOSED,
        reason=Reason.SELF_RESOLVED,
        message=f"all {len(incident.spec.alerts)} alerts cleared before {before}",
    )


def added(incident: Incident, usage: Usage) -> Usage:
    """The incident's usage with an answer's added."""
    return total(incident.status.usage or Usage(), usage)


def total(before: Usage, more: Usage) -> Usage:
    """The sum of two usages."""
    return Usage(
        model_calls=before.model_calls + more.model_calls,
        input_tokens=before.input_tokens + more.input_tokens,
        output_tokens=before.output_tokens + more.output_tokens,
        cost_micro_usd=before.cost_micro_usd + more.cost_micro_usd,
    )
