"""A GitOps controller's service account applies what people signed: one that works, and many that do not.

The overlay is applied as an admin would, with `kubectl apply -k`; the controller is its service account with a token of
its own, and server-side apply, as Argo CD and Flux do; the operator is a process, opted in to that account.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from praxis.api.incident import Incident
from praxis.cli import main
from praxis.controlplane import ControlPlane
from praxis.demo.stack import POLL_SECONDS, QUICK, Service, Stack
from praxis.machine import Phase
from tests.e2e.life import begin, clear, praxis, reached

pytestmark = [pytest.mark.e2e, pytest.mark.controlplane]

ROOT = Path(__file__).parents[2]
CONTROLLER = "system:serviceaccount:argocd:argocd-application-controller"
VERDICT_SECONDS = 60.0
Document = dict[str, Any]


@dataclass(frozen=True)
class Keys:
    """SSH keys of people, and the list of those that count."""

    directory: Path

    def make(self, name: str, *options: str) -> Path:
        """A key; the path of the private one."""
        path = self.directory / name
        if not path.exists():
            command = ["ssh-keygen", "-q", "-N", "", "-C", name, "-f", str(path), *(options or ("-t", "ed25519"))]
            subprocess.run(command, check=True, capture_output=True)
        return path

    def public(self, name: str) -> str:
        """`type base64`."""
        return " ".join(self.make(name).with_suffix(".pub").read_text().split()[:2])


@dataclass(frozen=True)
class Git:
    """What is in the repository is applied by the controller's service account."""

    stack: Stack
    keys: Keys

    def kubectl(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """As the controller."""
        kubeconfig = self.stack.plane.service_account_kubeconfig("argocd", "argocd-application-controller")
        return self.stack.plane.kubectl(
            *arguments, "-n", self.stack.namespace, "--kubeconfig", str(kubeconfig), stdin=stdin, check=False
        )

    def apply(self, manifest: Document) -> subprocess.CompletedProcess[str]:
        """Server-side apply, with the label by which Argo CD tracks what it applied."""
        tracked = {**manifest, "metadata": {**manifest["metadata"], "labels": {"app.kubernetes.io/instance": "shop"}}}
        return self.kubectl(
            "apply", "--server-side", "--field-manager=argocd-controller", "-f", "-", stdin=json.dumps(tracked)
        )

    def signed(self, incident: Incident, key: str, *, person: str = "alice", command: str = "approve") -> Document:
        """What a person writes into the repository."""
        done = praxis(
            self.stack,
            *(command, incident.metadata.name, "--sign", str(self.keys.make(key)), "-o", "yaml"),
            *(("--correction", "scale first") if command == "revise" else ()),
            person=person,
        )
        assert done.returncode == 0, done.stderr
        manifest: Document = yaml.safe_load(done.stdout)
        return manifest

    def verdict(self, manifest: Document) -> tuple[str, str, str]:
        """Verdict, reason and message, once the operator has given them."""
        deadline = time.monotonic() + VERDICT_SECONDS
        while True:
            stored = self.stored(manifest)
            status = stored.get("status") or {}
            if "verdict" in status:
                return status["verdict"], status["reason"], status["message"]
            assert time.monotonic() < deadline, f"no verdict on {manifest['metadata']['name']}"
            time.sleep(POLL_SECONDS)

    def stored(self, manifest: Document) -> Document:
        """As the API server has it."""
        name = manifest["metadata"]["name"]
        found: Document = json.loads(
            self.stack.plane.kubectl("get", "incapp", name, "-n", self.stack.namespace, "-o", "json").stdout
        )
        return found

    def list_signers(self, allowed: str, revoked: str = "") -> None:
        """An admin writes the list."""
        self.stack.apply(
            [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "praxis-allowed-signers", "namespace": "praxis-system"},
                    "data": {"allowed_signers": allowed, "revoked_keys": revoked},
                }
            ]
        )


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Git]:
    """An installation with the overlay, whose list has keys of alice and bob."""
    directory = tmp_path_factory.mktemp("gitops")
    services = tuple(Service(name) for name in ("signed", "broken", "voided"))
    with (
        ControlPlane.start() as plane,
        Stack.up(plane, directory=directory, services=services, settings=QUICK) as stack,
    ):
        overlay = str(ROOT / "overlays/argocd")
        plane.kubectl("create", "namespace", "argocd")
        plane.kubectl("create", "serviceaccount", "argocd-application-controller", "-n", "argocd")
        plane.kubectl("apply", "--server-side", "--force-conflicts", "-k", overlay)
        (directory / "keys").mkdir()
        git = Git(stack, Keys(directory / "keys"))
        git.list_signers(
            f"# who signs with which key\nalice {git.keys.public('alice')}\nbob {git.keys.public('bob')}\n"
            f'alice valid-before="20200101Z" {git.keys.public("expired")}\n'
            f"alice {git.keys.public('revoked')}\n* {git.keys.public('anybody')}\n",
            revoked=git.keys.public("revoked"),
        )
        stack.start_operator(PRAXIS_SIGNING_ACCOUNTS=json.dumps([CONTROLLER]))
        yield git


def sent(git: Git, name: str) -> int:
    """How many requests a function got."""
    return len(git.stack.emulator.dispatches(function=name))


def test_a_signed_approval_works(git: Git, tmp_path: Path) -> None:
    """Reviewed offline, applied by the robot, it carries the plan; applied again, or pruned, it changes nothing."""
    incident = begin(git.stack, git.stack.services[0])
    manifest = git.signed(incident, "alice")
    (tmp_path / "approval.yaml").write_text(yaml.safe_dump(manifest))
    (tmp_path / "signers").write_text(f"alice {git.keys.public('alice')}\n")
    review = ("approval", "verify", str(tmp_path / "approval.yaml"), "--allowed-signers", str(tmp_path / "signers"))
    reviewed = CliRunner().invoke(main, review)
    assert reviewed.exit_code == 0, reviewed.output
    assert "ok shop/" in reviewed.output
    applied = git.apply(manifest)
    assert applied.returncode == 0, applied.stderr
    observing = reached(git.stack, incident.metadata.name, Phase.OBSERVING)
    assert [each.approver for each in observing.status.approvals] == ["alice"]
    verdict, reason, _ = git.verdict(manifest)
    assert (verdict, reason) == ("Accepted", "Accepted")
    assert sent(git, "signed") == 1
    before = git.stored(manifest)
    assert git.apply(manifest).returncode == 0
    assert git.stored(manifest)["metadata"]["uid"] == before["metadata"]["uid"]
    pruned = git.kubectl("delete", "incapp", manifest["metadata"]["name"])
    assert pruned.returncode == 0, pruned.stderr
    clear(git.stack, git.stack.services[0], incident)
    reached(git.stack, incident.metadata.name, Phase.RESOLVED)
    # Somebody reverts the removal: the same words are stored again, under a new uid.
    assert git.apply(manifest).returncode == 0
    assert git.verdict(manifest)[:2] == ("Refused", "AlreadyDecided")
    assert sent(git, "signed") == 1


def respelled(manifest: Document, **fields: Any) -> Document:
    """Changed after it was signed."""
    return {**manifest, "spec": {**manifest["spec"], **fields}}


@pytest.fixture(scope="module")
def waiting(git: Git) -> Incident:
    """An incident on which nothing that is broken may count."""
    return begin(git.stack, git.stack.services[1])


BROKEN: dict[str, tuple[Callable[[Git, Incident], Document], str]] = {
    "changed after it was signed": (
        lambda git, on: respelled(git.signed(on, "alice"), reason="really"),
        "the decision was changed after it was signed",
    ),
    "another's name over her signature": (
        lambda git, on: respelled(git.signed(on, "alice"), approver={"username": "bob"}),
        "the decision was changed after it was signed",
    ),
    "the robot's own choice of a person without a key": (
        lambda git, on: git.signed(on, "alice", person="carol"),
        "no key is listed for carol in ConfigMap praxis-allowed-signers",
    ),
    "bob's key under alice's name": (
        lambda git, on: git.signed(on, "bob"),
        "its key is not one that is listed for alice, or it is revoked",
    ),
    "a key that is not listed": (
        lambda git, on: git.signed(on, "mallory"),
        "its key is not one that is listed for alice, or it is revoked",
    ),
    "a key that is listed for everybody": (
        lambda git, on: git.signed(on, "anybody"),
        "its key is not one that is listed for alice, or it is revoked",
    ),
    "a key that is revoked": (
        lambda git, on: git.signed(on, "revoked"),
        "its key is not one that is listed for alice, or it is revoked",
    ),
    "a key that is not valid any more": (
        lambda git, on: git.signed(on, "expired"),
        "its key was not valid any more when the decision was created",
    ),
    "a signature for another purpose": (
        lambda git, on: respelled(git.signed(on, "alice"), signature=for_git(git)),
        "not in the sshsig namespace praxis-approval",
    ),
    "a signature of another decision": (
        lambda git, on: respelled(git.signed(on, "alice"), decision="Dismiss"),
        "the decision was changed after it was signed",
    ),
    "armour around nothing": (
        lambda git, on: respelled(
            git.signed(on, "alice"), signature="-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"
        ),
        "it is no SSH signature",
    ),
}


def for_git(git: Git) -> str:
    """What alice signs when she commits."""
    command = ["ssh-keygen", "-Y", "sign", "-q", "-f", str(git.keys.make("alice")), "-n", "git"]
    return subprocess.run(command, input=b"tree", check=True, capture_output=True).stdout.decode()


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_signature_refuses(git: Git, waiting: Incident, case: str) -> None:
    """The API server stores it, as it looks like one; the operator refuses it for good, and the incident waits on."""
    make, why = BROKEN[case]
    manifest = make(git, waiting)
    applied = git.apply(manifest)
    assert applied.returncode == 0, applied.stderr
    verdict, reason, message = git.verdict(manifest)
    assert (verdict, reason) == ("Refused", "SignatureNotVerified")
    assert why in message
    assert git.stack.incident(waiting.metadata.name).status.phase is Phase.AWAITING_APPROVAL
    assert sent(git, "broken") == 0


def without(manifest: Document) -> Document:
    """The same, unsigned."""
    return {**manifest, "spec": {name: value for name, value in manifest["spec"].items() if name != "signature"}}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(without, f"only people approve; {CONTROLLER} is not a person", id="unsigned"),
        pytest.param(
            lambda m: respelled(m, signature="looks fine to me"), "spec.signature in body should match", id="no armour"
        ),
        pytest.param(lambda m: respelled(m, signature=""), "spec.signature in body should match", id="empty"),
        pytest.param(
            lambda m: respelled(m, approver={"username": CONTROLLER}), "only people approve", id="in the robot's name"
        ),
        pytest.param(
            lambda m: respelled(m, expiresAt="2036-12-01T00:00:00Z"),
            "spec.expiresAt must lie within 24 hours from now",
            id="for ten years",
        ),
    ],
)
def test_what_the_api_server_refuses_of_a_robot(
    git: Git, waiting: Incident, change: Callable[[Document], Document], why: str
) -> None:
    """What does not even look signed by a person, for a day at most, is not stored."""
    applied = git.apply(change(git.signed(waiting, "alice")))
    assert applied.returncode != 0
    assert why in applied.stderr


def test_other_robots_stay_out(git: Git, waiting: Incident) -> None:
    """The overlay opts in one account: another with every right of RBAC passes on nothing, however well signed."""
    manifest = git.signed(waiting, "alice")
    robot = git.stack.plane.kubeconfig(user="system:serviceaccount:ci:deployer", groups=["system:masters"])
    done = git.stack.plane.kubectl(
        "create", "--kubeconfig", str(robot), "-f", "-", stdin=json.dumps(manifest), check=False
    )
    assert "only people approve; system:serviceaccount:ci:deployer is not a person" in done.stderr


def test_a_person_who_signs_is_taken_at_the_signature(git: Git, waiting: Incident) -> None:
    """Also who applies it in their own name: a signature that does not verify is never passed over."""
    manifest = respelled(git.signed(waiting, "alice"), reason="really")
    alice = str(git.stack.person("alice"))
    done = git.stack.plane.kubectl("create", "--kubeconfig", alice, "-f", "-", stdin=json.dumps(manifest), check=False)
    assert done.returncode == 0, done.stderr
    assert git.verdict(manifest)[:2] == ("Refused", "SignatureNotVerified")


def test_a_robot_prunes_only_what_is_signed(git: Git, waiting: Incident) -> None:
    """A person's own Reject cannot be made to vanish before it is heeded."""
    name = waiting.metadata.name
    done = praxis(git.stack, "dismiss", name, "-o", "json", person="bob")
    manifest = json.loads(done.stdout)
    # On another plan, so that the incident goes on waiting.
    manifest["spec"]["planDigest"] = "sha256:" + "0" * 64
    bob = str(git.stack.person("bob"))
    git.stack.plane.kubectl("create", "--kubeconfig", bob, "-f", "-", stdin=json.dumps(manifest))
    refused = git.kubectl("delete", "incapp", manifest["metadata"]["name"])
    assert "robots delete no decision; an account that was opted in prunes what people signed" in refused.stderr


def test_a_robot_lists_no_signers(git: Git) -> None:
    """With every right of RBAC it cannot give itself a key; nor can who may merely edit the namespace."""
    robot = str(git.stack.plane.kubeconfig(user=CONTROLLER, groups=["system:masters"]))
    patch = ("patch", "configmap", "praxis-allowed-signers", "-n", "praxis-system", "--type=merge")
    change = ("-p", json.dumps({"data": {"allowed_signers": "alice ssh-ed25519 AAAA"}}))
    done = git.stack.plane.kubectl(*patch, *change, "--kubeconfig", robot, check=False)
    assert "praxis-allowed-signers is written by people who may update allowedsigners" in done.stderr
    git.stack.plane.kubectl("create", "clusterrolebinding", "editor-of-all", "--clusterrole=edit", "--user=erin")
    git.stack.plane.kubectl(*("create", "clusterrole", "configmaps", "--verb=*", "--resource=configmaps"), check=False)
    git.stack.plane.kubectl("create", "clusterrolebinding", "erin", "--clusterrole=configmaps", "--user=erin")
    erin = str(git.stack.plane.kubeconfig(user="erin", groups=[]))
    done = git.stack.plane.kubectl(*patch, *change, "--kubeconfig", erin, check=False)
    assert "praxis-allowed-signers is written by people who may update allowedsigners" in done.stderr
    created = git.stack.plane.kubectl(
        *("create", "configmap", "another", "-n", "praxis-system", "--kubeconfig", erin), check=False
    )
    assert created.returncode == 0, created.stderr
    removed = git.stack.plane.kubectl(
        *("delete", "configmap", "praxis-allowed-signers", "-n", "praxis-system", "--kubeconfig", robot), check=False
    )
    assert "is written by people" in removed.stderr


def test_after_a_revision_the_signature_is_on_the_former_plan(git: Git) -> None:
    """A signed Revise leads to another plan; the approval of the former one, applied late, is refused as superseded."""
    incident = begin(git.stack, git.stack.services[2])
    approval, revision = git.signed(incident, "alice"), git.signed(incident, "bob", person="bob", command="revise")
    assert git.apply(revision).returncode == 0
    git.stack.wait(
        incident.metadata.name,
        lambda each: each.status.plan is not None and each.status.plan.revision == 2,
        timeout=VERDICT_SECONDS,
    )
    assert git.verdict(revision)[:2] == ("Accepted", "Accepted")
    assert git.apply(approval).returncode == 0
    assert git.verdict(approval)[:2] == ("Refused", "PlanSuperseded")
    assert sent(git, "voided") == 0
