"""Which creation in an audit log vouches for a trail entry, without a cluster: GitOps, forgeries, gaps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from praxis.api.records import statement_digest
from praxis.cli import main
from praxis.cli.audit import Compared, compare, creations

GROUP = "praxis.kopachelli.dev"
ARGOCD = "system:serviceaccount:argocd:argocd-application-controller"
FLUX = "system:serviceaccount:flux-system:kustomize-controller"
OTHERS = f"IncidentApproval a, signed, was passed on for alice by {ARGOCD}, an account that is not named; if it may, "

Document = dict[str, Any]


def approval(name: str = "a", uid: str = "u", *, signature: str | None = None, **metadata: Any) -> Document:
    spec = {"approver": {"username": "alice"}, "expiresAt": "2026-01-31T13:00:00Z"}
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "IncidentApproval",
        "metadata": {
            "name": name, "namespace": "shop", "uid": uid, "creationTimestamp": "2026-01-31T12:00:00Z", **metadata,
        },
        "spec": {**spec, "signature": signature} if signature else spec,
    }  # fmt: skip


def incident(*statements: Document, uid: str = "incident", **status: Any) -> Document:
    """One whose trail records that alice said these."""
    trail = [
        {
            "kind": "Decided",
            "reason": "Approved",
            "actor": "alice",
            "time": "2026-01-31T12:00:05Z",
            "digest": statement_digest(each),
        }
        for each in statements
    ]
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "Incident",
        "metadata": {"name": uid, "namespace": "shop", "uid": uid},
        "status": {"trail": trail, **status},
    }


def event(username: str = "alice", name: str = "a", **changes: Any) -> Document:
    """A creation, as the API server logs it."""
    return {
        "verb": "create",
        "objectRef": {"apiGroup": GROUP, "resource": "incidentapprovals", "namespace": "shop", "name": name},
        "responseStatus": {"code": 201},
        "user": {"username": username},
        "requestReceivedTimestamp": "2026-01-31T12:00:00.400000Z",
        "stageTimestamp": "2026-01-31T12:00:00.500000Z",
        **changes,
    }


def compared(on: Document, said: list[Document], events: list[Document], **options: Any) -> list[Compared]:
    return compare(on, said, list(creations(map(json.dumps, events))), **options)


def one(said: Document, *events: Document, **options: Any) -> tuple[str, str]:
    """Finding and detail of an incident's only decision."""
    [found] = compared(incident(said), [said], list(events), **options)
    return found.finding.value, found.detail


@pytest.mark.parametrize("verb", ["create", "patch", "update"])
def test_whoever_applies_creates(verb: str) -> None:
    """`kubectl apply --server-side` patches what is not there; the code says that it was created."""
    assert one(approval(), event(verb=verb)) == ("agrees", "IncidentApproval a was created by alice")
    assert one(approval(), event("mallory", verb=verb)) == ("DIFFERS", "IncidentApproval a was created by mallory")


def test_applying_again_creates_nothing() -> None:
    """A patch of what is there has another code."""
    again = event(ARGOCD, verb="patch", responseStatus={"code": 200})
    assert one(approval(), event(), again) == ("agrees", "IncidentApproval a was created by alice")


@pytest.mark.parametrize("verb", ["create", "patch"])
def test_a_signed_decision_may_be_passed_on(verb: str) -> None:
    """By an account that is named; by another, it says which option to give."""
    signed, passed = approval(signature="S"), event(ARGOCD, verb=verb)
    assert one(signed, passed) == ("DIFFERS", f"{OTHERS}give --passed-on-by {ARGOCD}")
    assert one(signed, passed, passed_on_by=[FLUX]) == ("DIFFERS", f"{OTHERS}give --passed-on-by {ARGOCD}")
    assert one(signed, passed, passed_on_by=[FLUX, ARGOCD]) == (
        "agrees",
        f"IncidentApproval a, signed, was passed on by {ARGOCD} for alice",
    )


def test_an_unsigned_decision_is_nobodys_to_pass_on() -> None:
    """Without a signature nothing says that it is alice's."""
    assert one(approval(), event(ARGOCD), passed_on_by=[ARGOCD]) == (
        "DIFFERS",
        f"IncidentApproval a was created by {ARGOCD}",
    )


def test_who_passes_on_as_another_is_named_too() -> None:
    """Flux impersonates a tenant's account: both must be named; who acts as the person stays a finding."""
    signed, tenant = approval(signature="S"), "system:serviceaccount:shop:applier"
    passed = event(FLUX, verb="patch", impersonatedUser={"username": tenant})
    assert one(signed, passed, passed_on_by=[tenant])[1].endswith(f"; if it may, give --passed-on-by {FLUX}")
    assert one(signed, passed, passed_on_by=[tenant, FLUX]) == (
        "agrees",
        f"IncidentApproval a, signed, was passed on by {FLUX}, acting as {tenant} for alice",
    )
    acting = event("admin", impersonatedUser={"username": "alice"})
    assert one(signed, acting, passed_on_by=["admin", "alice"]) == (
        "DIFFERS",
        "IncidentApproval a was created by admin, acting as alice",
    )


FORGED = [event("mallory"), event(name="other", requestReceivedTimestamp="2026-01-29T12:00:00Z", stageTimestamp=None)]


@pytest.mark.parametrize("stamped", ["2026-01-31T12:00:00Z", "2026-01-29T12:00:00Z", None])
def test_a_renamed_statement_borrows_no_creation(stamped: str | None) -> None:
    """Another of alice's is of another time; also when the file's creationTimestamp was changed with the name."""
    forged = approval("other", creationTimestamp=stamped)
    finding, detail = one(forged, *FORGED)
    assert finding == "unknown"
    assert detail == (
        "the log does not hold the creation of IncidentApproval other, but one at 2026-01-29T12:00:00Z by alice, "
        "which is another's by its time"
    )


def test_what_was_created_after_the_entry_is_not_what_it_records() -> None:
    """Clocks may differ by minutes, not by an hour."""
    late = {"requestReceivedTimestamp": "2026-01-31T12:30:00Z", "stageTimestamp": "2026-01-31T12:30:00Z"}
    assert one(approval(creationTimestamp=None), event(**late))[0] == "unknown"


def test_the_incident_knows_the_names_of_approvals() -> None:
    """Those that it carries out are copied with their names."""
    forged = approval("other")
    on = incident(forged, approvals=[{"uid": "u", "name": "a"}])
    [found] = compared(on, [forged], [event("mallory"), event(name="other")])
    assert (found.finding.value, found.detail) == (
        "DIFFERS",
        "IncidentApproval other was renamed in the files: the incident has it as a",
    )


def test_a_statement_under_two_names_is_not_known() -> None:
    """Neither name is bound."""
    [found] = compared(incident(approval()), [approval(), approval("other")], [event(), event(name="other")])
    assert (found.finding.value, found.detail) == (
        "unknown",
        "IncidentApproval a is in the files under two names or times of creation",
    )


def test_a_uid_in_the_log_decides() -> None:
    """From level RequestResponse on the log has it, and the entry's digest covers it."""
    forged = approval("other")
    events = [
        event("mallory", responseObject={"metadata": {"uid": "u"}}),
        event(name="other", responseObject={"metadata": {"uid": "v"}}),
    ]
    assert one(forged, *events) == ("DIFFERS", "IncidentApproval other was created by mallory")
    assert one(forged, events[1]) == ("unknown", "the log does not hold the creation of IncidentApproval other")


def test_one_creation_vouches_for_one_decision() -> None:
    """Two entries that lean on it are both refused; the same entry from two files is one."""
    first, second = approval(uid="u"), approval(uid="v")
    found = compared(incident(first, second), [first, second], [event()])
    told = "IncidentApproval a was created by alice, and another decision leans on that creation too"
    assert [(each.finding.value, each.detail) for each in found] == [("DIFFERS", told)] * 2
    [same] = compared(incident(first), [first, first], [event(), event()])
    assert same.finding.value == "agrees"


def test_a_name_that_was_used_again_is_told_by_its_times() -> None:
    """Created, deleted, and created anew: two creations for two decisions."""
    later = {"requestReceivedTimestamp": "2026-01-31T12:00:03.1Z", "stageTimestamp": "2026-01-31T12:00:03.2Z"}
    first, second = approval(uid="u"), approval(uid="v", creationTimestamp="2026-01-31T12:00:03Z")
    found = compared(incident(first, second), [first, second], [event(), event(**later)])
    assert [each.finding.value for each in found] == ["agrees", "agrees"]


def audit(tmp_path: Path, documents: list[Any], events: list[Document], *options: str) -> Result:
    (tmp_path / "files.json").write_text(json.dumps({"kind": "List", "items": documents}))
    (tmp_path / "audit.log").write_text("".join(json.dumps(each) + "\n" for each in events))
    arguments = ["audit", str(tmp_path / "files.json"), "--audit-log", str(tmp_path / "audit.log"), *options]
    return CliRunner().invoke(main, arguments)


def test_the_option_names_accounts(tmp_path: Path) -> None:
    """Exit code 1 without it, 0 with it."""
    signed = approval(signature="S")
    documents, events = [incident(signed), signed], [event(ARGOCD, verb="patch")]
    result = audit(tmp_path, documents, events)
    assert result.exit_code == 1
    assert f"give --passed-on-by {ARGOCD}\n" in result.stdout
    result = audit(tmp_path, documents, events, "--passed-on-by", FLUX, "--passed-on-by", ARGOCD)
    assert result.exit_code == 0
    assert result.stdout == (
        "shop/incident, uid incident\n"
        "  2026-01-31T12:00:05Z  Decided  Approved  alice  agrees: IncidentApproval a, signed, was passed on by "
        "system:serviceaccount:argocd:argocd-application-controller for alice\n"
    )


def test_entries_of_two_incidents_lean_on_one_creation(tmp_path: Path) -> None:
    """Each alone agrees; together they do not. One incident that is given twice is one."""
    first, second = approval(uid="u"), approval(uid="v")
    result = audit(tmp_path, [incident(first), first, incident(second, uid="two"), second], [event()])
    assert (result.exit_code, result.stdout.count("another decision leans on that creation too")) == (1, 2)
    assert audit(tmp_path, [incident(first), first, incident(first), first], [event()]).exit_code == 0


@pytest.mark.parametrize(
    "status",
    [[1], None, {}, {"trail": []}, {"trail": {}}, {"trail": [1]}, {"trail": [{"kind": "decided"}]},
     {"trail": [{"kind": [1]}]}],
)  # fmt: skip
def test_an_incident_without_a_trail_does_not_agree(tmp_path: Path, status: Any) -> None:
    """Exit code 3, and it is said."""
    result = audit(tmp_path, [{**incident(), "status": status}], [event()])
    assert result.exit_code == 3, result.output
    assert result.stdout.endswith("  unknown: it has no trail that can be read, so nothing was compared\n")


def test_tags_are_wrong_usage(tmp_path: Path) -> None:
    """Not exit code 1, which says that somebody else decided."""
    (tmp_path / "tagged.yaml").write_text("a: !!timestamp xx\n")
    (tmp_path / "audit.log").write_text("")
    log = str(tmp_path / "audit.log")
    result = CliRunner().invoke(main, ["audit", str(tmp_path / "tagged.yaml"), "--audit-log", log])
    assert (result.exit_code, "which JSON does not have" in result.stderr) == (2, True)
