"""What a memory can do, whatever store is behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from praxis.api.incident import Recalled

TEXT: Final = 6000
"""Longest text that is embedded, characters. text-embedding-v4 takes 8,192 tokens; a character can be one."""
SUMMARY: Final = 1024
"""Longest summary, characters: what `Recalled.summary` holds."""
NAME: Final = 253
"""Longest id or name, characters."""


@dataclass(frozen=True)
class MemoryRecord:
    """One resolved incident, as it is remembered. `id` is the incident's uid: writing it twice changes nothing.

    Raises:
        ValueError: a field is longer than its bound; once stored, nothing could read it back into a status.
    """

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

    def __post_init__(self) -> None:
        names = (self.id, self.incident, self.namespace, self.service, self.category, self.resolved_at)
        if not self.id or len(self.text) > TEXT or len(self.summary) > SUMMARY or max(map(len, names)) > NAME:
            raise ValueError("a memory record exceeds its bounds")


class Memory(Protocol):
    """Remembers and recalls."""

    async def remember(self, record: MemoryRecord) -> None:
        """Store a record; a record of that id that is there already stays as it is.

        Raises:
            RetryLater: the store or the embedding model could not be asked.
            NeedsPerson: the store is damaged, full or of another version; the message says what to do.
            InvalidAnswer: the embedding model gave no usable vector.
        """
        ...

    async def recall(self, text: str, *, namespace: str, limit: int, exclude: str | None = None) -> Sequence[Recalled]:
        """The nearest records of that namespace, best first, at most `limit` and RECALLED; never the one `exclude`d.

        Only records whose vector the same embedding model made are compared. Raises as `remember`.
        """
        ...

    async def close(self) -> None:
        """Release the store."""
        ...


class Embedder(Protocol):
    """Turns text into vectors."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of EMBEDDING_DIMENSIONS floats for each text. Raises RetryLater, NeedsPerson, InvalidAnswer."""
        ...
