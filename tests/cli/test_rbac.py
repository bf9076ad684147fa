"""`praxis rbac check` on a real API server: of oneself, of others by impersonation, and by asking about them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from praxis.controlplane import ControlPlane
from tests.accounts import Installation
from tests.cli.conftest import Answering

TIMEOUT_SECONDS = 120
DECIDING = {"apiGroups": ["praxis.kopachelli.dev"], "resources": ["incidentapprovals"], "verbs": ["create"]}


def check(kubeconfig: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command as an identity."""
    return subprocess.run(
        [sys.executable, "-m", "praxis", "rbac", "check", "--kubeconfig", str(kubeconfig), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )


@pytest.fixture
def installation(plane: ControlPlane) -> Installation:
    """Accounts of its own with the shipped roles."""
    return Installation.create(plane)


def asking(installation: Installation) -> str:
    """The name of a person who may ask about others, and may not impersonate."""
    name = f"{installation.names.namespace}-asks"
    review = {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}
    installation.grant(review, user=name)
    return name


def at(installation: Installation, *options: str) -> list[str]:
    """The options that name the installation."""
    return ["--installation-namespace", installation.names.namespace, *options]


@pytest.mark.controlplane
def test_of_oneself(installation: Installation) -> None:
    """The operator's own account passes in every namespace; with a binding more it is told which, and exits with 1."""
    passed = check(installation.kubeconfig, *at(installation))
    assert (passed.returncode, passed.stderr) == (0, "")
    assert passed.stdout.startswith(
        f"{installation.names.operator} may write nothing beyond the role of praxis-operator; namespaces checked: "
    )
    installation.grant(DECIDING, namespace="default")
    refused = check(installation.kubeconfig, *at(installation))
    assert (refused.returncode, refused.stderr) == (1, "")
    (sentence,) = refused.stdout.splitlines()
    assert sentence.startswith(
        f"{installation.names.operator} may create incidentapprovals.praxis.kopachelli.dev in default, but deciding is "
        "for people: remove the rule "
    )
    elsewhere = check(installation.kubeconfig, *at(installation, "-n", "kube-system"))
    assert elsewhere.stdout.endswith("; namespaces checked: 1\n")


@pytest.mark.controlplane
def test_of_others_by_impersonation(installation: Installation) -> None:
    """An admin sees the same for any identity: both accounts, a person by group, and who is in no group."""
    names, admin = installation.names, installation.plane.admin_kubeconfig
    options = at(installation, "-n", "default")
    assert check(admin, *options, "--as", names.operator).returncode == 0
    gateway = check(admin, *options, "--as", names.gateway)
    assert gateway.stdout == (
        f"{names.gateway} may write nothing beyond the role of praxis-gateway; namespaces checked: 1\n"
    )
    approver = check(admin, *options, "--as", "alice", "--as-group", names.approvers_group, "--as-group", "others")
    assert approver.returncode == 1
    (sentence,) = approver.stdout.splitlines()
    assert sentence.startswith(
        "alice may create incidentapprovals.praxis.kopachelli.dev, create incidentreconciliations.praxis.kopachelli.dev"
        " in every namespace, but deciding is for people: "
    )
    assert check(admin, *options, "--as", "alice").returncode == 0


@pytest.mark.controlplane
def test_of_others_without_impersonation(installation: Installation) -> None:
    """Who may only ask about others learns of known dangers; finding none is never told as knowing of none."""
    names, plane = installation.names, installation.plane
    asker = plane.kubeconfig(asking(installation))
    options = at(installation, "-n", "default", "--as", names.operator)
    nothing = check(asker, *options)
    assert (nothing.returncode, nothing.stdout) == (3, "")
    assert "you may not impersonate: " in nothing.stderr
    assert nothing.stderr.endswith(": no known danger was found, which does not say that there is none\n")
    installation.grant(DECIDING)
    found = check(asker, *options)
    assert found.returncode == 1
    assert found.stdout.startswith(f"{names.operator} may create incidentapprovals.praxis.kopachelli.dev in every")


@pytest.mark.controlplane
def test_namespaces_that_cannot_be_listed(installation: Installation) -> None:
    """Without the right to list namespaces only the context's and the installation's are checked, and that is told."""
    person = installation.plane.kubeconfig("bob", [installation.names.viewers_group])
    unsure = check(person, *at(installation))
    assert unsure.returncode == 3
    assert "namespaces cannot be listed, name them: " in unsure.stderr
    named = check(person, *at(installation, "-n", "default", "-n", "kube-system"))
    assert (named.returncode, named.stderr) == (0, "")
    assert named.stdout == "bob may write nothing beyond the role of praxis-operator; namespaces checked: 2\n"


@pytest.mark.controlplane
def test_by_asking_a_service_account_has_its_own_groups(installation: Installation) -> None:
    """What a service account may do by the group of its namespace's accounts is found without impersonation too."""
    names, plane = installation.names, installation.plane
    group = f"system:serviceaccounts:{names.namespace}"
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    installation.grant(secrets, group=group)
    asker = plane.kubeconfig(asking(installation))
    found = check(asker, *at(installation, "-n", "default", "--as", names.operator))
    assert (found.returncode, found.stdout.split(", but")[0]) == (
        1,
        f"{names.operator} may get secrets in every namespace",
    )


def test_wrong_usage(answering: Answering) -> None:
    """A group without a user is wrong usage, as kubectl has it; nothing is asked."""
    wrong = check(answering.kubeconfig, "--as-group", "deciders")
    assert (wrong.returncode, answering.asked) == (2, [])
    assert "--as-group needs --as" in wrong.stderr


def test_an_api_server_that_does_not_answer(answering: Answering) -> None:
    """Not being able to ask is neither a yes nor a no: exit code 3 and a sentence."""
    unknown = check(answering.kubeconfig)
    assert (unknown.returncode, unknown.stdout) == (3, "")
    assert unknown.stderr.startswith("Error: the API server at http://127.0.0.1:")
