"""Whatever goes wrong with the API server, a person reads one sentence and a script gets an exit code; no traceback."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from praxis.cli import main
from tests.builders import incident, plan, reconciliation, target
from tests.cli.conftest import Answer, Answering, kubeconfig

INCIDENT_PATH = "/apis/praxis.kopachelli.dev/v1alpha1/namespaces/shop/incidents/checkout-latency-1"
APPROVALS_PATH = "/apis/praxis.kopachelli.dev/v1alpha1/namespaces/shop/incidentapprovals"
REVIEW_PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def run(*arguments: str, kubeconfig: Path, **env: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--kubeconfig", str(kubeconfig)], env={"COLUMNS": "200", **env})


def failure(status: int, message: str, **details: Any) -> tuple[int, dict[str, Any]]:
    return status, {"kind": "Status", "status": "Failure", "message": message, "details": details, "code": status}


def healthy(method: str, path: str, body: dict[str, Any]) -> Answer:
    """An API server with the incident, and alice."""
    del body
    match method, path:
        case "GET", path if path == INCIDENT_PATH:
            return 200, incident().dump()
        case "POST", path if path == REVIEW_PATH:
            return 201, {"status": {"userInfo": {"username": "alice"}}}
        case _:
            return failure(404, "not found", name="x")


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        pytest.param(
            failure(404, 'incidents "checkout-latency-1" not found', name="checkout-latency-1"),
            1,
            'incidents "checkout-latency-1" not found',
            id="no such incident",
        ),
        pytest.param((404, "404 page not found"), 1, "PRAXIS is not installed", id="no such resource"),
        pytest.param(failure(401, "Unauthorized"), 1, "log in again", id="unknown user"),
        pytest.param(failure(403, 'User "carol" cannot get resource'), 1, 'User "carol" cannot get', id="forbidden"),
        pytest.param(
            (502, "<html>Bad Gateway</html>"), 1, "answered 502: <html>Bad Gateway</html>", id="a proxy's 502"
        ),
        pytest.param(failure(429, "slow down"), 1, "answered 429: slow down", id="throttled"),
        pytest.param(None, 1, "gave no answer", id="dropped connection"),
        pytest.param(
            (200, {**incident().dump(), "spec": {}}), 1, "stored by another version of PRAXIS", id="another schema"
        ),
        pytest.param(failure(403, "no\x1b[2J\nError: all is well"), 1, "Error: no Error: all is well", id="hostile"),
    ],
)
@pytest.mark.parametrize("command", [("show",), ("approve", "--yes"), ("reconcile", "--observed=applied", "--note=x")])
def test_every_failure_is_a_sentence(
    answering: Answering, command: tuple[str, ...], answer: Answer, code: int, says: str
) -> None:
    """Each command says what went wrong on stderr, in one line, and exits with the documented code."""
    answering.answer = lambda method, path, body: answer if not path.startswith(REVIEW_PATH) else None
    result = run(command[0], "checkout-latency-1", *command[1:], kubeconfig=answering.kubeconfig)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """A refused connection says which server could not be reached."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig(f"http://127.0.0.1:{port}")))
    result = run("show", "x", kubeconfig=path)
    assert result.exit_code == 1
    assert f"Error: the API server at http://127.0.0.1:{port} cannot be reached" in result.stderr


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="absent"),
        pytest.param("", id="empty"),
        pytest.param("{", id="not YAML"),
        pytest.param("[]", id="not a mapping"),
        pytest.param("apiVersion: v1\nkind: Config\n", id="without contexts"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used(tmp_path: Path, content: str | None) -> None:
    """It is named, with what to do."""
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    result = run("show", "x", kubeconfig=path)
    assert result.exit_code == 1
    assert f"Error: kubeconfig {path} cannot be used" in result.stderr
    assert "--kubeconfig or KUBECONFIG" in result.stderr


def test_an_unknown_context(answering: Answering) -> None:
    """A context that the kubeconfig does not have is a failure, not the current one instead."""
    result = run("show", "x", "--context", "nope", kubeconfig=answering.kubeconfig)
    assert result.exit_code == 1
    assert "nope" in result.stderr
    assert answering.asked == []


def test_the_environment_names_the_kubeconfig_and_the_context_the_namespace(answering: Answering) -> None:
    """KUBECONFIG counts when it is set, and the context's namespace is used unless -n is given."""
    answering.answer = healthy
    env = {"KUBECONFIG": str(answering.kubeconfig), "COLUMNS": "200"}
    assert CliRunner().invoke(main, ["show", "checkout-latency-1"], env=env).exit_code == 0
    assert CliRunner().invoke(main, ["show", "checkout-latency-1", "-n", "other"], env=env).exit_code == 1
    assert answering.asked == [("GET", INCIDENT_PATH), ("GET", INCIDENT_PATH.replace("/shop/", "/other/"))]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["approve"], "INCIDENT", id="no incident"),
        pytest.param(["approve", "x", "--expires-in", "soon"], "'soon' is no duration", id="no duration"),
        pytest.param(["approve", "x", "--expires-in", "0s"], "'0s' is no duration", id="no time at all"),
        pytest.param(["approve", "x", "--expires-in", ""], "'' is no duration", id="empty duration"),
        pytest.param(["approve", "x", "--plan", "abcde"], "at least six", id="five digits"),
        pytest.param(["approve", "x", "--plan", "sha256:xyzxyz"], "no plan digest", id="no digits"),
        pytest.param(["approve", "x", "-o", "wide"], "wide", id="no such output"),
        pytest.param(["approve", "x", "--correction", "y"], "--correction", id="corrections belong to revise"),
        pytest.param(["revise", "x"], "--correction", id="revise without a correction"),
        pytest.param(["reconcile", "x", "--observed", "maybe", "--note", "y"], "maybe", id="no such observation"),
        pytest.param(["reconcile", "x", "--observed", "applied"], "--note", id="no note"),
    ],
)
def test_wrong_usage_asks_nobody(answering: Answering, arguments: list[str], says: str) -> None:
    """Exit code 2, what is wrong, and no request."""
    result = run(*arguments, kubeconfig=answering.kubeconfig)
    assert result.exit_code == 2
    assert says in result.stderr
    assert answering.asked == []


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        pytest.param(["--reason", "x" * 1025], "reason", id="a reason of 1025 characters"),
        pytest.param(["--correction", "x" * 1025], "corrections", id="a correction of 1025 characters"),
        pytest.param(["--correction", "x"] * 8, "corrections", id="nine corrections"),
    ],
)
def test_what_the_schema_would_refuse_is_wrong_usage(answering: Answering, extra: list[str], says: str) -> None:
    """A text that is too long is named before anything is created."""
    answering.answer = healthy
    result = run("revise", "checkout-latency-1", "--correction", "y", "--yes", *extra, kubeconfig=answering.kubeconfig)
    assert result.exit_code == 2
    assert says in result.stderr
    assert ("POST", APPROVALS_PATH) not in answering.asked


def test_without_a_terminal_nothing_happens_without_yes(answering: Answering) -> None:
    """It is shown, and then there is nobody to ask: exit code 2, nothing created."""
    answering.answer = healthy
    result = run("approve", "checkout-latency-1", kubeconfig=answering.kubeconfig)
    assert result.exit_code == 2
    assert "Sets PRAXIS_RESTART_ID in the environment of function checkout" in result.stdout
    assert "add --yes" in result.stderr
    assert ("POST", APPROVALS_PATH) not in answering.asked


class Store:
    """An API server that stores approvals; how it answers the creation is the test's."""

    def __init__(self, created: Answer, *, stores: bool, then: Answer | None = None) -> None:
        self.created, self.stores, self.then = created, stores, then
        self.approval: dict[str, Any] | None = None

    def __call__(self, method: str, path: str, body: dict[str, Any]) -> Answer:
        if path == APPROVALS_PATH:
            self.approval = {**body, "status": VERDICT} if self.stores else None
            return self.created
        if path.startswith(APPROVALS_PATH):
            return self.then or ((200, self.approval) if self.approval else failure(404, "no such", name="x"))
        return healthy(method, path, body)


VERDICT = {"verdict": "Accepted", "reason": "Accepted", "message": "plan runs"}


@pytest.mark.parametrize(
    ("store", "code", "says"),
    [
        pytest.param(Store(None, stores=True), 0, "Accepted: plan runs", id="lost, stored"),
        pytest.param(Store((504, "timeout"), stores=True), 0, "Accepted: plan runs", id="timed out, stored"),
        pytest.param(Store(None, stores=False), 1, "Nothing was created", id="lost, not stored"),
        pytest.param(Store(failure(429, "later"), stores=False), 1, "429", id="throttled"),
        pytest.param(
            Store(None, stores=True, then=(503, "away")), 3, "look before you repeat it", id="lost, and nobody to ask"
        ),
        pytest.param(
            Store((201, {}), stores=True, then=(503, "away")),
            3,
            "No verdict yet: the API server",
            id="stored, then away",
        ),
        pytest.param(
            Store((201, {}), stores=True, then=failure(403, "cannot get")),
            3,
            "cannot be read",
            id="stored, not readable",
        ),
    ],
)
def test_a_lost_answer_is_settled_by_reading(answering: Answering, store: Store, code: int, says: str) -> None:
    """Nothing is sent twice; whether it was created is read, or said to be unknown."""
    answering.answer = store
    result = run("approve", "checkout-latency-1", "--yes", "--timeout", "0", kubeconfig=answering.kubeconfig)
    assert result.exit_code == code, result.output
    assert says in result.output
    assert answering.asked.count(("POST", APPROVALS_PATH)) == 1


def test_a_plan_that_is_replaced_while_it_is_read_is_not_approved(answering: Answering) -> None:
    """Between showing and creating it is read again; another plan means that nothing is created."""
    reads = iter([incident(), incident(draft=lambda **_: plan(revision=2))])

    def answer(method: str, path: str, body: dict[str, Any]) -> Answer:
        return (200, next(reads).dump()) if path == INCIDENT_PATH else healthy(method, path, body)

    answering.answer = answer
    result = run("approve", "checkout-latency-1", "--yes", kubeconfig=answering.kubeconfig)
    assert result.exit_code == 1
    assert f"it is now {plan(revision=2).digest}; nothing was created" in result.stderr
    assert ("POST", APPROVALS_PATH) not in answering.asked


def test_an_incident_that_is_gone_is_reconciled_by_its_holder(answering: Answering) -> None:
    """A target that is held by a vanished incident tells which intent to speak of."""
    created: list[dict[str, Any]] = []
    holder = {
        "incidentUid": "11111111-1111-4111-8111-111111111111",
        "incidentName": "checkout-latency-1",
        "revision": 1,
        "intentId": "intent-00000001",
        "writer": "writer-a",
        "claimedAt": "2026-01-31T12:00:00Z",
    }

    def answer(method: str, path: str, body: dict[str, Any]) -> Answer:
        if path.endswith("/remediationtargets"):
            return 200, {"items": [{**target().dump(), "status": {"holder": holder}}]}
        if path.endswith("/incidentreconciliations"):
            created.append(body)
            return 201, body
        if path == INCIDENT_PATH:
            return failure(404, "gone", name="checkout-latency-1")
        return healthy(method, path, body)

    answering.answer = answer
    result = run(
        "reconcile",
        "checkout-latency-1",
        "--observed",
        "not-applied",
        "--note",
        "no marker",
        "--yes",
        kubeconfig=answering.kubeconfig,
    )
    assert result.exit_code == 0, result.output
    [document] = created
    assert document["spec"]["incidentRef"] == {
        "name": "checkout-latency-1",
        "uid": "11111111-1111-4111-8111-111111111111",
    }
    assert (document["spec"]["intentId"], document["spec"]["observed"]) == ("intent-00000001", "NotApplied")
    assert set(document["spec"]) == set(reconciliation().dump()["spec"])
