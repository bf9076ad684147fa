"""What `praxis trail` finds in exported trails, and what it takes them from."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from praxis.api.incident import Incident
from praxis.api.records import plan_digest_of
from praxis.cli import main
from praxis.cli.bindings import State
from praxis.cli.documents import objects, yaml_text
from praxis.cli.verification import Report, verify
from praxis.digest import entry_hash, link
from praxis.machine import Phase
from tests.builders import history, incident, replanned
from tests.cli.conftest import Answer, Answering
from tests.cli.life import eventful
from tests.cli.test_faults import APPROVALS_PATH, INCIDENT_PATH, failure

RECONCILIATIONS_PATH = APPROVALS_PATH.replace("approvals", "reconciliations")
LIFE = eventful().documents()
"""The incident, three approvals (alice, bob, carol) and dave's reconciliation, in this order."""

Path_ = tuple[str | int, ...]


def checked(documents: list[dict[str, Any]]) -> Report:
    return verify(documents[0], documents[1:])


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["trail", *arguments], input=stdin, env={"COLUMNS": "300"})


def at(document: Any, path: Path_) -> Any:
    for key in path:
        document = document[key]
    return document


def paths(value: Any, base: Path_ = ()) -> Iterator[Path_]:
    """Every place below a value, containers too."""
    members: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    for key, member in members:
        yield (*base, key)
        yield from paths(member, (*base, key))


@pytest.mark.parametrize("phase", list(Phase))
def test_an_honest_incident_holds_in_every_phase(phase: Phase) -> None:
    """Whatever the operator writes on the way into a phase holds after each write, from the incident alone."""
    for stored in history(phase):
        report = verify(stored.dump())
        assert report.problems == []
        assert len(report.entries) == len(stored.status.trail)


def test_an_honest_incident_holds_after_another_plan() -> None:
    """A plan that was replaced is absent, the newest matches."""
    states = replanned(incident())
    assert [verify(each.dump()).problems for each in states] == [[], []]
    bindings = [str(each.binding) for each in verify(states[-1].dump()).entries]
    assert bindings[-4:] == [
        "absent: earlier plan 1",
        "absent: IncidentApproval of bob",
        "matches: corrections 1 to 1",
        "matches: plan 4ba7180c1d3b",
    ]


def test_each_record_of_an_eventful_life_is_named() -> None:
    """With what people said, only the plans that were replaced and the model runs are absent."""
    report = checked(LIFE)
    assert report.problems == []
    assert [str(each.binding) for each in report.entries] == [
        "matches: classification; 1 absent",
        "matches: evidence, diagnosis; 1 absent",
        "absent: earlier plan 1",
        "matches: IncidentApproval approve-alice",
        "matches: earlier approvals",
        "matches: intent of restart-function, revision 1",
        "matches: outcome of restart-function, revision 1",
        "binds no record",
        "absent: earlier plan 2",
        "matches: IncidentApproval reject-bob",
        "matches: corrections 1 to 1",
        "matches: plan c898555f05bd; 1 absent",
        "matches: IncidentApproval approve-carol",
        "matches: approvals in status",
        "matches: intent of restart-function, revision 3",
        "matches: outcome of restart-function, revision 3",
        "binds no record",
        "matches: IncidentReconciliation checkout-latency-1-reconciliation-dave",
    ]


def test_what_is_not_in_the_export_is_absent_and_no_fault() -> None:
    """The incident alone holds; the statements and the approvals that were replaced are named as absent."""
    report = checked(LIFE[:1])
    assert report.holds
    absent = [each.index for each in report.entries if each.binding.state is State.ABSENT]
    assert absent == [2, 3, 4, 8, 9, 12, 17]


PLACES = {
    ("classification",): 0,
    ("target",): 1,
    ("recalled",): 1,
    ("evidence",): 1,
    ("evidenceDigest",): 1,
    ("diagnosis",): 1,
    ("corrections",): 10,
    ("plan", "revision"): 11,
    ("plan", "digest"): 11,
    ("plan", "short"): 11,
    ("plan", "tier"): 11,
    ("plan", "evidenceDigest"): 11,
    ("plan", "actions"): 11,
    ("approvals",): 13,
}
"""Where status is bound: the entry that must be named for a change anywhere below."""
STEP_ENTRIES = {(0, "intent"): 5, (0, "outcome"): 6, (1, "intent"): 14, (1, "outcome"): 15}
STATEMENT_ENTRIES = {1: 3, 2: 9, 3: 12, 4: 17}


def targets() -> list[tuple[int, Path_, int]]:
    """Every place of the export that is bound: the document, the place, the entry that a change there must name."""
    status = LIFE[0]["status"]
    result: list[tuple[int, Path_, int]] = [(0, ("metadata", "uid"), 0)]
    result += [(0, ("status", *path), index) for base, index in PLACES.items() for path in _below(status, base)]
    for (number, part), index in STEP_ENTRIES.items():
        result += [(0, ("status", *path), index) for path in _below(status, ("steps", number, part), itself=False)]
    for index in range(len(status["trail"])):
        result += [(0, ("status", *path), index) for path in _below(status, ("trail", index))]
    for number, index in STATEMENT_ENTRIES.items():
        spec = [(number, ("spec", *path), index) for path in _below(LIFE[number]["spec"], ())]
        # An object that names another incident, or nobody, is not this incident's: its entry is absent.
        result += [each for each in spec if each[1][:2] not in NOT_OURS or number == 3]
    return result


NOT_OURS = {("spec", "incidentRef"), ("spec", "approver"), ("spec", "observer"), ("spec",)}


def _below(value: Any, base: Path_, *, itself: bool = True) -> list[Path_]:
    return [*([base] if itself and base else []), *(path for path in paths(at(value, base), base))]


TARGETS = targets()


@settings(max_examples=400)
@given(target=st.sampled_from(TARGETS), how=st.sampled_from(["change", "drop", "add"]), data=st.data())
def test_any_single_mutation_is_found_at_its_entry(
    target: tuple[int, Path_, int], how: str, data: st.DataObject
) -> None:
    """One value changed, dropped or added anywhere that the trail binds: broken, and the right entry is the first."""
    number, path, entry = target
    documents = copy.deepcopy(LIFE)
    parent, key = at(documents[number], path[:-1]), path[-1]
    before = parent[key]
    match how:
        case "change":
            scalars = st.one_of(st.text(max_size=5), st.integers(-9, 9), st.booleans(), st.none())
            parent[key] = data.draw(scalars.filter(lambda value: value != before and bool(value)))
        case "drop" if isinstance(parent, list):
            parent.pop(int(key))
        case "drop":
            del parent[key]
        case _ if isinstance(before, dict):
            before["added"] = "x"
        case _ if isinstance(before, list):
            before.append("x")
        case _:
            parent[key] = [before]
    if documents == LIFE or harmless(before, how):
        return
    report = checked(documents)
    assert not report.holds, (path, how)
    trail = documents[0]["status"].get("trail")
    if path[1:2] == ("trail",) and len(path) == 3 and how == "drop" and entry == len(trail):
        assert report.problems[0] == "status.head is not the hash of the last trail entry"
    else:
        assert report.problems[0].startswith(f"trail entry {entry}: "), (path, how)


def harmless(before: Any, how: str) -> bool:
    """An empty value that is dropped is the same document."""
    return how == "drop" and before in ("", [], {}, None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["status"].update(phase="Executing"), "the phase is Executing, and the last trail entry says"),
        (
            lambda d: d["status"].update(head="sha256:" + "0" * 64),
            "status.head is not the hash of the last trail entry",
        ),
        (lambda d: d["status"].pop("head"), "status.head is not the hash of the last trail entry"),
        (lambda d: d["status"].update(trail=[]), "status.head is set, and there is no trail"),
        (lambda d: d["status"].update(trail={"0": {}}), "status.trail is no list"),
        (lambda d: d["status"].update(trail=["x"]), "trail entry 0: it is numbered None"),
        (lambda d: d["metadata"].pop("uid"), "trail entry 0: it is not linked to the hash of the incident's uid"),
        (lambda d: d["status"]["steps"].append({**d["status"]["steps"][0], "action": "x"}), "3 steps with an intent"),
        (lambda d: d["status"].pop("plan"), "trail entry 11: it binds sha256:"),
        (lambda d: d["status"].pop("steps"), "trail entry 5: no step in status has the intent that it binds"),
        (lambda d: d["status"].pop("approvals"), "trail entry 13: the approvals in status are not those"),
    ],
)
def test_what_is_wrong_is_said(change: Any, says: str) -> None:
    """Beside the entries: the end of the trail, steps without an entry, and whatever status must hold and does not."""
    document = copy.deepcopy(LIFE[0])
    change(document)
    assert says in "; ".join(verify(document).problems)


def test_status_that_no_entry_records_is_found() -> None:
    """A plan, approvals and steps that were slipped into an incident without a decision."""
    early = incident(Phase.TRIAGED).dump()
    for name in ("plan", "approvals", "steps", "evidence", "corrections"):
        early["status"][name] = LIFE[0]["status"][name]
    assert verify(early).problems == [
        "status holds evidence, and no entry of the trail records it",
        "status holds plan, and no entry of the trail records it",
        "status holds approvals, and no entry of the trail records it",
        "status holds corrections, and no entry of the trail records them",
        "status holds 2 steps with an intent, and the trail records 0",
        "status holds 2 steps with an outcome, and the trail records 0",
    ]


def test_an_accepted_decision_that_no_entry_records_is_found() -> None:
    """The operator says that it went by it, and the trail does not know it."""
    extra = copy.deepcopy(LIFE[2])
    extra["metadata"] |= {"name": "approve-mallory", "uid": "u-mallory"}
    extra["spec"]["approver"]["username"] = "mallory"
    [problem] = checked([*LIFE, extra]).problems
    assert problem.startswith("IncidentApproval approve-mallory was accepted, and no entry of the trail records it")
    extra["status"]["verdict"] = "Refused"
    assert checked([*LIFE, extra]).holds


def test_a_break_of_the_chain_is_named_before_a_record_that_differs() -> None:
    """Behind the break nothing is vouched for, and the break is the first problem."""
    document = copy.deepcopy(LIFE[0])
    document["status"]["classification"]["summary"] = "all is well"
    document["status"]["trail"][5]["actor"] = "mallory"
    report = verify(document)
    assert [each.split(":")[0] for each in report.problems] == ["trail entry 5", "trail entry 0"]
    assert [each.index for each in report.entries if not each.vouched] == list(range(6, 18))


def test_a_field_of_a_newer_version_is_hashed() -> None:
    """An entry with a field that this version does not know holds, and altering that field is found."""
    document = copy.deepcopy(LIFE[0])
    last = document["status"]["trail"][-1]
    known = {name: value for name, value in last.items() if name not in ("prev", "hash")}
    document["status"]["trail"][-1] = link(last["prev"], {**known, "modelRuns": ["r1"]})
    document["status"]["head"] = document["status"]["trail"][-1]["hash"]
    assert verify(document).holds
    document["status"]["trail"][-1]["modelRuns"] = ["r2"]
    assert verify(document).problems[0].startswith("trail entry 17: it was altered")


def test_earlier_approvals_are_rebuilt_from_the_decisions_before_them() -> None:
    """An entry that was written with approvals other than those that were recorded right before it is named."""
    documents = copy.deepcopy(LIFE)
    rewritten(documents[0], 4, digest="sha256:" + "0" * 64)
    assert checked(documents).problems == [
        "trail entry 4: the approvals that were recorded before it are not those that it binds"
    ]


def test_a_plan_on_other_evidence_is_found() -> None:
    """A plan that hashes to its digest, with evidence that the stored diagnosis does not have."""
    document = copy.deepcopy(LIFE[0])
    plan = document["status"]["plan"]
    plan["evidenceDigest"] = "sha256:" + "e" * 64
    plan["digest"] = plan_digest_of(plan, incident_uid=document["metadata"]["uid"])
    plan["short"] = plan["digest"][7:19]
    rewritten(document, 11, digest=plan["digest"])
    assert verify(document).problems == [
        "trail entry 11: the stored evidence is not the evidence that the plan rests on"
    ]


@pytest.mark.parametrize("seq", [True, 1.5, "1", None])
def test_a_number_of_another_type_is_no_number(seq: Any) -> None:
    """JSON's true is not 1, although Python says so."""
    document = copy.deepcopy(LIFE[0])
    rewritten(document, 1, seq=seq)
    assert verify(document).problems[0].startswith(f"trail entry 1: it is numbered {seq!r}")


def test_a_statement_of_another_kind_does_not_stand_for_a_decision() -> None:
    """The same content as another kind of object is not what the entry records."""
    documents = copy.deepcopy(LIFE)
    documents[2]["kind"] = "IncidentReconciliation"
    assert str(checked(documents).entries[9].binding) == "absent: IncidentApproval of bob"


def rewritten(document: dict[str, Any], index: int, **changes: Any) -> None:
    """Change an entry, and hash it and all that follow anew, as somebody could who may write everything."""
    trail = document["status"]["trail"]
    for each in range(index, len(trail)):
        content = {name: value for name, value in trail[each].items() if name not in ("prev", "hash")}
        trail[each] = link(trail[each - 1]["hash"], {**content, **(changes if each == index else {})})
    document["status"]["head"] = trail[-1]["hash"]


def test_a_forged_entry_with_a_fresh_hash_is_found_at_the_next() -> None:
    """Who alters an entry must rewrite all that follow."""
    document = copy.deepcopy(LIFE[0])
    forged = document["status"]["trail"][3]
    forged["actor"] = "mallory"
    forged["hash"] = entry_hash(forged)
    assert verify(document).problems[0].startswith("trail entry 4: it is not linked to the hash of entry 3")


ANYWHERE = [(number, path) for number, document in enumerate(LIFE) for path in paths(document)]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300)
@given(target=st.sampled_from(ANYWHERE), value=json_values)
def test_no_document_makes_it_fail(target: tuple[int, Path_], value: Any) -> None:
    """Whatever stands where, in whichever document, the answer is a report that can be shown, not an exception."""
    number, path = target
    documents = copy.deepcopy(LIFE)
    at(documents[number], path[:-1])[path[-1]] = value
    result = run("verify", "-", stdin=json.dumps(documents[0]) + json.dumps({"kind": "List", "items": documents[1:]}))
    assert result.exit_code in (0, 1, 2)
    assert result.exception is None or isinstance(result.exception, SystemExit)


def dumped(documents: list[dict[str, Any]], form: str) -> str:
    listed = {"apiVersion": "v1", "kind": "List", "items": documents}
    match form:
        case "YAML documents":
            return yaml.safe_dump_all(documents)
        case "YAML List":
            return yaml.safe_dump(listed)
        case "JSON List":
            return json.dumps(listed)
        case _:
            return "\n".join(json.dumps(each, indent=1) for each in documents)


@pytest.mark.parametrize("form", ["YAML documents", "YAML List", "JSON List", "JSON documents"])
def test_verify_takes_every_form(form: str) -> None:
    """Documents, a List, YAML or JSON, from stdin: a line for each entry, one for each absent record, the verdict."""
    result = run("verify", "-", stdin=dumped(LIFE, form))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == 25
    assert lines[0] == "shop/checkout-latency-1, uid 11111111-1111-4111-8111-111111111111"
    assert lines[4] == (
        "   3  2026-01-31T12:00:40Z  Decided  Executing  Approved  alice  ok, matches: IncidentApproval approve-alice"
    )
    head = LIFE[0]["status"]["head"]
    assert lines[-1] == (f"HOLDS  shop/checkout-latency-1: 18 entries, 14 records match, 5 are absent; head {head}")
    assert [each.partition(" sha256:")[0] for each in lines[-6:-1]] == [
        "absent  entry 0: model run of the classification",
        "absent  entry 1: model run of the diagnosis",
        "absent  entry 2: earlier plan 1",
        "absent  entry 8: earlier plan 2",
        "absent  entry 11: model run of the plan",
    ]


def test_verify_takes_several_files(tmp_path: Path) -> None:
    """The incident from one, the statements from another; a broken incident among them decides the exit code."""
    broken = json.loads(json.dumps(LIFE[0]).replace('"actor": "alice"', '"actor": "mallory\\u001b[2J"'))
    for name, documents in (("i.yaml", LIFE[:1]), ("s.json", LIFE[1:]), ("b.yaml", [broken])):
        (tmp_path / name).write_text(dumped(documents, "JSON List" if name.endswith("json") else "YAML List"))
    files = [str(tmp_path / name) for name in ("i.yaml", "s.json", "b.yaml")]
    assert run("verify", *files[:2]).exit_code == 0
    result = run("verify", *files)
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    lines = result.stdout.splitlines()
    assert next(each for each in lines if each.startswith("BROKEN")).startswith(
        "BROKEN  shop/checkout-latency-1: trail entry 3: it was altered: its content hashes to sha256:"
    )
    assert sum("not vouched for" in each for each in lines) == 14


def test_the_head_may_be_compared_with_one_that_was_noted() -> None:
    """A trail whose end was cut off together with all that it binds holds in itself; the head tells."""
    before = history(Phase.TRIAGED)[-1].dump() | {"kind": "Incident", "apiVersion": LIFE[0]["apiVersion"]}
    head = before["status"]["head"]
    assert run("verify", "-", "--head", head, stdin=json.dumps(before)).exit_code == 0
    result = run("verify", "-", "--head", "sha256:" + "0" * 64, stdin=json.dumps(before))
    assert result.exit_code == 1
    assert f"the head is {head}, not sha256:000" in result.stdout
    assert run("verify", "-", "--head", head, stdin=json.dumps(before) * 2).exit_code == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no Incident"),
        ("kind: Incident\napiVersion: v1\n", "there is no Incident"),
        ("[1]", "not a mapping"),
        ("a: &x [1]\nb: *x\n", "aliases"),
        ("a: 1\na: 2\n", "key 'a' is given twice"),
        ('{"a": 1, "a": 2}', "key 'a' is given twice"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ("1: x\n", "a key is no text"),
        ("a: !!binary aGk=\n", "which JSON does not have"),
        ("a: !!python/name:os.system x\n", "no YAML"),
        ("a: !!bool zz\n", "it has the tag tag:yaml.org,2002:bool, which JSON does not have"),
        ("a: !!timestamp xx\n", "it has the tag tag:yaml.org,2002:timestamp, which JSON does not have"),
        ("a: !!map [[b, c]]\n", "it has the tag tag:yaml.org,2002:map, which JSON does not have"),
        ("!!seq x: 1\n", "it has the tag tag:yaml.org,2002:seq, which JSON does not have"),
        ("a: [", "no YAML"),
        ('{"a": ', "cannot be read"),
        ("a: " + "[" * 101 + "]" * 101, "nested too deep"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
    ],
)
def test_what_is_no_export_is_wrong_usage(text: str, says: str) -> None:
    """Exit code 2, and a sentence."""
    result = run("verify", "-", stdin=text)
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    """It is named; so is one that is no text."""
    assert "No such file" in run("verify", str(tmp_path / "no")).stderr
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    result = run("verify", str(tmp_path / "bytes"))
    assert (result.exit_code, "cannot be read" in result.stderr) == (2, True)
    assert run("verify").exit_code == 2


def test_plain_scalars_are_read_as_json_has_them() -> None:
    """A time stays text, `on` and octals too, and an exponent without a dot is a number."""
    text = "t: 2026-01-31T12:00:00Z\nd: 2026-01-31\non: on\no: 017\nb: 0b1\ns: 12:30:00\n"
    text += "e: 1e-05\nn: null\nf: 0.5\ni: -3\nz:\n"
    assert objects(text) == [
        {
            "t": "2026-01-31T12:00:00Z", "d": "2026-01-31", "on": "on", "o": "017", "b": "0b1", "s": "12:30:00",
            "e": 1e-05, "n": None, "f": 0.5, "i": -3, "z": None,
        }
    ]  # fmt: skip


def test_a_digest_that_looks_like_a_number_stays_text() -> None:
    """Twelve hex digits may be 123456e78901: written in quotes, so that nobody reads a number."""
    assert yaml_text({"short": "123456e78901"}) == "short: '123456e78901'\n"


documents_of_text = st.dictionaries(
    st.text(), st.text() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False), max_size=5
)


@given(documents_of_text)
def test_what_yaml_and_json_write_is_read_back(document: dict[str, Any]) -> None:
    """Any text as key or value, and numbers, come back as they were, by both forms."""
    assert objects(json.dumps(document)) == [document]
    assert objects(yaml_text(document)) == [document]
    assert yaml.safe_load(yaml_text(document)) == document


def server(**paths: Answer) -> Any:
    def answer(method: str, path: str, body: dict[str, Any]) -> Answer:
        del body
        of = {INCIDENT_PATH: "incident", APPROVALS_PATH: "approvals", RECONCILIATIONS_PATH: "reconciliations"}
        return paths[of[path]] if method == "GET" and path in of else failure(404, "not found", name="x")

    return answer


def items(*documents: dict[str, Any]) -> Answer:
    """A list as the API server answers it: its items name no kind."""
    return 200, {"items": [{k: v for k, v in each.items() if k not in ("kind", "apiVersion")} for each in documents]}


LEFT_OUT = (
    "Note: the full records are left out: model runs, and plans that were replaced; give them with --records. "
    "In the operator's pod: praxis records export 11111111-1111-4111-8111-111111111111\n"
)


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_an_export_holds_all_that_the_trail_binds(answering: Answering, tmp_path: Path, suffix: str) -> None:
    """The incident without managedFields, the statements on it and no others; it verifies offline."""
    stored = copy.deepcopy(LIFE[0])
    stored["metadata"]["managedFields"] = [{"manager": "x"}]
    other = copy.deepcopy(LIFE[1])
    other["spec"]["incidentRef"]["uid"] = "another"
    answering.answer = server(
        incident=(200, stored), approvals=items(*LIFE[1:4], other), reconciliations=items(LIFE[4])
    )
    file = tmp_path / f"export{suffix}"
    result = run("export", "checkout-latency-1", "-o", str(file), "--kubeconfig", str(answering.kubeconfig))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", LEFT_OUT)
    assert objects(file.read_text()) == LIFE
    assert file.read_text().startswith("{" if suffix == ".json" else "apiVersion: v1\nkind: List\n")
    assert [path for _, path in answering.asked] == [APPROVALS_PATH, RECONCILIATIONS_PATH, INCIDENT_PATH]
    verdict = run("verify", str(file))
    assert (verdict.exit_code, "14 records match, 5 are absent" in verdict.stdout) == (0, True)


def test_an_export_without_what_may_not_be_read_says_so(answering: Answering) -> None:
    """Statements that the user may not list are left out, and named on stderr; stdout is the export."""
    answering.answer = server(
        incident=(200, LIFE[0]), approvals=failure(403, "cannot list approvals"), reconciliations=items(LIFE[4])
    )
    result = run("export", "checkout-latency-1", "--kubeconfig", str(answering.kubeconfig))
    assert result.exit_code == 0
    assert result.stderr == "Note: incidentapprovals are left out: cannot list approvals\n" + LEFT_OUT
    assert objects(result.stdout) == [LIFE[0], LIFE[4]]


@pytest.mark.parametrize("broken", ["incident", "approvals"])
def test_an_export_that_cannot_be_whole_is_none(answering: Answering, broken: str) -> None:
    """An API server that does not answer gives no export with less in it."""
    answers: dict[str, Answer] = {"incident": (200, LIFE[0]), "approvals": items(), "reconciliations": items()}
    answering.answer = server(**{**answers, broken: (503, "away")})
    result = run("export", "checkout-latency-1", "--kubeconfig", str(answering.kubeconfig))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "answered 503" in result.stderr


def test_every_incident_that_the_models_take_is_the_same_document() -> None:
    """What is verified here is what the API server would store: parsing and dumping changes nothing."""
    assert Incident.parse(LIFE[0]).dump()["status"] == LIFE[0]["status"]
