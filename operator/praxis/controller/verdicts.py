"""Verdicts on what people said, written to the status of their approvals and reconciliations. A verdict is final.

It follows what the stored incident says, never the other way round: whether a decision was acted on is in the trail, so
that a crash between the two writes changes nothing. What is said of an incident that is gone may yet free a target
(`approval.reconciliation.releases`), so a reconciliation without its incident stays without a verdict.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from praxis.api.approval import IncidentApproval, IncidentReconciliation, Verdict
from praxis.api.incident import Incident
from praxis.api.reasons import ConditionType
from praxis.approval.judgement import judge
from praxis.approval.reconciliation import judge_reconciliations
from praxis.approval.ruling import Ruling, undecided
from praxis.approval.validity import no_incident
from praxis.clock import Clock, rfc3339
from praxis.controller.cluster import KubeCluster
from praxis.controller.events import EventRecorder
from praxis.controller.metrics import Metrics
from praxis.controller.queue import Key
from praxis.errors import Refused
from praxis.kube import Kube, path_of
from praxis.settings import Quorum
from praxis.signing.decisions import checked

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
        found = await self._cluster.reconciliations_by_name(*key)
        if incident is None:
            await self._write_all(key, None, approvals, [no_incident(each) for each in approvals])
            return
        signatures = await checked(list(filter(undecided, approvals)), self._cluster.allowed_signers)
        judgement = judge(
            incident,
            approvals,
            now=self._clock.now(),
            server_now=server_now,
            quorum=self._quorum,
            signatures=signatures,
        )
        await self._write_all(key, incident, approvals, judgement.rulings)
        await self._write_all(key, incident, found, judge_reconciliations(incident, found).rulings)

    async def _write_all(
        self, key: Key, judged: Incident | None, statements: Sequence[Statement], rulings: Sequence[Ruling]
    ) -> None:
        by_uid = {each.metadata.uid: each for each in statements if each.status.verdict is None}
        due = [
            (by_uid[ruling.uid], ruling)
            for ruling in rulings
            if ruling.uid in by_uid and ruling.verdict is not None and not ruling.provisional
        ]
        if due and await self._stale(key, judged):
            return
        for statement, ruling in due:
            await self._write(statement, ruling)

    async def _stale(self, key: Key, judged: Incident | None) -> bool:
        """Whether the incident has moved on since it was read, so that what was listed later may speak of what is new.

        A verdict is final: an approval of the next plan must not be refused for not being on the former one.
        """
        now = await self._cluster.incident(*key)
        if now is None or judged is None:
            return now is not judged
        return (now.metadata.uid, now.status.head) != (judged.metadata.uid, judged.status.head)

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
