"""How an outcome is written down: once, with its trail entry, never changing another step."""

from __future__ import annotations

from collections.abc import Sequence

from praxis.actions.contract import Verdict
from praxis.api.incident import EntryKind, Incident, Instance, Outcome, Result, Step
from praxis.api.reasons import Reason
from praxis.clock import rfc3339
from praxis.machine import Phase
from praxis.phases.contract import Record, Tools, Transition


def concluded(
    tools: Tools, result: Result, reason: Reason, message: str, *, proof: str = "", after: Sequence[Instance] = ()
) -> Outcome:
    """An outcome, concluded by this process now."""
    return Outcome(
        result=result,
        reason=reason,
        message=message[:1024],
        proof=proof[:1024],
        instances_after=list(after),
        writer=tools.writer,
        time=rfc3339(tools.clock.now()),
    )


def believed(tools: Tools, verdict: Verdict) -> Outcome:
    """What a verdict comes to on a request that may have left: Applied by proof, and Unknown in every other case."""
    applied = verdict.result is Result.APPLIED and verdict.proof != ""
    result = Result.APPLIED if applied else Result.UNKNOWN
    # The reason of a verdict that is not believed would contradict the outcome that it stands beside.
    reason = verdict.reason if result is verdict.result else Reason.NOT_PROVEN
    return concluded(tools, result, reason, verdict.message, proof=verdict.proof, after=verdict.after)


def replaced(incident: Incident, step: Step) -> Transition:
    """The write that gives a stored step its outcome."""
    assert step.outcome is not None
    steps = [
        step if (each.revision, each.action) == (step.revision, step.action) else each for each in incident.status.steps
    ]
    return Transition(
        to=Phase.EXECUTING,
        reason=Reason(step.outcome.reason),
        message=f"{step.outcome.result}: {step.outcome.message}"[:1024],
        changes={"steps": steps},
        records=[Record(EntryKind.OUTCOME_RECORDED, Reason(step.outcome.reason), document=step.dump())],
    )
