"""The embedded store: one SQLite file, `sqlite-vec` for the distance, `apsw` as the driver.

Every row holds its vector and the model that made it; the distance is computed over the rows of one namespace and one
model, which is exact and, for the thousands of incidents a team resolves, faster than a model call by orders of
magnitude.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import sqlite_vec

from praxis.api import bounds
from praxis.api.incident import Recalled
from praxis.memory.contract import Embedder, MemoryRecord
from praxis.memory.vectors import unit_vector
from praxis.sqlite_file import Format, SqliteFile

APPLICATION_ID: Final = 0x50525853
"""`PRXS` in the file's header: says that a SQLite file is a memory of PRAXIS (PRAGMA application_id)."""

MIGRATIONS: Final = (
    """
    CREATE TABLE memories (
        id TEXT PRIMARY KEY,
        incident TEXT NOT NULL,
        namespace TEXT NOT NULL,
        service TEXT NOT NULL,
        category TEXT NOT NULL,
        text TEXT NOT NULL,
        summary TEXT NOT NULL,
        resolved_at TEXT NOT NULL,
        model TEXT NOT NULL,
        vector BLOB NOT NULL
    ) STRICT;
    CREATE INDEX memories_compared ON memories (namespace, model);
    """,
)
_INSERT = """
    INSERT INTO memories (id, incident, namespace, service, category, text, summary, resolved_at, model, vector)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
"""
_NEAREST = """
    SELECT id, incident, summary, 1 - vec_distance_cosine(vector, ?) AS score FROM memories
    WHERE namespace = ? AND model = ? AND id IS NOT ?
    ORDER BY score DESC, resolved_at DESC, id LIMIT ?
"""

FORMAT: Final = Format(
    name="memory", setting="PRAXIS_MEMORY_PATH", application_id=APPLICATION_ID, migrations=MIGRATIONS
)


class SqliteMemory:
    """Remembers in one file."""

    def __init__(self, *, path: Path, embedder: Embedder, embedding_model: str) -> None:
        self._file = SqliteFile(path=path, form=FORMAT, extend=_with_vectors)
        self._embedder = embedder
        self._model = embedding_model

    async def remember(self, record: MemoryRecord) -> None:
        """Store a record, unless one of that id is there. Raises as `Memory.remember`."""
        if await self._file.run(lambda connection: _exists(connection, record.id)):
            return
        vector = await unit_vector(self._embedder, record.text)
        await self._file.run(lambda connection: _insert(connection, record, self._model, vector))

    async def recall(self, text: str, *, namespace: str, limit: int, exclude: str | None = None) -> Sequence[Recalled]:
        """The nearest records of that namespace, best first. Raises as `Memory.recall`."""
        wanted = min(limit, bounds.RECALLED)
        if wanted < 1:
            return []
        vector = await unit_vector(self._embedder, text)
        query = (sqlite_vec.serialize_float32(vector), namespace, self._model, exclude, wanted)
        return await self._file.run(lambda connection: [_recalled(row) for row in connection.execute(_NEAREST, query)])

    async def close(self) -> None:
        """Close the file; a later use would open it again, so let this be the last."""
        await self._file.close()


def _with_vectors(connection: apsw.Connection) -> None:
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)


def _exists(connection: apsw.Connection, id_: str) -> bool:
    return connection.execute("SELECT 1 FROM memories WHERE id = ?", (id_,)).fetchone() is not None


def _insert(connection: apsw.Connection, record: MemoryRecord, model: str, vector: list[float]) -> None:
    connection.execute(
        _INSERT,
        (
            record.id,
            record.incident,
            record.namespace,
            record.service,
            record.category,
            record.text,
            record.summary,
            record.resolved_at,
            model,
            sqlite_vec.serialize_float32(vector),
        ),
    )


def _recalled(row: tuple[Any, ...]) -> Recalled:
    id_, incident, summary, score = row
    # Rounding can carry the cosine of two like vectors past 1.
    return Recalled(id=id_, incident=incident, summary=summary, score=max(-1.0, min(1.0, score)))
