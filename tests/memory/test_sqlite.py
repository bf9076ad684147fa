"""What only a file can do: be damaged, locked, full, foreign, or shared by two processes."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from praxis import sqlite_file
from praxis.errors import NeedsPerson, RetryLater
from praxis.memory import sqlite
from praxis.memory.sqlite import SqliteMemory
from praxis.memory.stores import open_memory
from praxis.settings import OperatorSettings
from tests.memory.embedder import WordEmbedder
from tests.memory.test_contract import LATENCY, LEAK


def _open(path: Path) -> SqliteMemory:
    return SqliteMemory(path=path, embedder=WordEmbedder(), embedding_model="words")


def _scribble(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to have a header " * 40)


def _move_away(path: Path) -> None:
    path.rename(path.with_suffix(".broken"))


def _damage(path: Path) -> None:
    """Overwrite every page but the first."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the memory is to be; its directory does not exist yet."""
    return tmp_path / "var" / "memory.db"


async def test_the_settings_name_the_file_and_the_model(path: Path) -> None:
    """`open_memory` opens the embedded store at `memory_path`, for vectors of `models.embedding`."""
    memory = open_memory(OperatorSettings(memory_path=path), WordEmbedder())
    await memory.remember(LEAK)
    await memory.close()

    assert apsw.Connection(str(path)).execute("SELECT id, model FROM memories").fetchall() == [
        ("uid-leak", "text-embedding-v4")
    ]


async def test_opens_nothing_before_its_first_use(path: Path) -> None:
    """A store that is out of order must not keep the operator from starting."""
    memory = _open(path)
    assert not path.parent.exists()
    await memory.close()


async def test_a_new_file_says_what_it_is(path: Path) -> None:
    """The header carries the application id, the schema's version and WAL."""
    memory = _open(path)
    await memory.remember(LEAK)
    connection = apsw.Connection(str(path))

    assert connection.pragma("application_id") == 0x50525853
    assert connection.pragma("user_version") == 1
    assert connection.pragma("journal_mode") == "wal"
    connection.close()
    await memory.close()


async def test_a_file_that_is_no_database_needs_a_person(path: Path) -> None:
    """The message says what to do, and it works: with the file moved away the memory goes on, without a restart."""
    _scribble(path)
    memory = _open(path)

    with pytest.raises(NeedsPerson, match="no SQLite file: move it away"):
        await memory.remember(LEAK)
    _move_away(path)
    await memory.remember(LEAK)

    assert len(await memory.recall(LEAK.text, namespace="shop", limit=1)) == 1
    await memory.close()


async def test_a_damaged_file_needs_a_person(path: Path) -> None:
    """A file whose pages are overwritten is reported as damaged, and never answered from as if empty."""
    memory = _open(path)
    for number in range(40):
        await memory.remember(dataclasses.replace(LEAK, id=f"uid-{number}"))
    await memory.close()
    _damage(path)

    damaged = _open(path)
    with pytest.raises(NeedsPerson, match="damaged: move it away"):
        await damaged.recall(LEAK.text, namespace="shop", limit=1)
    await damaged.close()


async def test_a_file_of_a_newer_version_needs_a_person(path: Path) -> None:
    """An older operator does not touch what a newer one made."""
    path.parent.mkdir()
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE memories (id TEXT)")
    connection.pragma("application_id", sqlite.APPLICATION_ID)
    connection.pragma("user_version", 2)
    connection.close()
    memory = _open(path)

    with pytest.raises(NeedsPerson, match="is of version 2, this operator knows 1"):
        await memory.remember(LEAK)
    await memory.close()


async def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    """A mistaken path does not put our table into somebody's database."""
    path.parent.mkdir()
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (id TEXT)")
    memory = _open(path)

    with pytest.raises(NeedsPerson, match="another program"):
        await memory.remember(LEAK)
    await memory.close()

    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]
    connection.close()


async def test_a_directory_that_cannot_be_made_needs_a_person(tmp_path: Path) -> None:
    """A path below a file says so."""
    (tmp_path / "file").touch()
    memory = _open(tmp_path / "file" / "memory.db")

    with pytest.raises(NeedsPerson, match="directory cannot be made"):
        await memory.remember(LEAK)
    await memory.close()


async def test_a_locked_file_is_tried_again_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process writes, a write waits its time-out, then is RetryLater; afterwards it works."""
    monkeypatch.setattr(sqlite_file, "BUSY_TIMEOUT_MS", 1)
    memory = _open(path)
    await memory.remember(LEAK)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(RetryLater, match="BusyError"):
        await memory.remember(LATENCY)
    assert len(await memory.recall(LEAK.text, namespace="shop", limit=1)) == 1, "reading goes on"
    other.execute("ROLLBACK")
    other.close()
    await memory.remember(LATENCY)

    assert len(await memory.recall(LEAK.text, namespace="shop", limit=5)) == 2
    await memory.close()


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Every database opened meanwhile can grow to 16 pages only, as on a full disk."""

    def limit(connection: apsw.Connection) -> None:
        connection.execute("PRAGMA max_page_count = 16")

    apsw.connection_hooks.append(limit)
    yield
    apsw.connection_hooks.remove(limit)


@pytest.mark.usefixtures("small_disk")
async def test_a_full_disk_needs_a_person(path: Path) -> None:
    """Nothing is lost in silence: the write fails with what to do, what was stored stays readable."""
    memory = _open(path)
    await memory.remember(LEAK)
    more = [memory.remember(dataclasses.replace(LEAK, id=f"uid-{number}")) for number in range(16)]
    with pytest.raises(NeedsPerson, match="disk is full: free space"):
        await asyncio.gather(*more)

    assert len(await memory.recall(LEAK.text, namespace="shop", limit=1)) == 1
    await memory.close()


WRITER = """
import asyncio, dataclasses, pathlib, sys
from praxis.memory.sqlite import SqliteMemory
from tests.memory.embedder import WordEmbedder
from tests.memory.test_contract import LEAK

async def main():
    memory = SqliteMemory(path=pathlib.Path(sys.argv[1]), embedder=WordEmbedder(), embedding_model="words")
    for number in range(20):
        await memory.remember(dataclasses.replace(LEAK, id=f"uid-{number}"))
    await memory.close()

asyncio.run(main())
"""


async def test_two_processes_share_one_file(path: Path) -> None:
    """Replicas that open a new file at once and write the same ids leave each record there once."""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    writers = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(path), env=environment) for _ in range(2)
    ]
    assert [await writer.wait() for writer in writers] == [0, 0]

    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*), count(DISTINCT id) FROM memories").fetchall() == [(20, 20)]
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
