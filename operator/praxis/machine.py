"""The phases of an incident and the one table of transitions between them.

Everything that knows an edge takes it from `TRANSITIONS`: the status writer's check, the CEL rule with which the API
server refuses any other edge, the diagram in the README, and the tests. This module does no I/O and knows nothing of
Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Phase(StrEnum):
    """Where an incident stands; the value of `status.phase`."""

    NEW = "New"
    TRIAGED = "Triaged"
    INVESTIGATED = "Investigated"
    AWAITING_APPROVAL = "AwaitingApproval"
    EXECUTING = "Executing"
    OBSERVING = "Observing"
    RESOLVED = "Resolved"
    CLOSED = "Closed"
    FAILED = "Failed"
    RECONCILIATION_REQUIRED = "ReconciliationRequired"


TRANSITIONS: Mapping[Phase, tuple[Phase, ...]] = MappingProxyType(
    {
        Phase.NEW: (Phase.TRIAGED, Phase.CLOSED, Phase.FAILED),
        Phase.TRIAGED: (Phase.INVESTIGATED, Phase.CLOSED, Phase.FAILED),
        Phase.INVESTIGATED: (Phase.AWAITING_APPROVAL, Phase.CLOSED, Phase.FAILED),
        Phase.AWAITING_APPROVAL: (Phase.EXECUTING, Phase.INVESTIGATED, Phase.CLOSED, Phase.FAILED),
        Phase.EXECUTING: (Phase.OBSERVING, Phase.INVESTIGATED, Phase.CLOSED, Phase.RECONCILIATION_REQUIRED),
        Phase.OBSERVING: (Phase.RESOLVED, Phase.INVESTIGATED),
        Phase.RESOLVED: (),
        Phase.CLOSED: (),
        Phase.FAILED: (),
        Phase.RECONCILIATION_REQUIRED: (),
    }
)
TERMINAL = frozenset(phase for phase, following in TRANSITIONS.items() if not following)


def allows(source: Phase, destination: Phase) -> bool:
    """Whether the table has this edge; staying in a phase is no transition and always allowed."""
    return source == destination or destination in TRANSITIONS[source]


def transition_rule() -> str:
    """The table as a CEL expression over `self` and `oldSelf`, both a status."""
    edges = " || ".join(
        f"(oldSelf.phase == '{source}' && self.phase in [{', '.join(repr(str(each)) for each in following)}])"
        for source, following in TRANSITIONS.items()
        if following
    )
    return f"self.phase == oldSelf.phase || {edges}"


def mermaid() -> str:
    """The table as a Mermaid state diagram, which the README shows."""
    lines = ["stateDiagram-v2", f"    [*] --> {Phase.NEW}"]
    lines += [f"    {source} --> {each}" for source, following in TRANSITIONS.items() for each in following]
    lines += [f"    {phase} --> [*]" for phase in TRANSITIONS if phase in TERMINAL]
    return "\n".join(lines)
