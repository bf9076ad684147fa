"""One SQLite file of an embedded store: opened at its first use, migrated, its failures told by who can mend them.

apsw carries its own SQLite: the standard library's `sqlite3` is often built without loadable extensions. Several
processes may use one file on one machine (WAL, busy time-out). WAL needs shared memory: the file must not lie on a
network file system.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import apsw

from praxis.errors import NeedsPerson, RetryLater

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

ANSWER_SECONDS: Final = 30.0
"""How long the file's thread may take, what it was asked before included; then RetryLater: a disk may hang for ever."""
CLOSE_SECONDS: Final = 3.0
"""How long closing waits for it: with what else a stop waits for, below a pod's grace period."""
BUSY_TIMEOUT_MS: Final = 5000
"""How long a write waits for another process' write, milliseconds; then RetryLater."""

_MENDED_BY_PEOPLE: Final[dict[type[apsw.Error], str]] = {
    apsw.CorruptError: "it is damaged: move it away (a new one is made) or restore it from a backup",
    apsw.NotADBError: "it is no SQLite file: move it away (a new one is made) or correct {setting}",
    apsw.FullError: "its disk is full: free space there",
    apsw.ReadOnlyError: "it may not be written: give the operator write access to it and to its directory",
    apsw.CantOpenError: "it cannot be opened: its directory must exist and be writable",
    apsw.PermissionsError: "it may not be used: give the operator access to it and to its directory",
    apsw.AuthError: "it may not be used: give the operator access to it and to its directory",
    apsw.ExtensionLoadingError: "sqlite-vec cannot be loaded: the installation is incomplete",
}


@dataclass(frozen=True)
class Format:
    """What a file of one store is.

    `name` and `setting` are what messages call it. `application_id` is kept in the file's header (PRAGMA
    application_id). Script n of `migrations` makes version n + 1 (PRAGMA user_version) of version n: what was released
    is never edited, only added to.
    """

    name: str
    setting: str
    application_id: int
    migrations: Sequence[str]


class SqliteFile:
    """One file, touched by one thread of its own."""

    def __init__(
        self,
        *,
        path: Path,
        form: Format,
        extend: Callable[[apsw.Connection], None] | None = None,
    ) -> None:
        self._path = path
        self._form = form
        self._extend = extend
        self._connection: apsw.Connection | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=form.name.replace(" ", "-"))

    async def run(self, work: Callable[[apsw.Connection], Answer]) -> Answer:
        """Do it on the file's thread.

        Raises:
            RetryLater: another process writes, or the file could not be asked.
            NeedsPerson: the file is damaged, full, of another version or of another program; the message says what to
                do.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._thread, self.work, work)
        except TimeoutError as error:
            raise RetryLater(
                f"the {self._form.name} {self._path} did not answer within {ANSWER_SECONDS:g} s"
            ) from error

    async def close(self) -> None:
        """Close the file; a later use fails, so let this be the last. A thread that hangs is left behind."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        except TimeoutError:
            log.warning("not closed: it does not answer", extra={"file": str(self._path)})
        self._thread.shutdown(wait=False, cancel_futures=True)

    def work(self, work: Callable[[apsw.Connection], Answer]) -> Answer:
        """Do it on this thread, for who has no loop; never beside `run`. Raises as `run`."""
        with self._by_consequence():
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
                self._prepare(connection)
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
    def _by_consequence(self) -> Iterator[None]:
        """Map what the driver and the file system raise to who can do something about it."""
        what = f"the {self._form.name} {self._path}"
        try:
            yield
        except apsw.Error as error:
            mend = next((text for kind, text in _MENDED_BY_PEOPLE.items() if isinstance(error, kind)), None)
            if mend is not None:
                raise NeedsPerson(f"{what}: {mend.format(setting=self._form.setting)} ({error})") from error
            raise RetryLater(f"{what}: {type(error).__name__}: {error}") from error
        except OSError as error:
            raise NeedsPerson(f"{what}: its directory cannot be made: {error.strerror}") from error

    def _prepare(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        if self._extend is not None:
            self._extend(connection)
        self._migrate(connection)
        connection.pragma("journal_mode", "wal")
        # What was said to be stored must survive a power cut; NORMAL may lose the last commits.
        connection.pragma("synchronous", "full")

    def _migrate(self, connection: apsw.Connection) -> None:
        """Bring the file to this version; one that is there already needs no lock, so that reading goes on while others
        write. IMMEDIATE, and looking again, as two processes may open a new file at once."""
        known = self._form.migrations
        if self._version(connection) == len(known):
            return
        with transaction(connection):
            for script in known[self._version(connection) :]:
                connection.execute(script)
            connection.pragma("application_id", self._form.application_id)
            connection.pragma("user_version", len(known))

    def _version(self, connection: apsw.Connection) -> int:
        """The version of the file's schema, 0 for a new file; NeedsPerson when it is not one of ours, or newer."""
        version: int = connection.pragma("user_version")
        empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
        if not empty and connection.pragma("application_id") != self._form.application_id:
            raise NeedsPerson(f"{self._path} is an SQLite file of another program: correct {self._form.setting}")
        known = len(self._form.migrations)
        if version > known:
            raise NeedsPerson(
                f"the {self._form.name} {self._path} is of version {version}, this operator knows {known}: "
                "run the newer one"
            )
        return version


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Write all of it, or nothing; the lock is taken first, so that what was read before writing still holds."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # SQLite rolls back by itself when the disk is full
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
