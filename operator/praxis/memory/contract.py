"""What a memory can do, whatever store is behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from praxis.api.incident import Recalled


@dataclass(frozen=True)
class MemoryRecord:
    """One resolved incident, as it is remembered. `id` is the incident's uid: writing it twice changes nothing."""

    id: str
    incident: str
    namespace: str
    service: str
    category: str
    text: str
    """What is embedded: alerts and diagnosis, redacted."""
    summary: str
    """What is shown when it is recalled: what happened and what helped."""
    resolved_at: str


class Memory(Protocol):
    """Remembers and recalls."""

    async def remember(self, record: MemoryRecord) -> None:
        """Store a record; a record of that id that is there already stays as it is. Raises RetryLater."""
        ...

    async def recall(self, text: str, *, namespace: str, limit: int) -> Sequence[Recalled]:
        """The nearest records of that namespace, best first. Raises RetryLater."""
        ...

    async def close(self) -> None:
        """Release the store."""
        ...


class Embedder(Protocol):
    """Turns text into vectors."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of EMBEDDING_DIMENSIONS floats for each text. Raises RetryLater, NeedsPerson, InvalidAnswer."""
        ...
