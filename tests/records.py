"""A recorder in memory, held to the same contract as the real stores; errors are queued."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from praxis.controller.journal import Journal
from praxis.errors import NeedsPerson
from praxis.recorder.contract import Record


class HeldRecords:
    """A `Recorder` of a dict; the next calls that store, or ask whether that can be done, raise what is queued."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Record] = {}
        self.errors: deque[Exception] = deque()

    async def put(self, records: Sequence[Record]) -> None:
        """Once for each incident and digest."""
        self._fail()
        for each in records:
            self.kept.setdefault((each.incident, each.digest), each)

    async def get(self, incident: str, digest: str) -> Record | None:
        """As stored."""
        found = self.kept.get((incident, digest))
        if found is not None and not found.intact:
            raise NeedsPerson(f"record {digest} is damaged")
        return found

    async def of(self, incident: str) -> Sequence[Record]:
        """In the order in which they came."""
        return [each for (uid, _), each in self.kept.items() if uid == incident]

    async def ready(self) -> None:
        """Unless an error is queued."""
        self._fail()

    async def close(self) -> None:
        """Nothing is held."""

    def _fail(self) -> None:
        if self.errors:
            raise self.errors.popleft()


def journal(recorder: HeldRecords | None = None) -> Journal:
    """A journal of its own, over these records."""
    return Journal(recorder=recorder or HeldRecords(), registry=CollectorRegistry())
