"""What every store must do. A new store is one more entry of STORES; it brings nothing else here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from praxis.recorder.contract import Record, Recorder
from praxis.recorder.sqlite import SqliteRecorder
from tests.phases.world import HandClock, Time
from tests.records import HeldRecords

Opener = Callable[[Path], Recorder]


def _sqlite(directory: Path) -> Recorder:
    return SqliteRecorder(path=directory / "recorder.db", clock=HandClock(Time()), max_bytes=1 << 30, days=400)


STORES: dict[str, Opener] = {"sqlite": _sqlite, "in memory, for tests": lambda directory: HeldRecords()}

ALICE = Record.of("uid-1", "Decided", {"uid": "u-1", "spec": {"approver": {"username": "alice"}}})
RUN = Record.of("uid-1", "ModelRun", {"messages": [{"role": "user", "content": "why?"}], "exchanges": []})


@pytest.fixture(params=sorted(STORES))
async def recorder(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Recorder]:
    """An empty recorder."""
    opened = STORES[request.param](tmp_path)
    yield opened
    await opened.close()


async def test_a_record_is_found_by_its_digest(recorder: Recorder) -> None:
    """What is read back is the very record, its document as it was."""
    await recorder.put([ALICE, RUN])

    assert await recorder.get("uid-1", ALICE.digest) == ALICE
    found = await recorder.get("uid-1", RUN.digest)
    assert found is not None
    assert found.document == {"messages": [{"role": "user", "content": "why?"}], "exchanges": []}


async def test_what_is_not_there_is_none(recorder: Recorder) -> None:
    """Another digest, or the same digest of another incident."""
    await recorder.put([ALICE])

    assert await recorder.get("uid-1", "sha256:" + "0" * 64) is None
    assert await recorder.get("uid-2", ALICE.digest) is None
    assert await recorder.of("uid-2") == []


async def test_storing_again_changes_nothing(recorder: Recorder) -> None:
    """Idempotent: a write that is retried leaves one record, of the kind that it was first stored as."""
    await recorder.put([ALICE])
    await recorder.put([ALICE, Record(ALICE.incident, "Other", ALICE.digest, ALICE.content)])

    assert await recorder.of("uid-1") == [ALICE]


async def test_records_come_in_the_order_in_which_they_were_stored(recorder: Recorder) -> None:
    """Of one incident only, and of equal documents each incident has its own."""
    same = Record.of("uid-2", ALICE.kind, ALICE.document)
    assert same.digest == ALICE.digest
    await recorder.put([RUN])
    await recorder.put([same, ALICE])

    assert await recorder.of("uid-1") == [RUN, ALICE]
    assert await recorder.of("uid-2") == [same]


async def test_many_at_once(recorder: Recorder) -> None:
    """Concurrent writes store every record once."""
    records = [Record.of("uid-1", "Decided", {"number": number % 5}) for number in range(20)]
    await asyncio.gather(*(recorder.put([each]) for each in records))

    assert sorted(each.document["number"] for each in await recorder.of("uid-1")) == [0, 1, 2, 3, 4]


async def test_being_ready_stores_no_record(recorder: Recorder) -> None:
    """The question leaves nothing behind that an export would show."""
    await recorder.ready()
    await recorder.ready()

    assert await recorder.of("uid-1") == []
