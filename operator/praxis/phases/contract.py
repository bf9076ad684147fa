"""What a phase is given and what it gives back. A phase decides; it never writes.

    async def reconcile(incident: Incident, tools: Tools) -> Transition | Wait

The controller reads the incident fresh, calls the phase of its `status.phase`, and commits the Transition in one fenced
write. Only after that write's 2xx does the effect run that the Transition may carry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from praxis.actions.contract import Adapter
from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import IntentId
from praxis.api.incident import EntryKind, Guard, Incident
from praxis.api.reasons import ConditionType, Reason
from praxis.api.target import Holder, RemediationTarget
from praxis.clock import Clock
from praxis.digest import digest
from praxis.machine import Phase
from praxis.memory.contract import Memory
from praxis.reasoning.contract import Reasoner
from praxis.settings import OperatorSettings
from praxis.signing.signers import AllowedSigners


class Effect(Protocol):
    """What a Transition does once it is stored. It lives in memory only: nothing that is stored can bring it back, so
    neither a restart nor a second operator can repeat it."""

    @property
    def intent(self) -> IntentId:
        """The intent whose write carries it."""
        ...

    async def run(self, stored: Incident) -> Transition:
        """Carry it out; called once, after the 2xx of the write. Returns what is to be written then; never raises
        PraxisError: whatever happened is an outcome."""
        ...

    def never_sent(self, stored: Incident) -> Transition:
        """What is to be written when the write's answer was lost and it turned out to be stored: nothing was sent."""
        ...


@dataclass(frozen=True)
class Record:
    """A trail entry in the making; the writer numbers, times and links it.

    `document` is what it binds (`praxis.api.records`): the entry has its digest, the flight recorder the whole.
    """

    kind: EntryKind
    reason: Reason
    actor: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The digest of the document; empty when the entry binds none. Raises ValueError as `praxis.digest.digest`."""
        return digest(dict(self.document)) if self.document else ""


@dataclass(frozen=True)
class ConditionUpdate:
    """A condition as it should be; `status=None` removes it."""

    type: ConditionType
    status: bool | None
    reason: Reason
    message: str = ""


@dataclass(frozen=True)
class Transition:
    """One write of status, decided.

    `changes` maps field names of IncidentStatus to new values. A change of phase adds its own trail entry; `records`
    come before it.
    `then` makes the write test the resourceVersion too: what it does must rest on what was read.
    """

    to: Phase
    reason: Reason
    message: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    records: Sequence[Record] = ()
    conditions: Sequence[ConditionUpdate] = ()
    then: Effect | None = None


@dataclass(frozen=True)
class Wait:
    """Nothing to write about the phase now; look again after `seconds` (None: when something happens)."""

    seconds: float | None
    reason: Reason = Reason.PROGRESSING
    message: str = ""
    stalled: bool = False
    conditions: Sequence[ConditionUpdate] = ()


class Cluster(Protocol):
    """Consistent reads of PRAXIS' own resources, and the one compare-and-swap outside an Incident's status."""

    async def incident(self, namespace: str, name: str) -> Incident | None:
        """The incident as stored now, None when there is none."""
        ...

    async def approvals(self, incident: Incident) -> tuple[list[IncidentApproval], datetime | None]:
        """Every approval that names this incident's uid, and the API server's own time."""
        ...

    async def allowed_signers(self) -> AllowedSigners | None:
        """Who may sign with which key; None when the admins keep no such list."""
        ...

    async def reconciliations(self, namespace: str, incident_uid: str) -> list[IncidentReconciliation]:
        """Every reconciliation that names this incident, which may be gone."""
        ...

    async def targets(self, namespace: str) -> list[RemediationTarget]:
        """Every target declared in a namespace."""
        ...

    async def all_targets(self) -> list[RemediationTarget]:
        """Every target that the operator can see, to find two that name one function."""
        ...

    async def guards(self) -> list[Guard]:
        """The installed CRDs, policies and bindings.

        Raises:
            NeedsPerson: one is missing or differs from what this operator was built with (InstallationDiffers).
        """
        ...

    async def claim(self, target: RemediationTarget, holder: Holder) -> RemediationTarget:
        """Make `holder` the target's holder, if it is still as read.

        Raises:
            Superseded: somebody else was faster.
        """
        ...

    async def release(self, target: RemediationTarget) -> None:
        """Remove the holder, if the target is still as read. Raises Superseded."""
        ...


class Sightings(Protocol):
    """What this process knows of intents from its own life: when it first saw one, and which it surely never sent."""

    def first_seen(self, intent_id: str) -> float:
        """Seconds since boot, on this machine's clock; the first call for an intent sets it."""
        ...

    def never_sent(self, intent_id: str) -> bool:
        """Whether the answer to this intent's write was lost here, so that it was not acted on."""
        ...


@dataclass(frozen=True)
class Tools:
    """All that a phase may use."""

    settings: OperatorSettings
    clock: Clock
    writer: str
    cluster: Cluster
    reasoner: Reasoner
    memory: Memory
    adapter: Adapter
    sightings: Sightings


class Reconcile(Protocol):
    """The one function of a phase module."""

    async def __call__(self, incident: Incident, tools: Tools) -> Transition | Wait:
        """Decide what is next. Raises PraxisError: the incident then stays where it is."""
        ...
