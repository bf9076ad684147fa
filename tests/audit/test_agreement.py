"""The trail and the API server's audit log, written by different programs, agree on who decided; if not, it shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from praxis.cli import main
from praxis.cli.audit import Creation, creations
from tests.audit.lives import Done

pytestmark = [pytest.mark.e2e, pytest.mark.controlplane]

APPROVALS, RECONCILIATIONS = "incidentapprovals", "incidentreconciliations"


def exported(done: Done, index: int, directory: Path) -> Path:
    """What a person who may look exports of one of the incidents."""
    file = directory / f"{index}.yaml"
    incident = done.incidents[index].metadata
    result = CliRunner().invoke(
        main,
        ["trail", "export", incident.name, "-n", incident.namespace, "--kubeconfig", str(done.stack.person("victor")),
         "-o", str(file)],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return file


def audited(*files: Path, log: Path) -> Result:
    """`praxis audit`, without a cluster."""
    arguments = ["audit", *map(str, files), "--audit-log", str(log)]
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "300", "KUBECONFIG": "/none"})


def told(result: Result) -> list[tuple[str, str, str]]:
    """Actor, finding and who the log names, of each line about a decision."""
    rows = [line.split("  ") for line in result.stdout.splitlines() if ": " in line and "uid" not in line]
    return [(row[-2], row[-1].split(": ")[0], row[-1].rsplit(" ", maxsplit=1)[-1]) for row in rows]


def test_they_agree(done: Done, tmp_path: Path) -> None:
    """Of every approval, revision, rejection, dismissal and reconciliation of whole lives, by name."""
    files = [exported(done, index, tmp_path) for index in range(3)]
    result = audited(*files, log=done.stack.plane.audit_log)
    assert result.exit_code == 0, result.output
    assert told(result) == [(person, "agrees", person) for person in ("alice", "bob", "carol", "dave", "erin", "frank")]
    trails = {entry.actor for incident in done.incidents for entry in incident.status.trail if entry.actor}
    created = {each.username for each in creations(done.stack.plane.audit_log.read_text().splitlines())}
    assert created - {"admin"} == {"alice", "bob", "carol", "dave", "erin", "frank"}
    assert created - {"admin"} == {each for each in trails if ":" not in each}


def test_what_is_applied_is_created(done: Done) -> None:
    """Server-side apply, as Argo CD and Flux do it, is logged as a patch; it creates once."""
    [applied] = [
        each for each in creations(done.stack.plane.audit_log.read_text().splitlines()) if each.name == "applied"
    ]
    assert (applied.plural, applied.namespace, applied.username) == (APPROVALS, done.stack.namespace, "admin")
    logged = [each for each in done.events() if (each.get("objectRef") or {}).get("name") == "applied"]
    verbs = [(each["verb"], each["responseStatus"]["code"]) for each in logged if each["verb"] != "get"]
    assert verbs == [("patch", 201), ("patch", 200)]


def bent(done: Done, tmp_path: Path, change: Any) -> Path:
    """The log with every event passed through `change`; None drops it."""
    log = tmp_path / "bent.log"
    events = [change(event) for event in done.events()]
    log.write_text("".join(json.dumps(event) + "\n" for event in events if event is not None))
    return log


def created(event: dict[str, Any], plural: str) -> bool:
    return bool(event["verb"] == "create" and event.get("objectRef", {}).get("resource") == plural)


def test_another_author_is_noticed(done: Done, tmp_path: Path) -> None:
    """The log names mallory where the trail names alice: exit code 1, and both are named."""

    def change(event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "user": {"username": "mallory"}} if created(event, APPROVALS) else event

    result = audited(exported(done, 0, tmp_path), log=bent(done, tmp_path, change))
    assert result.exit_code == 1
    assert told(result) == [("alice", "DIFFERS", "mallory")]


def test_who_acts_as_another_is_noticed(done: Done, tmp_path: Path) -> None:
    """An impersonated approver did not approve."""

    def change(event: dict[str, Any]) -> dict[str, Any]:
        if not created(event, APPROVALS):
            return event
        return {**event, "user": {"username": "admin"}, "impersonatedUser": event["user"]}

    result = audited(exported(done, 0, tmp_path), log=bent(done, tmp_path, change))
    assert result.exit_code == 1
    assert "was created by admin, acting as alice" in result.stdout


def test_a_gap_in_the_log_is_not_agreement(done: Done, tmp_path: Path) -> None:
    """What neither says yes nor no is told apart: exit code 3."""
    log = bent(done, tmp_path, lambda event: None if created(event, RECONCILIATIONS) else event)
    result = audited(exported(done, 2, tmp_path), log=log)
    assert result.exit_code == 3
    assert told(result)[0][:2] == ("erin", "agrees")
    assert "unknown: the log does not hold the creation of IncidentReconciliation" in result.stdout


def test_a_statement_that_is_not_there_is_not_agreement(done: Done, tmp_path: Path) -> None:
    """The incident's YAML alone does not say which object an entry binds."""
    file = tmp_path / "alone.yaml"
    incident = done.incidents[0].metadata
    file.write_text(
        done.stack.plane.kubectl("get", "incident", incident.name, "-n", incident.namespace, "-o", "yaml").stdout
    )
    result = audited(file, log=done.stack.plane.audit_log)
    assert result.exit_code == 3
    assert "the IncidentApproval that it binds is not in the files" in result.stdout


def test_a_file_without_an_incident_is_a_wrong_use(done: Done, tmp_path: Path) -> None:
    """Exit code 2, before anything is compared."""
    file = tmp_path / "none.yaml"
    file.write_text("apiVersion: v1\nkind: List\nitems: []\n")
    assert audited(file, log=done.stack.plane.audit_log).exit_code == 2


def test_only_what_was_created_counts() -> None:
    """Refused creations, dry runs, other verbs, status, other groups and lines of other programs are no creations."""
    about = {"apiGroup": "praxis.kopachelli.dev", "resource": APPROVALS, "namespace": "shop", "name": "a"}
    event = {"verb": "create", "objectRef": about, "responseStatus": {"code": 201}, "user": {"username": "alice"}}
    others = [
        {**event, "responseStatus": {"code": 403}},
        {**event, "verb": "patch", "responseStatus": {"code": 200}},
        {**event, "verb": "delete"},
        {**event, "requestURI": "/apis/praxis.kopachelli.dev/v1alpha1/namespaces/shop/incidentapprovals?dryRun=All"},
        {**event, "objectRef": {**about, "subresource": "status"}},
        {**event, "objectRef": {**about, "apiGroup": "example.com"}},
        {**event, "objectRef": {**about, "resource": "incidents"}},
        {**event, "objectRef": None},
        [], 1, None,
    ]  # fmt: skip
    lines = [*(json.dumps(each) for each in others), "", "not JSON", "[" * 10_000, json.dumps(event)]
    assert list(creations(lines)) == [Creation(APPROVALS, "shop", "a", "alice")]
