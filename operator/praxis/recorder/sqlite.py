"""The embedded store: one SQLite file of records by incident and digest.

Bounded by whole incidents, as a life with half its records proves little: those that were recorded to longest ago go
first, by age and by size, never the one that is being recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import apsw

from praxis.clock import Clock
from praxis.errors import NeedsPerson
from praxis.recorder.contract import Record
from praxis.sqlite_file import Format, SqliteFile, transaction

DAY_SECONDS: Final = 86_400
MAGIC: Final = b"SQLite format 3\0"
"""How every SQLite file begins (https://www.sqlite.org/fileformat.html §1.3.1)."""

FORMAT: Final = Format(
    name="flight recorder",
    setting="PRAXIS_RECORDER__PATH",
    application_id=0x50525852,  # PRXR
    migrations=(
        """
        CREATE TABLE incidents (
            uid TEXT PRIMARY KEY,
            bytes INTEGER NOT NULL,
            recorded_at REAL NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE records (
            incident TEXT NOT NULL REFERENCES incidents (uid) ON DELETE CASCADE,
            digest TEXT NOT NULL,
            kind TEXT NOT NULL,
            stored_at REAL NOT NULL,
            content BLOB NOT NULL,
            UNIQUE (incident, digest)
        ) STRICT;
        CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), at REAL NOT NULL) STRICT;
        """,
    ),
)

_INCIDENT = """
    INSERT INTO incidents (uid, bytes, recorded_at) VALUES (?, 0, ?)
    ON CONFLICT (uid) DO UPDATE SET recorded_at = excluded.recorded_at
"""
_INSERT = """
    INSERT INTO records (incident, digest, kind, stored_at, content) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (incident, digest) DO NOTHING
"""
_SELECT = "SELECT incident, kind, digest, content FROM records WHERE incident = ?"
_OLDEST = "SELECT uid, bytes FROM incidents WHERE uid IS NOT ? ORDER BY recorded_at, uid LIMIT 1"


class SqliteRecorder:
    """Records in one file; `max_bytes` of records at most, of incidents that were recorded to in the last `days`."""

    def __init__(self, *, path: Path, clock: Clock, max_bytes: int, days: float) -> None:
        self._file = SqliteFile(path=path, form=FORMAT, extend=_with_foreign_keys)
        self._clock = clock
        self._max_bytes = max_bytes
        self._days = days

    async def put(self, records: Sequence[Record]) -> None:
        """Store them, all or none. Raises as `Recorder`."""
        now = self._clock.now().timestamp()
        await self._file.run(lambda connection: self._stored(connection, records, now))

    async def get(self, incident: str, digest: str) -> Record | None:
        """A record of an incident. Raises as `Recorder`."""
        query = f"{_SELECT} AND digest = ?"
        row = await self._file.run(lambda connection: connection.execute(query, (incident, digest)).fetchone())
        if row is None:
            return None
        record = Record(*row)
        if not record.intact:
            raise NeedsPerson(f"record {digest} of incident {incident} is damaged: restore it from a backup")
        return record

    async def of(self, incident: str) -> Sequence[Record]:
        """All records of an incident. Raises as `Recorder`."""
        return await self._file.run(lambda connection: _of(connection, incident))

    async def ready(self) -> None:
        """Write something: a disk that is full is found by nothing less. Raises as `Recorder`."""
        now = self._clock.now().timestamp()
        await self._file.run(
            lambda connection: connection.execute(
                "INSERT OR REPLACE INTO probe (id, at) VALUES (1, ?)", (now,)
            ).fetchall()
        )

    async def close(self) -> None:
        """Close the file; let this be the last."""
        await self._file.close()

    def _stored(self, connection: apsw.Connection, records: Sequence[Record], now: float) -> None:
        with transaction(connection):
            for each in records:
                connection.execute(_INCIDENT, (each.incident, now))
                connection.execute(_INSERT, (each.incident, each.digest, each.kind, now, each.content))
                if connection.changes():
                    grown = "UPDATE incidents SET bytes = bytes + ? WHERE uid = ?"
                    connection.execute(grown, (len(each.content), each.incident))
            if records:
                self._forget(connection, keep=records[-1].incident, now=now)

    def _forget(self, connection: apsw.Connection, *, keep: str, now: float) -> None:
        """Delete whole incidents until both bounds hold."""
        aged = "DELETE FROM incidents WHERE recorded_at < ? AND uid IS NOT ?"
        connection.execute(aged, (now - self._days * DAY_SECONDS, keep))
        total = connection.execute("SELECT coalesce(sum(bytes), 0) FROM incidents").get
        while total > self._max_bytes and (oldest := connection.execute(_OLDEST, (keep,)).fetchone()):
            connection.execute("DELETE FROM incidents WHERE uid = ?", (oldest[0],))
            total -= oldest[1]


def records_in(path: Path, incident: str | None = None) -> list[Record]:
    """The records in a store's file, read only: of one incident, or of all; damaged ones too.

    Raises:
        OSError: there is no such file.
        NeedsPerson: it is no such store, or damaged.
    """
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise NeedsPerson(f"{path} is no SQLite file")
    try:
        connection = apsw.Connection(
            f"{path.absolute().as_uri()}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        try:
            if connection.pragma("application_id") != FORMAT.application_id:
                raise NeedsPerson(f"{path} is no flight recorder of PRAXIS")
            every = "SELECT incident, kind, digest, content FROM records ORDER BY rowid"
            return (
                [Record(*row) for row in connection.execute(every)] if incident is None else _of(connection, incident)
            )
        finally:
            connection.close(True)
    except apsw.Error as error:
        raise NeedsPerson(f"the flight recorder {path} cannot be read: {error}") from error


def _of(connection: apsw.Connection, incident: str) -> list[Record]:
    return [Record(*row) for row in connection.execute(f"{_SELECT} ORDER BY rowid", (incident,))]


def _with_foreign_keys(connection: apsw.Connection) -> None:
    connection.pragma("foreign_keys", True)
