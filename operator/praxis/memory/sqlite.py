"""The embedded store: one SQLite file, `sqlite-vec` for the distance, `apsw` as the driver.

apsw carries its own SQLite: the standard library's `sqlite3` is often built without loadable extensions. Every row
holds its vector and the model that made it; the distance is computed over the rows of one namespace and one model,
which is exact and, for the thousands of incidents a team resolves, faster than a model call by orders of magnitude.

Several processes may use one file on one machine (WAL, busy time-out). WAL needs shared memory: the file must not lie
on a network file system.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw
import sqlite_vec

from praxis.api import bounds
from praxis.api.incident import Recalled
from praxis.errors import NeedsPerson, RetryLater
from praxis.memory.contract import Embedder, MemoryRecord
from praxis.memory.vectors import unit_vector

Answer = TypeVar("Answer")

APPLICATION_ID: Final = 0x50525853
"""`PRXS` in the file's header: says that a SQLite file is a memory of PRAXIS (PRAGMA application_id)."""
BUSY_TIMEOUT_MS: Final = 5000
"""How long a write waits for another process' write, milliseconds; then RetryLater."""

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
"""Script n makes version n + 1 (PRAGMA user_version) of version n. What was released is never edited, only added to."""

_INSERT = """
    INSERT INTO memories (id, incident, namespace, service, category, text, summary, resolved_at, model, vector)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
"""
_NEAREST = """
    SELECT id, incident, summary, 1 - vec_distance_cosine(vector, ?) AS score FROM memories
    WHERE namespace = ? AND model = ? AND id IS NOT ?
    ORDER BY score DESC, resolved_at DESC, id LIMIT ?
"""

_MENDED_BY_PEOPLE: Final[dict[type[apsw.Error], str]] = {
    apsw.CorruptError: "it is damaged: move it away (a new one is made) or restore it from a backup",
    apsw.NotADBError: "it is no SQLite file: move it away (a new one is made) or correct PRAXIS_MEMORY_PATH",
    apsw.FullError: "its disk is full: free space there",
    apsw.ReadOnlyError: "it may not be written: give the operator write access to it and to its directory",
    apsw.CantOpenError: "it cannot be opened: its directory must exist and be writable",
    apsw.PermissionsError: "it may not be used: give the operator access to it and to its directory",
    apsw.AuthError: "it may not be used: give the operator access to it and to its directory",
    apsw.ExtensionLoadingError: "sqlite-vec cannot be loaded: the installation is incomplete",
}


class SqliteMemory:
    """Remembers in one file. Opened at the first use, by one thread of its own, which alone touches it."""

    def __init__(self, *, path: Path, embedder: Embedder, embedding_model: str) -> None:
        self._path = path
        self._embedder = embedder
        self._model = embedding_model
        self._connection: apsw.Connection | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memory")

    async def remember(self, record: MemoryRecord) -> None:
        """Store a record, unless one of that id is there. Raises as `Memory.remember`."""
        if await self._run(lambda connection: _exists(connection, record.id)):
            return
        vector = await unit_vector(self._embedder, record.text)
        await self._run(lambda connection: _insert(connection, record, self._model, vector))

    async def recall(self, text: str, *, namespace: str, limit: int, exclude: str | None = None) -> Sequence[Recalled]:
        """The nearest records of that namespace, best first. Raises as `Memory.recall`."""
        wanted = min(limit, bounds.RECALLED)
        if wanted < 1:
            return []
        vector = await unit_vector(self._embedder, text)
        query = (sqlite_vec.serialize_float32(vector), namespace, self._model, exclude, wanted)
        return await self._run(lambda connection: [_recalled(row) for row in connection.execute(_NEAREST, query)])

    async def close(self) -> None:
        """Close the file; a later use would open it again, so let this be the last."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown()

    async def _run(self, work: Callable[[apsw.Connection], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._worked, work)

    def _worked(self, work: Callable[[apsw.Connection], Answer]) -> Answer:
        with _by_consequence(self._path):
            try:
                return work(self._opened())
            except (apsw.BusyError, apsw.LockedError):
                raise
            except apsw.Error:
                self._disconnect()  # what is wrong may be mended by putting another file there
                raise

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = apsw.Connection(str(self._path))
            try:
                _prepare(connection, self._path)
            except BaseException:
                connection.close(True)
                raise
            self._connection = connection
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(True)


@contextmanager
def _by_consequence(path: Path) -> Iterator[None]:
    """Map what the driver and the file system raise to who can do something about it."""
    try:
        yield
    except apsw.Error as error:
        mend = next((text for kind, text in _MENDED_BY_PEOPLE.items() if isinstance(error, kind)), None)
        if mend is not None:
            raise NeedsPerson(f"the memory {path}: {mend} ({error})") from error
        raise RetryLater(f"the memory {path}: {type(error).__name__}: {error}") from error
    except OSError as error:
        raise NeedsPerson(f"the memory {path}: its directory cannot be made: {error.strerror}") from error


def _prepare(connection: apsw.Connection, path: Path) -> None:
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)
    _migrate(connection, path)
    connection.pragma("journal_mode", "wal")
    # What MemoryStored says must survive a power cut; NORMAL may lose the last commits.
    connection.pragma("synchronous", "full")


def _migrate(connection: apsw.Connection, path: Path) -> None:
    """Bring the file to this version; one that is there already needs no lock, so that reading goes on while others
    write. IMMEDIATE, and looking again, as two processes may open a new file at once."""
    if _version(connection, path) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    with _committed(connection):
        for script in MIGRATIONS[_version(connection, path) :]:
            connection.execute(script)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", len(MIGRATIONS))


def _version(connection: apsw.Connection, path: Path) -> int:
    """The version of the file's schema, 0 for a new file; NeedsPerson when it is not one of ours, or newer."""
    version: int = connection.pragma("user_version")
    empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
    if not empty and connection.pragma("application_id") != APPLICATION_ID:
        raise NeedsPerson(f"{path} is an SQLite file of another program: correct PRAXIS_MEMORY_PATH")
    if version > len(MIGRATIONS):
        raise NeedsPerson(
            f"the memory {path} is of version {version}, this operator knows {len(MIGRATIONS)}: run the newer one"
        )
    return version


@contextmanager
def _committed(connection: apsw.Connection) -> Iterator[None]:
    """Commit the open transaction, or roll it back."""
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


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
