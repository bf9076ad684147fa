"""Verdicts on what people said, written to the status of their approvals and reconciliations. A verdict is final.

It follows what the incident's own status says, never the other way round: whether a decision was acted on is in the
trail, so that a crash between the two writes changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from praxis.api.approval import IncidentApproval, IncidentReconciliation, Verdict
from praxis.api.incident import EntryKind, Incident
from praxis.api.reasons import ConditionType, Reason
from praxis.approval.judgement import judge
from praxis.approval.reconciliation import judge_reconciliations
from praxis.approval.ruling import Ruling
from praxis.clock import Clock, rfc3339
from praxis.controller.cluster import KubeCluster
from praxis.controller.events import EventRecorder
from praxis.controller.metrics import Metrics
from praxis.controller.queue import Key
from praxis.errors import Refused
from praxis.kube import Kube, path_of
from praxis.settings import Quorum

log = logging.getLogger(__name__)

Statement = IncidentApproval | IncidentReconciliation


class Verdicts:
    """Judges what has no verdict yet."""

    def __init__(
        self,
        *,
        kube: Kube,
        cluster: KubeCluster,
        clock: Clock,
        quorum: Quorum,
        events: EventRecorder,
        metrics: Metrics,
    ) -> None:
        self._kube = kube
        self._cluster = cluster
        self._clock = clock
        self._quorum = quorum
        self._events = events
        self._metrics = metrics

    async def settle(self, key: Key, incident: Incident | None) -> None:
        """Give every approval and reconciliation that names this incident its verdict, as far as there is one."""
        approvals, server_now = await self._cluster.approvals_by_name(*key)
        reconciliations = await self._cluster.reconciliations_by_name(*key)
        mine, strays = split(approvals, incident)
        if incident is not None:
            now = self._clock.now()
            judged = judge(incident, mine, now=now, server_now=server_now, quorum=self._quorum).rulings
            await self._write_all(mine, as_recorded(incident, mine, judged))
            ours, others = split(reconciliations, incident)
            found = judge_reconciliations(incident, ours).rulings
            await self._write_all(ours, as_recorded(incident, ours, found))
            await self._write_all(others, [stray(each) for each in others])
        else:
            await self._write_all(reconciliations, [stray(each) for each in reconciliations])
        await self._write_all(strays, [stray(each) for each in strays])

    async def _write_all(self, statements: Sequence[Statement], rulings: Sequence[Ruling]) -> None:
        by_uid = {each.metadata.uid: each for each in statements if each.status.verdict is None}
        for ruling in rulings:
            statement = by_uid.get(ruling.uid)
            if statement is not None and ruling.verdict is not None:
                await self._write(statement, ruling)

    async def _write(self, statement: Statement, ruling: Ruling) -> None:
        status = {
            "verdict": ruling.verdict,
            "reason": ruling.reason,
            "message": ruling.message[:1024],
            "conditions": [self._condition(statement, ruling)],
        }
        operations: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": statement.metadata.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": statement.metadata.resource_version},
            {"op": "add", "path": "/status", "value": status},
        ]
        path = path_of(type(statement), statement.metadata.namespace, statement.metadata.name, "status")
        try:
            await self._kube.json_patch(path, operations)
        except Refused as error:
            # Somebody else gave the verdict, or the object is gone; what stands is read the next time.
            log.info("verdict not written", extra={"approval": statement.key, "error": str(error)})
            return
        self._metrics.verdict(statement.kind, ruling)
        await self._events.record(
            statement, ruling.reason, ruling.message, once_per=str(ruling.verdict), action=str(ruling.verdict)
        )

    def _condition(self, statement: Statement, ruling: Ruling) -> dict[str, Any]:
        return {
            "type": ConditionType.ACCEPTED,
            "status": "True" if ruling.verdict is Verdict.ACCEPTED else "False",
            "reason": ruling.reason,
            "message": ruling.message[:1024],
            "lastTransitionTime": rfc3339(self._clock.now()),
            "observedGeneration": statement.metadata.generation,
        }


def split(statements: Sequence[Any], incident: Incident | None) -> tuple[list[Any], list[Any]]:
    """Those that name this very incident, and those that name another of the same name, or none."""
    uid = incident.metadata.uid if incident is not None else None
    return (
        [each for each in statements if each.spec.incident_ref.uid == uid],
        [each for each in statements if each.spec.incident_ref.uid != uid],
    )


def stray(statement: Statement) -> Ruling:
    """The refusal of what names an incident that is not there."""
    ref = statement.spec.incident_ref
    return Ruling(
        uid=statement.metadata.uid,
        name=statement.metadata.name,
        verdict=Verdict.REFUSED,
        reason=Reason.INCIDENT_NOT_FOUND,
        message=f"there is no incident {ref.name} with uid {ref.uid} in namespace {statement.metadata.namespace}",
    )


def as_recorded(incident: Incident, statements: Sequence[Statement], rulings: Sequence[Ruling]) -> list[Ruling]:
    """The rulings, but accepted wherever the trail shows that the statement was acted on."""
    acted_on = {
        entry.digest: entry
        for entry in incident.status.trail
        if entry.kind in {EntryKind.DECIDED, EntryKind.RECONCILED}
    }
    by_uid = {ruling.uid: ruling for ruling in rulings}
    for statement in statements:
        entry = acted_on.get(statement.record_digest)
        if entry is not None:
            by_uid[statement.metadata.uid] = Ruling(
                uid=statement.metadata.uid,
                name=statement.metadata.name,
                verdict=Verdict.ACCEPTED,
                reason=Reason.ACCEPTED,
                message=f"{entry.reason}: recorded in the incident's trail as entry {entry.seq}",
            )
    return list(by_uid.values())
