"""Keeps the full record of every trail entry, before the status write that binds it.

A record without its entry (the write was refused) is harmless. An entry without its record is a gap, which
`praxis trail verify` names. So what may wait waits: a model's decision is not written while it cannot be recorded, and
the incident stalls, with the reason. What may not wait is not held up: people's decisions, intents, outcomes, and what
follows from them are written whether or not the recorder works; what they bind can be read from status or from the
person's own object as well.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from prometheus_client import CollectorRegistry, Counter

from praxis.api.incident import Incident
from praxis.controller.status import recorded
from praxis.errors import RetryLater
from praxis.machine import Phase
from praxis.phases.contract import Transition
from praxis.recorder.contract import Record, Recorder

log = logging.getLogger(__name__)

LONGEST_SECONDS: Final = 30.0
"""How long what may wait keeps its worker waiting: without a bound, a few of them on a disk that hangs would hold all
workers, and with them the outcomes of other incidents."""
PATIENCE_SECONDS: Final = 2.0
"""How long what may not wait waits for the recorder; the dispatch window is open meanwhile, 15 s by default."""
DECIDED_BY_MODELS: Final = frozenset(
    {
        (Phase.NEW, Phase.TRIAGED),
        (Phase.TRIAGED, Phase.INVESTIGATED),
        (Phase.INVESTIGATED, Phase.AWAITING_APPROVAL),
    }
)


class Journal:
    """Records for one operator process."""

    def __init__(self, *, recorder: Recorder, registry: CollectorRegistry) -> None:
        self._recorder = recorder
        self._records = Counter(
            "praxis_trail_records",
            "Records of trail entries, by what became of them: kept, failed, or withheld as they look like secrets.",
            ["result"],
            registry=registry,
        )
        for result in ("kept", "failed", "withheld"):
            self._records.labels(result)

    async def keep(self, incident: Incident, transition: Transition) -> None:
        """Record what the entries of this transition bind.

        Raises:
            RetryLater, NeedsPerson: it is a model's decision and cannot be recorded; as well whatever else a recorder
                lets through. Nothing at all for what may not wait: an outcome counts for more than its record.
        """
        may_wait = (incident.status.phase, transition.to) in DECIDED_BY_MODELS
        records: list[Record] = []
        try:
            records = self._of(incident, transition)
            if records:
                await self._put(records, LONGEST_SECONDS if may_wait else PATIENCE_SECONDS)
        except Exception as error:
            self._records.labels("failed").inc(max(1, len(records)))
            log.warning("not recorded", extra={"incident": incident.key, "error": f"{type(error).__name__}: {error}"})
            if may_wait:
                raise
        else:
            self._records.labels("kept").inc(len(records))

    async def _put(self, records: list[Record], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._recorder.put(records)
        except TimeoutError as error:
            raise RetryLater(f"the flight recorder did not answer within {seconds:g} s") from error

    def _of(self, incident: Incident, transition: Transition) -> list[Record]:
        """The records, but for those that the redactor would change: under their digest nothing else may be kept."""
        kept = []
        for each in recorded(incident, transition):
            if not each.document:
                continue
            record = Record.of(incident.metadata.uid, each.kind, dict(each.document))
            if record.digest == each.digest:
                kept.append(record)
            else:
                self._records.labels("withheld").inc()
                log.warning("record withheld", extra={"incident": incident.key, "kind": str(each.kind)})
        return kept
