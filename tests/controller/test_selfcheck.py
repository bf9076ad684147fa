"""What the operator asks of itself, on a real API server: the shipped roles pass, each danger is refused and named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from praxis.api.powers import Allowed, Power, Rule
from praxis.controller.selfcheck import Reviews, Subject, examine, own_powers
from praxis.controlplane import ControlPlane
from praxis.errors import NeedsPerson
from praxis.kube import Kube
from tests.accounts import Installation

pytestmark = pytest.mark.controlplane

PRAXIS = "praxis.kopachelli.dev"
RBAC = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io"


def rule(group: str, resource: str, *verbs: str, names: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """A rule on one resource."""
    named = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs), **named}


DANGERS: dict[str, tuple[dict[str, list[str]], str]] = {
    "create approvals": (rule(PRAXIS, "incidentapprovals", "create"), "deciding is for people"),
    "update approvals": (rule(PRAXIS, "incidentapprovals", "update"), "deciding is for people"),
    "patch approvals": (rule(PRAXIS, "incidentapprovals", "patch"), "deciding is for people"),
    "delete approvals": (rule(PRAXIS, "incidentapprovals", "delete"), "deciding is for people"),
    "create reconciliations": (rule(PRAXIS, "incidentreconciliations", "create"), "deciding is for people"),
    "delete reconciliations": (rule(PRAXIS, "incidentreconciliations", "deletecollection"), "deciding is for people"),
    "impersonate": (rule("", "users", "impersonate", names=("alice",)), "impersonates a person may approve"),
    "impersonate with extras": (rule("authentication.k8s.io", "userextras", "impersonate"), "impersonates a person"),
    "escalate": (rule(RBAC, "clusterroles", "escalate"), "grant itself anything"),
    "bind": (rule(RBAC, "clusterroles", "bind"), "grant itself anything"),
    "bindings": (rule(RBAC, "clusterrolebindings", "create"), "grant itself anything"),
    "tokens": (rule("", "serviceaccounts/token", "create"), "become another service account"),
    "CRDs": (rule("apiextensions.k8s.io", "customresourcedefinitions", "patch"), "rules that hold the machine"),
    "policies": (rule(ADMISSION, "validatingadmissionpolicies", "update"), "policies that hold approvals"),
    "bindings of policies": (rule(ADMISSION, "validatingadmissionpolicybindings", "delete"), "policies that hold"),
    "webhooks": (rule(ADMISSION, "mutatingwebhookconfigurations", "create"), "policies that hold approvals"),
    "one Secret": (rule("", "secrets", "get", names=("token",)), "Secrets are never read"),
    "everything read": (rule("*", "*", "get"), "Secrets are never read"),
    "exec by get": (rule("", "pods/exec", "get"), "act inside workloads"),
    "any exec": (rule("", "*/exec", "get"), "act inside workloads"),
    "specs of incidents": (rule(PRAXIS, "incidents", "patch"), "not on PRAXIS' own list"),
    "status by update": (rule(PRAXIS, "incidents/status", "update"), "not on PRAXIS' own list"),
    "any status": (rule(PRAXIS, "*/status", "patch"), "not on PRAXIS' own list"),
    "every verb": (rule(PRAXIS, "incidents", "*"), "not on PRAXIS' own list"),
    "restarts": (rule("apps", "deployments", "patch"), "not on PRAXIS' own list"),
    "another Lease": (rule("coordination.k8s.io", "leases", "patch", names=("another",)), "not on PRAXIS' own list"),
    "a URL": ({"nonResourceURLs": ["/praxis/*"], "verbs": ["post"]}, "not on PRAXIS' own list"),
}


@pytest.fixture
def installation(plane: ControlPlane) -> Installation:
    """Accounts of its own with the shipped roles."""
    return Installation.create(plane)


async def refused(installation: Installation, *namespaces: str) -> str:
    """The message with which the operator refuses to start."""
    async with await Kube.connect(installation.kubeconfig) as kube:
        with pytest.raises(NeedsPerson) as error:
            await own_powers(kube, installation.settings(*namespaces))
    return str(error.value)


@pytest.mark.parametrize("watched", [(), ("default", "kube-system")])
async def test_the_shipped_roles_pass(installation: Installation, watched: tuple[str, ...]) -> None:
    """What PRAXIS grants is enough to ask, and nothing of it is too much, watching everything or a few namespaces."""
    async with await Kube.connect(installation.kubeconfig) as kube:
        await own_powers(kube, installation.settings(*watched))


@pytest.mark.parametrize("danger", DANGERS)
async def test_a_cluster_wide_danger(installation: Installation, danger: str) -> None:
    """Each is refused, with the rule to remove and the binding and role that the API server names."""
    granted, why = DANGERS[danger]
    name = installation.grant(granted)
    message = await refused(installation, "default")
    (sentence,) = message.splitlines()[1:]
    assert sentence.startswith(f"- it may {granted['verbs'][0]} ")
    assert why in sentence
    assert f"remove the rule {Rule.parse(granted)} (" in sentence
    assert f'ClusterRoleBinding "{name}" of ClusterRole "{name}"' in sentence


async def test_a_danger_in_one_namespace(installation: Installation) -> None:
    """A Role in one of all namespaces is found, and the sentence says where."""
    name = installation.grant(DANGERS["create approvals"][0], namespace="default")
    (sentence,) = (await refused(installation)).splitlines()[1:]
    assert sentence.startswith(
        "- it may create incidentapprovals.praxis.kopachelli.dev in default, but deciding is for people: "
    )
    assert f'RoleBinding "{name}/default" of Role "{name}"' in sentence


async def test_namespaces_that_are_not_watched_are_not_asked_for(installation: Installation) -> None:
    """With a list of namespaces only these and the installation's own count."""
    installation.grant(DANGERS["create approvals"][0], namespace="default")
    async with await Kube.connect(installation.kubeconfig) as kube:
        await own_powers(kube, installation.settings("kube-system"))
    installation.grant(DANGERS["tokens"][0], namespace=installation.names.namespace)
    assert "serviceaccounts/token" in await refused(installation, "kube-system")


async def test_a_sentence_for_each_rule(installation: Installation) -> None:
    """Two rules are two sentences; a Lease elsewhere is too much, the own one is not."""
    installation.grant(DANGERS["impersonate"][0])
    installation.grant(rule("coordination.k8s.io", "leases", "create"), namespace="default")
    sentences = (await refused(installation)).splitlines()[1:]
    assert [each.split(" in ")[0] for each in sorted(sentences)] == [
        "- it may create leases.coordination.k8s.io",
        "- it may impersonate users named alice",
    ]


async def test_cluster_admin(plane: ControlPlane, installation: Installation) -> None:
    """Whoever may do anything is told every reason, and of the URLs."""
    async with await Kube.connect(plane.admin_kubeconfig) as kube:
        with pytest.raises(NeedsPerson) as error:
            await own_powers(kube, installation.settings("default"))
    url, everything = sorted(str(error.value).splitlines()[1:])
    assert url.startswith("- it may * * at a URL, but it is not on PRAXIS' own list: ")
    assert everything.startswith("- it may * *.* in every namespace")
    for why in ("deciding is for people", "Secrets are never read", "grant itself anything", "service account"):
        assert why in everything


def unlisted(kube: Kube, *, incomplete: bool = True) -> Reviews:
    """Reviews of an API server with an authoriser that does not list its rules: only questions are answered."""

    async def ask(path: str, review: dict[str, Any]) -> dict[str, Any]:
        answer = (await kube.create(path, review)).document
        if review["kind"] == "SelfSubjectRulesReview":
            return {"status": {"incomplete": incomplete, "resourceRules": [], "nonResourceRules": []}}
        return answer

    return Reviews(ask)


async def test_an_incomplete_list_is_made_up_for_by_questions(installation: Installation) -> None:
    """Dangers that no list shows are found by asking, cluster-wide and in the namespace; the gap is told."""
    names = installation.names
    allowed = Allowed.to(names, names.operator_account)
    async with await Kube.connect(installation.kubeconfig) as kube:
        before = await examine(unlisted(kube), allowed=allowed, namespaces=["default"])
        installation.grant(DANGERS["escalate"][0])
        installation.grant(DANGERS["one Secret"][0], namespace="default")
        installation.grant(rule("", "secrets", "list"), namespace="default")
        after = await examine(unlisted(kube), allowed=allowed, namespaces=["default"])
    gap = "namespace default: an authoriser does not list its rules"
    assert (before.sentences, before.gaps) == ((), (gap,))
    assert [each.split(", but")[0] for each in after.sentences] == [
        "may escalate clusterroles.rbac.authorization.k8s.io in every namespace",
        "may list secrets in default",
    ]
    assert all("remove what grants it (RBAC: allowed by " in each for each in after.sentences)
    assert after.gaps == (gap,)


async def test_cluster_wide_dangers_are_asked_for_in_any_case(installation: Installation) -> None:
    """A danger that a list which claims to be complete leaves out is found all the same."""
    allowed = Allowed.to(installation.names, installation.names.operator_account)
    installation.grant(DANGERS["escalate"][0])
    async with await Kube.connect(installation.kubeconfig) as kube:
        finding = await examine(unlisted(kube, incomplete=False), allowed=allowed, namespaces=["default"])
    assert [each.split(", but")[0] for each in finding.sentences] == [
        "may escalate clusterroles.rbac.authorization.k8s.io in every namespace"
    ]
    assert finding.gaps == ()


async def test_of_somebody_else_questions_are_answered(plane: ControlPlane, installation: Installation) -> None:
    """A SubjectAccessReview tells who allows it, or nothing; somebody else's rules are never called complete."""
    subject = Subject(installation.names.operator, ("system:authenticated",))
    async with await Kube.connect(plane.admin_kubeconfig) as kube:

        async def ask(path: str, review: dict[str, Any]) -> dict[str, Any]:
            return (await kube.create(path, review)).document

        reviews = Reviews(ask, subject=subject)
        assert await reviews.may(Power("create", PRAXIS, "incidentapprovals"), "default") is None
        origin = await reviews.may(Power("patch", PRAXIS, "incidents/status"), "default")
        assert origin is not None
        assert "praxis-operator" in origin
        listed = await reviews.rules("default")
    assert (listed.rules, listed.gap) == (
        (),
        "the rules of somebody else cannot be listed without impersonating them",
    )


async def test_it_must_be_able_to_find_out(plane: ControlPlane) -> None:
    """An operator that may not list the namespaces it watches does not start either."""
    plane.create_service_account("default", "nobody")
    settings = Installation(plane, Installation.create(plane).names).settings()
    async with await Kube.connect(plane.service_account_kubeconfig("default", "nobody")) as kube:
        with pytest.raises(NeedsPerson, match=r"cannot find out what it may do; apply manifests/: .*namespaces"):
            await own_powers(kube, settings)


def start(installation: Installation, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run `praxis operator` until it ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "praxis", "operator", "--http-port", "0", "--kubeconfig", str(installation.kubeconfig)],
        env={
            **os.environ,
            "PRAXIS_INSTALLATION_NAMESPACE": installation.names.namespace,
            "PRAXIS_HTTP_HOST": "127.0.0.1",
            "PRAXIS_MODELS__BASE_URL": "http://127.0.0.1:1/v1",
            "PRAXIS_MODELS__FAST": "scripted-fast",
            "PRAXIS_MODELS__REASONING": "scripted-reasoning",
            "PRAXIS_MODELS__EMBEDDING": "scripted-embedding",
            "PRAXIS_MEMORY_PATH": str(directory / "memory.db"),
            "PRAXIS_RECORDER__PATH": str(directory / "recorder.db"),
            "PRAXIS_ACTIONS__CREDENTIALS_DIR": str(directory),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_operator_ends_with_the_sentence(installation: Installation, tmp_path: Path) -> None:
    """With one binding too many `praxis operator` ends with 1 and says what to remove, before it watches anything."""
    name = installation.grant(DANGERS["create approvals"][0])
    ended = start(installation, tmp_path)
    assert ended.returncode == 1, ended.stderr
    assert "praxis operator: the operator refuses to start, as it may do more than it needs:\n- it may create" in (
        ended.stderr
    )
    assert f'ClusterRoleBinding "{name}"' in ended.stderr
    asked = (
        line for line in installation.plane.audit_log.read_text().splitlines() if installation.names.operator in line
    )
    assert not any('"verb":"watch"' in line for line in asked)
