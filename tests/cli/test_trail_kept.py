"""`praxis trail` with the full records: all there, altered, removed, swapped, and taken from files and stores."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from praxis.cli import main
from praxis.cli.bindings import State
from praxis.cli.documents import objects
from praxis.cli.verification import Report, verify
from praxis.recorder.contract import Record
from praxis.recorder.sqlite import SqliteRecorder
from tests.cli.conftest import Answering
from tests.cli.life import eventful
from tests.cli.test_trail import dumped, items, paths, rewritten, server
from tests.phases.world import HandClock, Time

LIFE = eventful()
DOCUMENTS, RECORDS = LIFE.documents(), LIFE.records
UID = DOCUMENTS[0]["metadata"]["uid"]
RUNS = [number for number, each in enumerate(RECORDS) if each.kind == "ModelRun"]
RUN_ENTRIES = dict(zip(RUNS, (0, 1, 2, 8, 11), strict=True))
"""Which entry names each model run."""


def checked(records: list[Record], documents: list[dict[str, Any]] = DOCUMENTS) -> Report:
    return verify(documents[0], documents[1:], records)


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=stdin, env={"COLUMNS": "300"})


def altered(record: Record, **changes: Any) -> Record:
    """The same claim over another content."""
    return Record.imported({**record.exported(), "document": {**record.document, **changes}})


def without(number: int) -> list[Record]:
    return [each for index, each in enumerate(RECORDS) if index != number]


def stored(path: Path, records: list[Record]) -> Path:
    """A store with these records."""

    async def put() -> None:
        recorder = SqliteRecorder(path=path, clock=HandClock(Time()), max_bytes=1 << 30, days=400)
        await recorder.put(records)
        await recorder.close()

    asyncio.run(put())
    return path


def test_with_all_records_nothing_is_absent() -> None:
    """Every entry matches, from incident and records alone: plans that were replaced, what people said."""
    report = checked(RECORDS, DOCUMENTS[:1])
    assert (report.problems, report.missing) == ([], [])
    assert [str(each.binding) for each in report.entries] == [
        "matches: classification",
        "matches: evidence, diagnosis",
        "matches: earlier plan 1, recorded",
        "matches: IncidentApproval of alice, recorded",
        "matches: earlier approvals, recorded",
        "matches: intent of restart-function, revision 1",
        "matches: outcome of restart-function, revision 1",
        "binds no record",
        "matches: earlier plan 2, recorded",
        "matches: IncidentApproval of bob, recorded",
        "matches: corrections 1 to 1",
        "matches: plan c898555f05bd",
        "matches: IncidentApproval of carol, recorded",
        "matches: approvals in status",
        "matches: intent of restart-function, revision 3",
        "matches: outcome of restart-function, revision 3",
        "binds no record",
        "matches: IncidentReconciliation of dave, recorded",
    ]


def test_from_the_yaml_alone_every_absent_record_is_named() -> None:
    """By its entry, what it is, and its digest; none of them breaks the chain."""
    report = verify(DOCUMENTS[0])
    digests = {each.digest for each in RECORDS}
    assert report.problems == []
    assert [each.rpartition(" ")[0] for each in report.missing] == [
        "entry 0: model run of the classification",
        "entry 1: model run of the diagnosis",
        "entry 2: earlier plan 1",
        "entry 3: IncidentApproval of alice",
        "entry 4: earlier approvals",
        "entry 8: earlier plan 2",
        "entry 9: IncidentApproval of bob",
        "entry 11: model run of the plan",
        "entry 12: IncidentApproval of carol",
        "entry 17: IncidentReconciliation of dave",
    ]
    assert {each.rpartition(" ")[2] for each in report.missing} <= digests


@pytest.mark.parametrize("number", RUNS)
def test_a_removed_run_is_named_at_its_entry(number: int) -> None:
    """Absent, and no fault; also that of a plan that was replaced, which only its own record names."""
    report = checked(without(number))
    assert report.problems == []
    [missing] = report.missing
    assert missing.startswith(f"entry {RUN_ENTRIES[number]}: model run of the ")
    assert missing.endswith(RECORDS[number].digest)


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_an_altered_record_is_broken_at_its_entry(number: int) -> None:
    """Whatever is bound: the entry, or the one whose record names it, is the first broken one."""
    record = RECORDS[number]
    if record.kind == "Evidence":
        forged = Record.imported({**record.exported(), "document": [*record.document, {"id": "e3"}]})
    else:
        forged = altered(record, forged=True)
    report = checked([*without(number), forged])
    trail = DOCUMENTS[0]["status"]["trail"]
    entry = RUN_ENTRIES.get(number, 1 if record.kind == "Evidence" else None)
    if entry is None:
        entry = next(index for index, each in enumerate(trail) if each["digest"] == record.digest)
    assert report.problems[0].startswith(f"trail entry {entry}: the ")
    assert f"{record.digest} was altered: its content hashes to {forged.hashed}" in report.problems[0]


@given(number=st.sampled_from(range(len(RECORDS))), data=st.data())
def test_any_change_anywhere_in_a_record_is_found(number: int, data: st.DataObject) -> None:
    """One value of an exported record changed: broken, or, when it names another incident, absent."""
    exported = copy.deepcopy(RECORDS[number].exported())
    places = list(paths(exported["document"]))
    *path, key = data.draw(st.sampled_from(places))
    parent: Any = exported["document"]
    for each in path:
        parent = parent[each]
    before = parent[key]
    parent[key] = data.draw(st.one_of(st.text(max_size=5), st.integers(-9, 9), st.none()).filter(lambda v: v != before))
    report = checked([*without(number), Record.imported(exported)])
    assert not report.holds


def test_two_records_that_changed_places_are_found() -> None:
    """Each content under the other's digest: both entries are broken, the first is named first."""
    one, other = RECORDS[RUNS[0]], RECORDS[RUNS[2]]
    swapped = [
        Record(one.incident, one.kind, one.digest, other.content),
        Record(other.incident, other.kind, other.digest, one.content),
    ]
    report = checked([*(each for each in RECORDS if each not in (one, other)), *swapped])
    assert [each.split(":")[0] for each in report.problems] == ["trail entry 0", "trail entry 2"]


def test_a_record_under_a_fresh_digest_is_absent_and_stands_for_nothing() -> None:
    """Who alters a record and its digest has made another record, which no entry binds."""
    record = RECORDS[RUNS[1]]
    forged = Record.of(UID, record.kind, {**record.document, "forged": True})
    report = checked([*without(RUNS[1]), forged])
    assert report.problems == []
    assert report.missing == [f"entry 1: model run of the diagnosis {record.digest}"]


def test_records_of_another_incident_stand_for_nothing() -> None:
    """The right content of the wrong incident is not this one's record."""
    foreign = [Record("another", each.kind, each.digest, each.content) for each in RECORDS]
    assert checked(foreign).missing == checked([]).missing


def test_an_altered_record_that_no_entry_binds_is_told() -> None:
    """A run that came to nothing is bound by nobody; altered, it is still no record."""
    stray = Record.of(UID, "ModelRun", {"exchanges": []})
    assert checked([*RECORDS, stray]).problems == []
    forged = altered(stray, forged=True)
    assert checked([*RECORDS, forged]).problems == [
        f"record {stray.digest} was altered: its content hashes to {forged.hashed}"
    ]


def test_an_intact_record_beside_an_altered_one_of_the_same_claim_counts() -> None:
    """Two replicas' files: what one has whole, the other's damage does not take away."""
    record = RECORDS[RUNS[0]]
    assert checked([altered(record, forged=True), *RECORDS]).problems == []


def test_a_recorded_plan_must_hold_in_itself() -> None:
    """An entry that was rewritten to bind a plan whose actions are not what its digest says."""
    documents = copy.deepcopy(DOCUMENTS)
    trail = documents[0]["status"]["trail"]
    record = next(each for each in RECORDS if each.digest == trail[2]["digest"])
    content = copy.deepcopy(record.document)
    content["plan"]["actions"][0]["effect"] = "Deletes the function."
    forged = Record.of(UID, "PhaseChanged", content)
    rewritten(documents[0], 2, digest=forged.digest)
    report = checked([*RECORDS, forged], documents)
    assert report.problems[0].startswith("trail entry 2: the recorded plan is not what its digest")


def test_a_plan_that_is_worded_anew_is_found_from_the_yaml_alone() -> None:
    """What a plan says for itself is bound too, although people's approvals name its actions only."""
    for change in ({"summary": "All is well."}, {"run": RECORDS[RUNS[0]].digest}, {"model": "another"}):
        document = copy.deepcopy(DOCUMENTS[0])
        document["status"]["plan"] |= change
        [problem] = verify(document).problems
        assert problem == "trail entry 11: the plan, guards and quorum in status are not those that it binds"
    document = copy.deepcopy(DOCUMENTS[0])
    document["status"]["approvalsRequired"] = 2
    assert verify(document).count(State.DIFFERS) == 1


@pytest.mark.parametrize("form", ["YAML documents", "YAML List", "JSON List", "JSON documents"])
def test_a_bundle_is_verified_in_every_form(form: str) -> None:
    """Incident, statements and records in one text: nothing absent, also when that is required."""
    text = dumped(LIFE.exported(), form)
    result = run("trail", "verify", "-", "--require-records", stdin=text)
    assert result.exit_code == 0, result.output
    assert "HOLDS  shop/checkout-latency-1: 18 entries, 16 records match, 0 are absent; head " in result.stdout


def test_required_records_that_are_absent_are_a_failure() -> None:
    """Exit code 1, each named; without the flag the same trail holds."""
    text = json.dumps(DOCUMENTS[0])
    for flags, code in (((), 0), (("--require-records",), 1)):
        result = run("trail", "verify", "-", *flags, stdin=text)
        assert (result.exit_code, result.stdout.count("\nabsent  entry ")) == (code, 10)


def test_records_are_taken_from_stores_files_and_directories(tmp_path: Path) -> None:
    """A copy of the store, what `praxis records export` wrote from it, and a directory with both replicas' files."""
    (tmp_path / "incident.json").write_text(json.dumps(DOCUMENTS[0]))
    stray = Record.of("another", "Decided", {"x": 1})
    store = stored(tmp_path / "recorder.db", [*RECORDS, stray])
    exported = run("records", "export", UID, "--path", str(store))
    assert exported.exit_code == 0
    assert [each["digest"] for each in objects(exported.stdout)] == [each.digest for each in RECORDS]
    (tmp_path / "records.json").write_text(exported.stdout)
    halves = tmp_path / "halves"
    halves.mkdir()
    stored(halves / "a.db", RECORDS[:9])
    (halves / "b.json").write_text(json.dumps({"kind": "List", "items": [each.exported() for each in RECORDS[9:]]}))
    (halves / "notes.txt").write_text("not looked at")
    for source in (store, tmp_path / "records.json", halves):
        result = run("trail", "verify", str(tmp_path / "incident.json"), "--records", str(source), "--require-records")
        assert result.exit_code == 0, result.output
    result = run("trail", "verify", str(tmp_path / "incident.json"), "--records", str(halves / "a.db"))
    assert (result.exit_code, "\nabsent  entry 17: IncidentReconciliation of dave" in result.stdout) == (0, True)


def test_an_export_holds_the_records(answering: Answering, tmp_path: Path) -> None:
    """Those of the incident and no others; the bundle proves all of it without the cluster."""
    stray = Record.of("another", "Decided", {"x": 1})
    store = stored(tmp_path / "recorder.db", [*RECORDS, stray])
    answering.answer = server(
        incident=(200, DOCUMENTS[0]), approvals=items(*DOCUMENTS[1:4]), reconciliations=items(DOCUMENTS[4])
    )
    bundle = tmp_path / "bundle.yaml"
    arguments = ("checkout-latency-1", "-o", str(bundle), "--records", str(store))
    result = run("trail", "export", *arguments, "--kubeconfig", str(answering.kubeconfig))
    assert (result.exit_code, result.output) == (0, "")
    assert objects(bundle.read_text()) == [*DOCUMENTS, *(each.exported() for each in RECORDS)]
    assert run("trail", "verify", str(bundle), "--require-records").exit_code == 0


def test_damage_in_a_store_is_exported_and_named(tmp_path: Path) -> None:
    """A record that is no JSON any more reaches the verifier, who names its entry."""
    broken = Record(UID, "ModelRun", RECORDS[RUNS[0]].digest, b'{"messages": [')
    store = stored(tmp_path / "recorder.db", [*without(RUNS[0]), broken])
    exported = run("records", "export", UID, "--path", str(store))
    result = run("trail", "verify", "-", stdin=json.dumps(DOCUMENTS[0]) + exported.stdout)
    assert result.exit_code == 1
    assert f"trail entry 0: the model run of the classification {broken.digest} was altered" in result.stdout


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.db", b"SQLite format 3\0 and nothing more", "cannot be read"),
        ("x.json", b'{"kind": "Record"}', "no record: it needs incidentUid"),
        ("x.json", b"[", "cannot be read"),
    ],
)
def test_what_is_no_record_is_wrong_usage(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    """Exit code 2 and a sentence that names the file."""
    (tmp_path / name).write_bytes(content)
    result = run("trail", "verify", "-", "--records", str(tmp_path / name), stdin=json.dumps(DOCUMENTS[0]))
    assert (result.exit_code, says in result.stderr) == (2, True), result.output
    assert name in result.stderr


def test_an_export_of_nothing_says_so(tmp_path: Path) -> None:
    """No such file, no such incident, no store: exit code 1, and why."""
    store = stored(tmp_path / "recorder.db", RECORDS)
    (tmp_path / "text.db").write_text("text")
    for path, uid, says in (
        (tmp_path / "no.db", UID, "cannot be read: No such file"),
        (store, "another", "holds no records of incident another"),
        (tmp_path / "text.db", UID, "is no SQLite file"),
    ):
        result = run("records", "export", uid, "--path", str(path))
        assert (result.exit_code, says in result.stderr) == (1, True), result.output


@pytest.mark.parametrize(("column", "value"), [("content", "no bytes"), ("kind", b"no text"), ("digest", None)])
def test_a_store_of_other_types_is_no_store(tmp_path: Path, column: str, value: object) -> None:
    """Whatever another program put into the columns: a sentence, and the exit code of what cannot be read."""
    store = tmp_path / "other.db"
    connection = apsw.Connection(str(store))
    connection.pragma("application_id", 0x50525852)
    connection.execute("CREATE TABLE records (incident, kind, digest, content)")
    row = {"incident": UID, "kind": "ModelRun", "digest": RECORDS[0].digest, "content": b"{}", column: value}
    connection.execute("INSERT INTO records VALUES (:incident, :kind, :digest, :content)", row)
    connection.close()
    exported = run("records", "export", UID, "--path", str(store))
    verified = run("trail", "verify", "-", "--records", str(store), stdin=json.dumps(DOCUMENTS[0]))
    assert (exported.exit_code, verified.exit_code) == (1, 2), exported.output
    for result in (exported, verified):
        assert "other.db is no flight recorder of PRAXIS: record " in result.stderr
