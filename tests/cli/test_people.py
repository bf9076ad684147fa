"""People decide, reconcile and read on a real API server, with the installed roles and policies, each as themselves.

The operator is played by a thread with the operator's own identity: it judges what is stored with `praxis.approval`,
and writes the verdict.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from praxis.api.approval import Decision, IncidentApproval, IncidentReconciliation
from praxis.api.incident import Incident
from praxis.cli.cluster import UserCluster
from praxis.controlplane.binaries import resolve
from praxis.machine import Phase
from tests.builders import action, plan
from tests.cli.shop import Shop

pytestmark = pytest.mark.controlplane


def test_a_person_approves(shop: Shop) -> None:
    """What is created names the person, the plan that was shown, and an hour; the verdict is waited for and said."""
    on = shop.incident()
    assert on.status.plan is not None
    before = datetime.now(UTC)
    with shop.judging():
        result = shop.run("approve", "checkout-latency-1", "--yes", "--reason", "looks right")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == f"Accepted: plan {on.status.plan.short} runs on the approval of alice"
    assert "Sets PRAXIS_RESTART_ID in the environment of function checkout, as there is no restart call." in (
        result.stdout
    )
    assert "one person must approve it" in result.stdout
    [approval] = shop.stored(IncidentApproval)
    assert re.fullmatch("checkout-latency-1-approve-[b-z2-9]{6}", approval["metadata"]["name"])
    expires = approval["spec"].pop("expiresAt")
    assert abs(datetime.fromisoformat(expires) - before - timedelta(hours=1)) < timedelta(minutes=1)
    assert approval["spec"] == {
        "incidentRef": {"name": "checkout-latency-1", "uid": on.metadata.uid},
        "planDigest": on.status.plan.digest,
        "decision": "Approve",
        "reason": "looks right",
        "corrections": [],
        "approver": {"username": "alice"},
    }


@pytest.mark.parametrize(
    ("arguments", "decision", "says"),
    [
        (["reject", "--reason", "wrong cause"], Decision.REJECT, "Nothing of this plan is carried out"),
        (["revise", "--correction", "scale first"], Decision.REVISE, "│ scale first"),
        (["dismiss"], Decision.DISMISS, "the incident is closed"),
    ],
)
def test_a_person_says_no(shop: Shop, arguments: list[str], decision: Decision, says: str) -> None:
    """Reject, Revise and Dismiss are created likewise, each saying what it does."""
    shop.incident()
    with shop.judging():
        result = shop.run(arguments[0], "checkout-latency-1", "--yes", *arguments[1:])
    assert result.exit_code == 0, result.output
    assert says in result.stdout
    [approval] = shop.stored(IncidentApproval)
    assert approval["spec"]["decision"] == decision
    assert approval["spec"]["corrections"] == (["scale first"] if decision is Decision.REVISE else [])


def test_who_may_not_approve_reads_a_sentence(shop: Shop) -> None:
    """A person without the role is told whom to ask, and what the API server said."""
    shop.incident()
    result = shop.run("approve", "checkout-latency-1", "--yes", as_=shop.person("carol", "praxis-viewers"))
    assert result.exit_code == 1
    assert result.stderr.startswith(
        f"Error: you may not create incidentapprovals in namespace {shop.namespace}; an admin can bind you to the "
        "approver role. The API server says: "
    )
    assert result.stderr.count("\n") == 1
    assert shop.stored(IncidentApproval) == []


def test_who_may_not_even_read_reads_a_sentence(shop: Shop) -> None:
    """A person without any role is told so before anything is shown."""
    shop.incident()
    result = shop.run("show", "checkout-latency-1", as_=shop.person("mallory", "nobody"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'User "mallory" cannot get resource "incidents"' in result.stderr


@pytest.mark.parametrize("account", ["praxis-operator", "praxis-gateway", "robot"])
def test_a_service_account_cannot_approve_even_with_the_role(shop: Shop, account: str) -> None:
    """Bound to the approver role, a service account passes RBAC, and is refused by policy."""
    shop.incident()
    namespace = "praxis-system" if account.startswith("praxis") else shop.namespace
    if account == "robot":
        shop.plane.kubectl("create", "serviceaccount", account, "-n", namespace)
    shop.plane.kubectl(
        "create", "rolebinding", "robots", "-n", shop.namespace, "--clusterrole=praxis-approver",
        f"--serviceaccount={namespace}:{account}",
    )  # fmt: skip
    robot = shop.plane.service_account_kubeconfig(namespace, account)
    result = shop.run("approve", "checkout-latency-1", "--yes", as_=robot)
    assert result.exit_code == 1
    assert f"only people approve; system:serviceaccount:{namespace}:{account} is not a person" in result.stderr
    assert shop.stored(IncidentApproval) == []


def test_a_long_life_is_refused_by_policy(shop: Shop) -> None:
    """A day is the longest that an approval may live; the sentence is the policy's."""
    shop.incident()
    result = shop.run("approve", "checkout-latency-1", "--yes", "--expires-in", "24h1m")
    assert result.exit_code == 1
    assert "spec.expiresAt must lie within 24 hours from now" in result.stderr
    assert shop.run("approve", "checkout-latency-1", "--yes", "--expires-in", "24h", "--timeout", "0").exit_code == 3


def test_a_manifest_is_all_that_is_on_stdout_and_works_the_same(shop: Shop) -> None:
    """`-o yaml | kubectl apply` creates what the command would; somebody else cannot apply it in alice's name."""
    on = shop.incident()
    assert on.status.plan is not None
    written = shop.run("approve", "checkout-latency-1", "-o", "yaml")
    assert written.exit_code == 0, written.output
    document = yaml.safe_load(written.stdout)
    assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
    assert document["spec"]["approver"] == {"username": "alice"}
    assert "Sets PRAXIS_RESTART_ID" in written.stderr
    assert shop.stored(IncidentApproval) == []
    apply = ("apply", "-f", "-", "--kubeconfig")
    refused = shop.plane.kubectl(*apply, str(shop.person("bob")), stdin=written.stdout, check=False)
    assert refused.returncode != 0
    assert "spec.approver.username must be you: bob" in refused.stderr
    with shop.judging():
        shop.plane.kubectl(*apply, str(shop.person("alice")), stdin=written.stdout)
        name = document["metadata"]["name"]
        shop.plane.kubectl(
            "wait", "--for=jsonpath={.status.verdict}=Accepted", "--timeout=20s", "incidentapproval", name, "-n",
            shop.namespace,
        )  # fmt: skip
    as_json = shop.run("approve", "checkout-latency-1", "-o", "json")
    assert json.loads(as_json.stdout)["spec"]["planDigest"] == on.status.plan.digest


def test_a_plan_that_was_revised_since_is_refused_with_the_reason(shop: Shop) -> None:
    """An approval of a plan that was replaced is refused by the operator, which names the current plan."""
    on = shop.incident()
    written = shop.run("approve", "checkout-latency-1", "-o", "yaml").stdout
    replaced = shop.replan(on)
    assert replaced.status.plan is not None
    assert on.status.plan is not None
    with shop.judging():
        shop.plane.kubectl("apply", "-f", "-", "--kubeconfig", str(shop.person("alice")), stdin=written)
        name = yaml.safe_load(written)["metadata"]["name"]
        shop.plane.kubectl(
            "wait", "--for=jsonpath={.status.verdict}=Refused", "--timeout=20s", "incidentapproval", name, "-n",
            shop.namespace,
        )  # fmt: skip
    [approval] = shop.stored(IncidentApproval)
    assert approval["status"]["reason"] == "PlanSuperseded"
    assert f"the current plan is {replaced.status.plan.digest}" in approval["status"]["message"]
    again = shop.run("approve", "checkout-latency-1", "--yes", "--plan", on.status.plan.short)
    assert again.exit_code == 1
    assert f"the plan is now {replaced.status.plan.digest}, not {on.status.plan.short}…" in again.stderr


def test_an_approval_of_another_plan_than_was_read_is_not_created(shop: Shop) -> None:
    """With --plan, long or short, with or without prefix, only the plan that was read can be approved."""
    on = shop.incident()
    assert on.status.plan is not None
    digest = on.status.plan.digest
    assert shop.run("approve", "checkout-latency-1", "--yes", "--plan", "sha256:" + "0" * 64).exit_code == 1
    assert shop.stored(IncidentApproval) == []
    for given in (digest, digest.removeprefix("sha256:")[:6], on.status.plan.short.upper()):
        assert shop.run("approve", "checkout-latency-1", "-o", "yaml", "--plan", given).exit_code == 0


def test_without_an_operator_there_is_no_verdict_yet(shop: Shop) -> None:
    """Exit code 3: it is stored and stands, and how to look at it is said."""
    shop.incident()
    result = shop.run("approve", "checkout-latency-1", "--yes", "--timeout", "0.1")
    [approval] = shop.stored(IncidentApproval)
    assert result.exit_code == 3
    last = result.stdout.splitlines()[-1]
    assert last == (
        "No verdict yet: the operator gave no verdict within 0.1 s; is it running? "
        f"{approval['metadata']['name']} stands; see it with: "
        f"kubectl get incidentapprovals {approval['metadata']['name']} -n {shop.namespace} -o yaml"
    )


def test_the_first_of_two_approvers_is_told_that_others_are_needed(shop: Shop) -> None:
    """Once the operator counts the approval, there is no use in waiting: exit code 3, with the count."""
    on = shop.incident(approvers=("alice", "bob"))
    condition = {
        "type": "Approved",
        "status": "False",
        "reason": "Pending",
        "message": "1/2 approved by alice",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    }
    counted = threading.Thread(target=count_first_approval, args=(shop, on, condition))
    counted.start()
    result = shop.run("approve", "checkout-latency-1", "--yes", "--timeout", "60")
    counted.join()
    assert result.exit_code == 3, result.output
    assert "2 distinct people must approve it" in result.stdout
    assert "No verdict yet: 1/2 approved by alice; others must approve too." in result.stdout
    with shop.judging():
        assert shop.run("approve", "checkout-latency-1", "--yes", as_="bob").exit_code == 0


def count_first_approval(shop: Shop, on: Incident, condition: dict[str, Any]) -> None:
    """What the operator does when an approval comes that is not enough."""
    while not shop.stored(IncidentApproval):
        pass
    shop.write(on.replace(status=on.status.replace(conditions=[condition])))


def test_a_second_approval_of_the_same_person_is_refused(shop: Shop) -> None:
    """The operator's refusal is said with its reason and what stands; exit code 1."""
    shop.incident(approvers=("alice", "bob"))
    assert shop.run("approve", "checkout-latency-1", "--yes", "--timeout", "0").exit_code == 3
    [first] = shop.stored(IncidentApproval)
    # Within one second of the API server's clock the uid says which came first.
    with UserCluster.connect(kubeconfig=shop.person("alice"), context=None, namespace=None) as alice:
        while str(alice.whoami().server_time) <= str(datetime.fromisoformat(first["metadata"]["creationTimestamp"])):
            pass
    with shop.judging():
        result = shop.run("approve", "checkout-latency-1", "--yes")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        f"Error: refused, DuplicateApprover: alice has approved this plan already with {first['metadata']['name']}, "
    )


def tampered(*, incident_uid: str, at: datetime) -> Any:
    """A plan whose action was changed after its digest was computed."""
    return plan(incident_uid=incident_uid, at=at).replace(actions=[action(effect="Deletes the function.")])


def test_a_plan_that_is_not_what_its_digest_says_is_not_signed_off(shop: Shop) -> None:
    """The command recomputes the digest of what it shows; such a plan can only be refused."""
    shop.incident(draft=tampered)
    result = shop.run("approve", "checkout-latency-1", "--yes")
    assert result.exit_code == 1
    assert "not approved: trail entry 2: the stored plan is not what its digest" in result.stderr
    assert shop.stored(IncidentApproval) == []
    with shop.judging():
        assert shop.run("reject", "checkout-latency-1", "--yes").exit_code == 0


@pytest.mark.parametrize("phase", [Phase.NEW, Phase.INVESTIGATED, Phase.EXECUTING, Phase.RESOLVED, Phase.CLOSED])
def test_nothing_is_approved_that_does_not_wait(shop: Shop, phase: Phase) -> None:
    """Where no plan waits for a decision, none is created, and the phase is said."""
    shop.incident(phase)
    result = shop.run("approve", "checkout-latency-1", "--yes")
    assert result.exit_code == 1
    assert f"checkout-latency-1 is in phase {phase}: no plan waits for a decision" in result.stderr
    assert shop.stored(IncidentApproval) == []


def test_a_reject_is_possible_while_the_plan_is_carried_out(shop: Shop) -> None:
    """It is created, with a warning of what it can still do; the verdict comes with the next gate."""
    shop.incident(Phase.EXECUTING)
    with shop.judging():
        result = shop.run("reject", "checkout-latency-1", "--yes", "--timeout", "0.1")
    assert result.exit_code == 3
    assert "this is heeded only as long as nothing was applied" in result.stdout
    assert len(shop.stored(IncidentApproval)) == 1


def test_a_person_reconciles(shop: Shop) -> None:
    """The finding names the unknown intent and the trail that was read; the verdict is waited for and said."""
    on = shop.incident(Phase.RECONCILIATION_REQUIRED)
    arguments = ("reconcile", "checkout-latency-1", "--observed", "not-applied", "--note", "no marker", "--yes")
    with shop.judging():
        result = shop.run(*arguments)
    assert result.exit_code == 0, result.output
    assert "PRAXIS_RESTART_ID=intent-00000001" in result.stdout
    assert result.stdout.splitlines()[-1] == "Accepted: recorded as NotApplied; the target is released"
    [finding] = shop.stored(IncidentReconciliation)
    assert finding["spec"] == {
        "incidentRef": {"name": "checkout-latency-1", "uid": on.metadata.uid},
        "intentId": "intent-00000001",
        "trailHead": on.status.head,
        "observed": "NotApplied",
        "note": "no marker",
        "observer": {"username": "alice"},
    }


def test_a_reconciliation_can_be_reviewed_first(shop: Shop) -> None:
    """-o yaml writes the manifest only, and applying it works the same."""
    shop.incident(Phase.RECONCILIATION_REQUIRED)
    arguments = ("reconcile", "checkout-latency-1", "--observed", "applied", "--note", "seen")
    written = shop.run(*arguments, "-o", "yaml")
    assert written.exit_code == 0, written.output
    assert shop.stored(IncidentReconciliation) == []
    shop.plane.kubectl("apply", "-f", "-", "--kubeconfig", str(shop.person("alice")), stdin=written.stdout)
    assert [each["spec"]["observed"] for each in shop.stored(IncidentReconciliation)] == ["Applied"]


def test_there_must_be_something_to_reconcile(shop: Shop) -> None:
    """Outside ReconciliationRequired nothing is created."""
    shop.incident(Phase.OBSERVING)
    result = shop.run("reconcile", "checkout-latency-1", "--observed", "applied", "--note", "x", "--yes")
    assert result.exit_code == 1
    assert "checkout-latency-1 is in phase Observing: there is nothing to reconcile" in result.stderr
    assert shop.stored(IncidentReconciliation) == []


def test_everything_is_shown(shop: Shop) -> None:
    """A whole life, as text and as the stored document."""
    on = shop.incident(Phase.OBSERVING)
    text = shop.run("show", "checkout-latency-1")
    assert text.exit_code == 0, text.output
    for expected in ("Alerts (1)", "Diagnosis", "Evidence (2)", "Plan, revision 1", "Steps", "Trail (8 entries)"):
        assert expected in text.stdout
    document = json.loads(shop.run("show", "checkout-latency-1", "-o", "json").stdout)
    assert document["status"]["head"] == on.status.head
    assert "managedFields" not in document["metadata"]
    assert yaml.safe_load(shop.run("show", "checkout-latency-1", "-o", "yaml").stdout) == document


def test_what_a_person_answers_on_the_terminal_counts(shop: Shop) -> None:
    """On a terminal it asks: no creates nothing, yes creates it."""
    shop.incident()
    refused = on_a_terminal(shop, "n\n")
    assert (refused.code, "Approve plan " in refused.screen, "nothing was created" in refused.screen) == (1, True, True)
    assert shop.stored(IncidentApproval) == []
    assert on_a_terminal(shop, "y\n").code == 3
    assert len(shop.stored(IncidentApproval)) == 1


@dataclass(frozen=True)
class Ended:
    """How a command on a terminal ended, and what stood on it."""

    code: int
    screen: str


def on_a_terminal(shop: Shop, typed: str) -> Ended:
    """`praxis approve` in a pseudo-terminal, with an answer typed ahead."""
    leader, follower = pty.openpty()
    command = ["approve", "checkout-latency-1", "-n", shop.namespace, "--timeout", "0"]
    with subprocess.Popen(
        [sys.executable, "-m", "praxis", *command, "--kubeconfig", str(shop.person("alice"))],
        stdin=follower,
        stdout=follower,
        stderr=follower,
    ) as process:
        os.close(follower)
        os.write(leader, typed.encode())
        screen = b""
        # Reading a terminal whose last writer is gone fails with EIO on Linux: that is its end of file.
        try:
            while chunk := os.read(leader, 65536):
                screen += chunk
        except OSError:
            pass
        finally:
            os.close(leader)
    return Ended(process.returncode, screen.decode())


def test_kubectl_finds_it_as_a_plugin(shop: Shop) -> None:
    """`kubectl praxis show` is `praxis show`, with the kubeconfig that kubectl itself uses."""
    shop.incident()
    scripts = Path(sys.executable).parent
    shown = subprocess.run(
        [resolve().kubectl, "praxis", "show", "checkout-latency-1", "-n", shop.namespace],
        env={"PATH": str(scripts), "KUBECONFIG": str(shop.person("alice"))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"Incident {shop.namespace}/checkout-latency-1" in shown.stdout
