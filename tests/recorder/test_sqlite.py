"""What only a file can do: be damaged, full, locked, foreign, too old, and too large."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from praxis import sqlite_file
from praxis.errors import NeedsPerson, RetryLater
from praxis.recorder.contract import Record
from praxis.recorder.sqlite import SqliteRecorder, records_in
from praxis.recorder.stores import open_recorder
from praxis.settings import OperatorSettings, RecorderSettings
from tests.phases.world import HandClock, Time

DAY = 86_400
LETTER = Record.of("uid-1", "Decided", {"reason": "a letter that is long enough to be found in a file"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the recorder is to be; its directory does not exist yet."""
    return tmp_path / "var" / "recorder.db"


def opened(path: Path, time: Time | None = None, *, max_bytes: int = 1 << 30, days: float = 400) -> SqliteRecorder:
    return SqliteRecorder(path=path, clock=HandClock(time or Time()), max_bytes=max_bytes, days=days)


def of_size(incident: str, size: int) -> Record:
    """A record of so many bytes."""
    return Record.of(incident, "ModelRun", "words " * (size // 6) + "." * (size % 6 - 2))


def flip(path: Path) -> None:
    """One byte of the letter changes."""
    file = path.read_bytes()
    assert file.count(b"a letter that") == 1
    path.write_bytes(file.replace(b"a letter that", b"a better that"))


def overwrite(path: Path) -> None:
    """Every page but the first."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def scribble(path: Path) -> None:
    path.write_text("plain text")


async def kept(recorder: SqliteRecorder, *incidents: str) -> list[str]:
    """The incidents that still have records."""
    return [each for each in incidents if await recorder.of(each)]


async def test_the_settings_name_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`open_recorder` opens the store at the configured path, at its first use only."""
    monkeypatch.setenv("PRAXIS_RECORDER__PATH", str(path))
    recorder = open_recorder(OperatorSettings().recorder, HandClock(Time()))
    assert not path.parent.exists()
    await recorder.put([LETTER])
    await recorder.close()

    assert records_in(path, "uid-1") == [LETTER]
    assert records_in(path) == [LETTER]
    assert RecorderSettings().path == Path("/var/lib/praxis/recorder.db")


async def test_a_flipped_byte_is_found(path: Path) -> None:
    """A record whose bytes changed on the disk is refused with what to do, and is not intact where all are listed."""
    recorder = opened(path)
    await recorder.put([LETTER])
    await recorder.close()
    flip(path)

    damaged = opened(path)
    with pytest.raises(NeedsPerson, match=f"record {LETTER.digest} of incident uid-1 is damaged: restore it"):
        await damaged.get("uid-1", LETTER.digest)
    [found] = await damaged.of("uid-1")
    await damaged.close()

    assert (found.intact, found.digest) == (False, LETTER.digest)
    with pytest.raises(NeedsPerson, match="is damaged"):
        _ = found.document
    assert found.exported()["document"] == {"reason": "a better that is long enough to be found in a file"}


async def test_a_damaged_file_needs_a_person(path: Path) -> None:
    """A file whose pages are overwritten is reported as damaged, and never answered from as if empty."""
    recorder = opened(path)
    await recorder.put([Record.of("uid-1", "Decided", {"number": number, "text": "x" * 900}) for number in range(40)])
    await recorder.close()
    overwrite(path)

    damaged = opened(path)
    with pytest.raises(NeedsPerson, match=r"the flight recorder .* damaged: move it away"):
        await damaged.put([LETTER])
    with pytest.raises(NeedsPerson, match="cannot be read"):
        records_in(path, "uid-1")
    await damaged.close()


async def test_a_file_of_another_program_is_left_alone(path: Path) -> None:
    """Neither written to nor read as records: the message names the setting."""
    path.parent.mkdir()
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (id TEXT)")
    connection.close()
    recorder = opened(path)

    with pytest.raises(NeedsPerson, match="another program: correct PRAXIS_RECORDER__PATH"):
        await recorder.put([LETTER])
    with pytest.raises(NeedsPerson, match="is no flight recorder"):
        records_in(path)
    await recorder.close()
    scribble(path)
    with pytest.raises(NeedsPerson, match="is no SQLite file"):
        records_in(path)


async def test_a_locked_file_is_tried_again_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process writes, being ready and storing are RetryLater; afterwards they work."""
    monkeypatch.setattr(sqlite_file, "BUSY_TIMEOUT_MS", 1)
    recorder = opened(path)
    await recorder.ready()
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    for attempt in (recorder.ready(), recorder.put([LETTER])):
        with pytest.raises(RetryLater, match="BusyError"):
            await attempt
    other.execute("ROLLBACK")
    other.close()

    await recorder.put([LETTER])
    assert await recorder.of("uid-1") == [LETTER]
    await recorder.close()


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Every database opened meanwhile can grow to 24 pages only, as on a full disk."""

    def limit(connection: apsw.Connection) -> None:
        connection.execute("PRAGMA max_page_count = 24")

    apsw.connection_hooks.append(limit)
    yield
    apsw.connection_hooks.remove(limit)


@pytest.mark.usefixtures("small_disk")
async def test_a_full_disk_needs_a_person_and_half_is_not_stored(path: Path) -> None:
    """All of a write or nothing; what was stored before stays readable."""
    recorder = opened(path)
    await recorder.put([LETTER])
    with pytest.raises(NeedsPerson, match="disk is full: free space"):
        await recorder.put([Record.of("uid-1", "Decided", {"small": True}), of_size("uid-1", 200_000)])

    assert await recorder.of("uid-1") == [LETTER]
    await recorder.close()


async def test_old_incidents_lose_their_records_and_growing_ones_do_not(path: Path) -> None:
    """Counted from the last record of an incident: 400 days and a second after it, all of it goes."""
    time = Time()
    recorder = opened(path, time)
    await recorder.put([Record.of("old", "Decided", {"n": 1}), Record.of("growing", "Decided", {"n": 1})])
    time.forward(300 * DAY)
    await recorder.put([Record.of("growing", "Decided", {"n": 2})])
    time.forward(100 * DAY)
    await recorder.put([Record.of("new", "Decided", {"n": 1})])
    assert await kept(recorder, "old", "growing", "new") == ["old", "growing", "new"]
    time.forward(1)
    await recorder.put([Record.of("new", "Decided", {"n": 2})])

    assert await kept(recorder, "old", "growing", "new") == ["growing", "new"]
    assert len(await recorder.of("growing")) == 2
    await recorder.close()


async def test_above_its_size_whole_incidents_go_the_longest_untouched_first(path: Path) -> None:
    """Exactly the bound fits; a byte more costs the oldest incident, never the one that is recorded to."""
    time = Time()
    recorder = opened(path, time, max_bytes=30_000)
    for incident in ("a", "b", "c"):
        await recorder.put([of_size(incident, 10_000)])
        time.forward(1)
    assert await kept(recorder, "a", "b", "c") == ["a", "b", "c"]
    await recorder.put([Record.of("a", "Decided", {})])
    assert await kept(recorder, "a", "b", "c") == ["a", "c"]
    time.forward(1)
    await recorder.put([of_size("d", 40_000)])

    assert await kept(recorder, "a", "b", "c", "d") == ["d"]
    await recorder.close()


async def test_storing_again_does_not_count_twice(path: Path) -> None:
    """Retries do not push others out."""
    recorder = opened(path, max_bytes=30_000)
    await recorder.put([of_size("a", 10_000)])
    for _ in range(5):
        await recorder.put([of_size("b", 10_000)])

    assert await kept(recorder, "a", "b") == ["a", "b"]
    await recorder.close()


async def test_a_disk_that_hangs_is_an_outage_and_keeps_no_process_from_closing(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is asked meanwhile is tried again later; the loop goes on, also through the close."""
    monkeypatch.setattr(sqlite_file, "ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(sqlite_file, "CLOSE_SECONDS", 0.01)
    recorder, hangs = opened(path), threading.Event()
    hung = recorder._file._thread.submit(hangs.wait)
    try:
        async with asyncio.timeout(20):
            for asked in (recorder.put([LETTER]), recorder.ready(), recorder.of("uid-1")):
                with pytest.raises(RetryLater, match=r"recorder\.db did not answer within 0\.01 s$"):
                    await asked
            await recorder.close()
        assert not hung.done()
        assert "not closed: it does not answer" in caplog.text
    finally:
        hangs.set()
