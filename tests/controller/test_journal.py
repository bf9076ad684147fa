"""What is recorded before each status write, and what happens when it cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry

from praxis.api.incident import EntryKind, Incident
from praxis.api.reasons import Reason
from praxis.controller import journal as journals
from praxis.controller.journal import Journal
from praxis.controller.status import applied
from praxis.controller.writer import StatusWriter
from praxis.errors import NeedsPerson, RetryLater
from praxis.machine import Phase
from praxis.phases.contract import Record as EntryRecord
from praxis.phases.contract import Transition
from praxis.phases.decisions import another_plan, dismissed
from praxis.recorder.contract import Record
from tests import builders
from tests.controller.conftest import Stage
from tests.records import HeldRecords

FULL = NeedsPerson("the flight recorder: its disk is full: free space there")

OUTCOME = Transition(
    to=Phase.EXECUTING,
    reason=Reason.RESTARTED,
    message="",
    records=[EntryRecord(EntryKind.OUTCOME_RECORDED, Reason.RESTARTED, document={"action": "restart"})],
)


class Noted:
    """A journal, its records and its counts."""

    def __init__(self, records: HeldRecords | None = None) -> None:
        self.records = records or HeldRecords()
        self.registry = CollectorRegistry()
        self.journal = Journal(recorder=self.records, registry=self.registry)

    def count(self, result: str) -> float | None:
        return self.registry.get_sample_value("praxis_trail_records_total", {"result": result})


def classified(incident: Incident) -> Transition:
    changes = {"classification": builders.incident(Phase.TRIAGED).status.classification}
    return Transition(to=Phase.TRIAGED, reason=Reason.CLASSIFIED, message="", changes=changes)


def proposed(incident: Incident) -> Transition:
    plan = builders.plan(revision=1)
    changes = {"plan": plan, "approvals_required": 2}
    return Transition(to=Phase.AWAITING_APPROVAL, reason=Reason.PLAN_PROPOSED, message="", changes=changes)


def rejected(incident: Incident) -> Transition:
    return another_plan(incident, builders.approval("bob", of=incident), Reason.REJECTED)


@pytest.mark.parametrize(
    ("source", "decide", "kinds"),
    [
        (Phase.NEW, classified, ["PhaseChanged"]),
        (Phase.INVESTIGATED, proposed, ["PhaseChanged"]),
        (Phase.AWAITING_APPROVAL, rejected, ["Decided", "PhaseChanged"]),
    ],
)
async def test_every_entry_binds_what_was_recorded(source: Phase, decide: object, kinds: list[str]) -> None:
    """The digests of the entries that a transition leaves are those of its records, in their order."""
    noted, incident = Noted(), builders.incident(source)
    transition = decide(incident)  # type: ignore[operator]
    await noted.journal.keep(incident, transition)

    status = applied(incident, transition, actor=builders.OPERATOR, now=builders.NOW)
    entries = status.trail[len(incident.status.trail) :]
    kept = await noted.records.of(incident.metadata.uid)
    assert [each.kind for each in kept] == [each.kind for each in entries] == kinds
    assert [each.digest for each in kept] == [each.digest for each in entries]
    assert (noted.count("kept"), noted.count("failed"), noted.count("withheld")) == (len(kinds), 0, 0)


async def test_a_plan_is_recorded_whole() -> None:
    """Summary, rationale and model too, with the quorum; so that it is provable after the next plan took its place."""
    noted, incident = Noted(), builders.incident(Phase.INVESTIGATED)
    await noted.journal.keep(incident, proposed(incident))
    [kept] = await noted.records.of(incident.metadata.uid)
    assert kept.document == {"plan": builders.plan(revision=1).dump(), "approvalsRequired": 2}


async def test_an_entry_that_binds_nothing_has_no_record() -> None:
    """No empty documents."""
    noted, incident = Noted(), builders.incident(Phase.OBSERVING)
    await noted.journal.keep(incident, Transition(to=Phase.INVESTIGATED, reason=Reason.NOT_EFFECTIVE, message=""))
    assert await noted.records.of(incident.metadata.uid) == []


@pytest.mark.parametrize("error", [FULL, RetryLater("the flight recorder is busy")])
async def test_a_models_decision_waits_for_the_recorder(error: Exception) -> None:
    """It is not written: the incident stays, and stalls with what to do."""
    for source, decide in ((Phase.NEW, classified), (Phase.INVESTIGATED, proposed)):
        noted, incident = Noted(), builders.incident(source)
        noted.records.errors.append(error)
        with pytest.raises(type(error), match="the flight recorder"):
            await noted.journal.keep(incident, decide(incident))
        assert noted.count("failed") == 1


@pytest.mark.parametrize("error", [FULL, RetryLater("the flight recorder is busy")])
async def test_what_people_decide_and_what_was_done_is_not_held_up(error: Exception) -> None:
    """A reject, a dismissal, an outcome: written all the same, and counted as missing."""
    waiting, executing = builders.incident(), builders.incident(Phase.EXECUTING)
    for incident, transition, entries in (
        (waiting, rejected(waiting), 2),
        (waiting, dismissed(builders.approval(of=waiting)), 1),
        (executing, OUTCOME, 1),
    ):
        noted = Noted()
        noted.records.errors.append(error)
        await noted.journal.keep(incident, transition)
        assert noted.count("failed") == entries
        assert noted.records.kept == {}


async def test_a_recorder_that_hangs_holds_nothing_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that does not answer costs what may not wait its patience, and no more."""
    monkeypatch.setattr(journals, "PATIENCE_SECONDS", 0.01)

    class Hanging(HeldRecords):
        async def put(self, records: Sequence[Record]) -> None:
            await asyncio.Event().wait()

    noted, incident = Noted(Hanging()), builders.incident()
    await noted.journal.keep(incident, rejected(incident))
    assert noted.count("failed") == 2


async def test_a_model_does_not_wait_for_ever_for_a_recorder_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker has other incidents to look after; so it is tried again later."""
    monkeypatch.setattr(journals, "LONGEST_SECONDS", 0.01)

    class Hanging(HeldRecords):
        async def put(self, records: Sequence[Record]) -> None:
            await asyncio.Event().wait()

    noted, incident = Noted(Hanging()), builders.incident(Phase.INVESTIGATED)
    async with asyncio.timeout(20):
        with pytest.raises(RetryLater, match=r"^the flight recorder did not answer within 0.01 s$"):
            await noted.journal.keep(incident, proposed(incident))
    assert noted.count("failed") == 1


UNEXPECTED = [
    OSError(5, "Input/output error"),
    RuntimeError("cannot schedule new futures after shutdown"),
    MemoryError(),
    ValueError("a record of 20000000 bytes exceeds 16777216"),
    RecursionError("maximum recursion depth exceeded"),
]


@pytest.mark.parametrize("error", UNEXPECTED, ids=lambda each: type(each).__name__)
async def test_whatever_goes_wrong_with_a_record_an_outcome_is_not_held_up(error: Exception) -> None:
    """Neither by the recorder, nor by the making of the record; a model's decision is, by either."""

    class Unmade(Journal):
        def _of(self, incident: Incident, transition: Transition) -> list[Record]:
            raise error

    for kind in (Journal, Unmade):
        noted, executing, new = Noted(), builders.incident(Phase.EXECUTING), builders.incident(Phase.NEW)
        journal = kind(recorder=noted.records, registry=CollectorRegistry())
        noted.records.errors.extend([error, error])
        await journal.keep(executing, OUTCOME)
        with pytest.raises(type(error)):
            await journal.keep(new, classified(new))
        assert noted.records.kept == {}
        assert journal._records.labels("failed")._value.get() == 2


async def test_what_looks_like_a_secret_is_withheld() -> None:
    """A person wrote a token into their reason: it is in no record; what else was decided is."""
    noted, incident = Noted(), builders.incident()
    token = "ghp_" + "a1B2" * 9
    said = builders.approval("bob", of=incident, reason=f"first revoke {token}")
    await noted.journal.keep(incident, another_plan(incident, said, Reason.REJECTED))

    kept = await noted.records.of(incident.metadata.uid)
    assert [each.kind for each in kept] == ["PhaseChanged"]
    assert token.encode() not in kept[0].content
    assert (noted.count("kept"), noted.count("withheld")) == (1, 1)


def over(stage: Stage, records: HeldRecords) -> StatusWriter:
    """The stage's operator, with a recorder of its own."""
    return StatusWriter(
        kube=stage.operator,
        cluster=stage.cluster,
        clock=stage.clock,
        actor=builders.OPERATOR,
        intents=stage.intents,
        journal=Noted(records).journal,
    )


@pytest.mark.controlplane
async def test_a_record_is_stored_before_the_write_that_binds_it(stage: Stage) -> None:
    """When the recorder is asked, the API server still has the former head; then the entry binds what was stored."""
    heads: list[str | None] = []

    class Watching(HeldRecords):
        async def put(self, records: Sequence[Record]) -> None:
            heads.append((await stage.stored()).status.head)
            await super().put(records)

    incident, records = await stage.incident(Phase.NEW), Watching()
    stored = await over(stage, records).carry_out(incident, classified(incident))
    assert heads == [None]
    assert stored.status.head is not None
    assert [each.digest for each in await records.of(incident.metadata.uid)] == [stored.status.trail[0].digest]


@pytest.mark.controlplane
async def test_nothing_is_written_of_a_models_decision_that_cannot_be_recorded(stage: Stage) -> None:
    """The incident stays where it is, as the API server has it; with the recorder back, it goes on."""
    incident, records = await stage.incident(Phase.NEW), HeldRecords()
    records.errors.append(FULL)
    writer = over(stage, records)
    with pytest.raises(NeedsPerson, match="disk is full"):
        await writer.carry_out(incident, classified(incident))
    assert (await stage.stored()).metadata.resource_version == incident.metadata.resource_version
    assert (await writer.carry_out(incident, classified(incident))).status.phase is Phase.TRIAGED


@pytest.mark.controlplane
async def test_a_rejection_is_written_although_the_recorder_is_full(stage: Stage) -> None:
    """People are not kept waiting for a disk."""
    incident, records = await stage.incident(Phase.AWAITING_APPROVAL), HeldRecords()
    records.errors.append(FULL)
    stored = await over(stage, records).carry_out(incident, rejected(incident))
    assert (stored.status.phase, records.kept) == (Phase.INVESTIGATED, {})
