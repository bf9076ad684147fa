"""What each identity may do, asked of a real API server: everything that is not listed here is refused."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

import pytest
import yaml

from praxis.api import rbac
from praxis.api.accounts import Names
from praxis.controlplane import ControlPlane
from praxis.kube import Kube
from tests.api.conftest import NAMES, NAMESPACE, ROOT

pytestmark = pytest.mark.controlplane

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
PRAXIS = "praxis.kopachelli.dev"
ADMISSION = "admissionregistration.k8s.io"
RBAC = "rbac.authorization.k8s.io"

RESOURCES = (
    *((PRAXIS, kind) for kind in ("incidents", "incidentapprovals", "incidentreconciliations", "remediationtargets")),
    *(
        (PRAXIS, f"{kind}/status")
        for kind in ("incidents", "incidentapprovals", "incidentreconciliations", "remediationtargets")
    ),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "pods"),
    ("", "pods/log"),
    ("", "pods/exec"),
    ("", "pods/attach"),
    ("", "pods/portforward"),
    ("", "pods/proxy"),
    ("", "pods/ephemeralcontainers"),
    ("", "pods/eviction"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "nodes/proxy"),
    ("", "services/proxy"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("apps", "replicasets"),
    ("apps", "daemonsets"),
    ("batch", "jobs"),
    ("coordination.k8s.io", "leases"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiextensions.k8s.io", "customresourcedefinitions/status"),
    ("apiregistration.k8s.io", "apiservices"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("certificates.k8s.io", "certificatesigningrequests/approval"),
    (ADMISSION, "validatingadmissionpolicies"),
    (ADMISSION, "validatingadmissionpolicybindings"),
    (ADMISSION, "validatingwebhookconfigurations"),
    (ADMISSION, "mutatingwebhookconfigurations"),
    (ADMISSION, "mutatingadmissionpolicies"),
    (ADMISSION, "mutatingadmissionpolicybindings"),
    (RBAC, "roles"),
    (RBAC, "rolebindings"),
    (RBAC, "clusterroles"),
    (RBAC, "clusterrolebindings"),
)
SPECIAL = (
    ("impersonate", "", "users"),
    ("impersonate", "", "groups"),
    ("impersonate", "", "serviceaccounts"),
    ("impersonate", "authentication.k8s.io", "uids"),
    ("impersonate", "authentication.k8s.io", "userextras/scopes"),
    ("escalate", RBAC, "clusterroles"),
    ("bind", RBAC, "clusterroles"),
    ("escalate", RBAC, "roles"),
    ("bind", RBAC, "roles"),
    ("approve", "certificates.k8s.io", "signers"),
    ("sign", "certificates.k8s.io", "signers"),
    ("attest", "certificates.k8s.io", "signers"),
    ("use", "policy", "podsecuritypolicies"),
    *(("*", PRAXIS, kind) for kind in ("incidents", "incidentapprovals", "incidentreconciliations")),
    ("*", "*", "*"),
)

READ_ALL = {
    f"{verb} {kind}.{PRAXIS}"
    for verb in ("get", "list", "watch")
    for kind in ("incidents", "incidentapprovals", "incidentreconciliations", "remediationtargets")
}
SUBJECTS: dict[str, tuple[str, list[str], set[str]]] = {
    "operator": (
        "system:serviceaccount:praxis-system:praxis-operator",
        ["system:serviceaccounts", "system:serviceaccounts:praxis-system"],
        {
            "get incidents.praxis.kopachelli.dev",
            *(each for each in READ_ALL if not each.startswith("get ")),
            "patch incidents/status.praxis.kopachelli.dev",
            "patch incidentapprovals/status.praxis.kopachelli.dev",
            "patch incidentreconciliations/status.praxis.kopachelli.dev",
            "patch remediationtargets/status.praxis.kopachelli.dev",
            "create events.events.k8s.io",
            "list events.events.k8s.io",
            "list namespaces",
            "list pods",
            "get pods/log",
            "list deployments.apps",
            "list statefulsets.apps",
            "list replicasets.apps",
            "list daemonsets.apps",
            "list customresourcedefinitions.apiextensions.k8s.io",
            "watch customresourcedefinitions.apiextensions.k8s.io",
            "list validatingadmissionpolicies.admissionregistration.k8s.io",
            "list validatingadmissionpolicybindings.admissionregistration.k8s.io",
        },
    ),
    "gateway": (
        "system:serviceaccount:praxis-system:praxis-gateway",
        ["system:serviceaccounts", "system:serviceaccounts:praxis-system"],
        {
            "create incidents.praxis.kopachelli.dev",
            "get incidents.praxis.kopachelli.dev",
            "list incidents.praxis.kopachelli.dev",
            "patch incidents.praxis.kopachelli.dev",
        },
    ),
    "approver": (
        "alice",
        ["praxis-approvers"],
        {
            *READ_ALL,
            "create incidentapprovals.praxis.kopachelli.dev",
            "create incidentreconciliations.praxis.kopachelli.dev",
            "get events",
            "list events",
        },
    ),
    "viewer": ("victor", ["praxis-viewers"], {*READ_ALL, "get events", "list events"}),
    "GitOps controller that was opted in": (
        "system:serviceaccount:argocd:matrix",
        ["system:serviceaccounts", "system:serviceaccounts:argocd"],
        {
            "create incidentapprovals.praxis.kopachelli.dev",
            "delete incidentapprovals.praxis.kopachelli.dev",
            "patch incidentapprovals.praxis.kopachelli.dev",
            "get incidentapprovals.praxis.kopachelli.dev",
            "list incidentapprovals.praxis.kopachelli.dev",
            "watch incidentapprovals.praxis.kopachelli.dev",
        },
    ),
    "anybody": ("mallory", [], set()),
    "another service account": ("system:serviceaccount:shop:default", ["system:serviceaccounts"], set()),
}


async def may(kube: Kube, user: str, groups: list[str], attributes: dict[str, str]) -> bool:
    """Whether the API server's authoriser allows it."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": [*groups, "system:authenticated"], "resourceAttributes": attributes},
    }
    return bool((await kube.create(REVIEWS, review)).document["status"]["allowed"])


def asked(verb: str, group: str, resource: str) -> dict[str, str]:
    """The attributes of a request, in the namespace of these tests."""
    name, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": name, "namespace": NAMESPACE}
    return {**attributes, "subresource": subresource} if subresource else attributes


@pytest.fixture(scope="module")
def bound(guarded: ControlPlane) -> ControlPlane:
    """With the opt-in role bound to one account, under a name of its own."""
    role, binding = rbac.signing(Names(signing_accounts=("system:serviceaccount:argocd:matrix",)))
    binding["metadata"]["name"] = f"{role['metadata']['name']}-matrix"
    stream = json.dumps({"apiVersion": "v1", "kind": "List", "items": [role, binding]})
    guarded.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=stream)
    return guarded


@pytest.mark.parametrize("who", SUBJECTS)
async def test_exactly_this(bound: ControlPlane, who: str) -> None:
    """An identity may do what its role lists, in any namespace, and nothing else."""
    user, groups, expected = SUBJECTS[who]
    questions = [
        *((verb, group, resource) for (group, resource), verb in itertools.product(RESOURCES, VERBS)),
        *SPECIAL,
    ]
    async with await Kube.connect(bound.admin_kubeconfig) as kube:
        answers = await asyncio.gather(*(may(kube, user, groups, asked(*question)) for question in questions))
    allowed = {
        f"{verb} {resource}.{group}" if group else f"{verb} {resource}"
        for (verb, group, resource), answer in zip(questions, answers, strict=True)
        if answer
    }
    assert allowed == expected


@pytest.mark.parametrize(
    ("group", "resource", "verb", "namespace", "name", "expected"),
    [
        ("coordination.k8s.io", "leases", "create", "praxis-system", "", True),
        ("coordination.k8s.io", "leases", "get", "praxis-system", "praxis-operator", True),
        ("coordination.k8s.io", "leases", "update", "praxis-system", "praxis-operator", True),
        ("coordination.k8s.io", "leases", "patch", "praxis-system", "praxis-operator", True),
        ("coordination.k8s.io", "leases", "delete", "praxis-system", "praxis-operator", False),
        ("coordination.k8s.io", "leases", "get", "praxis-system", "another", False),
        ("coordination.k8s.io", "leases", "update", "praxis-system", "another", False),
        ("coordination.k8s.io", "leases", "create", "kube-system", "", False),
        ("coordination.k8s.io", "leases", "update", "kube-system", "kube-scheduler", False),
        ("", "configmaps", "get", "praxis-system", "praxis-allowed-signers", True),
        ("", "configmaps", "list", "praxis-system", "", False),
        ("", "configmaps", "watch", "praxis-system", "praxis-allowed-signers", False),
        ("", "configmaps", "update", "praxis-system", "praxis-allowed-signers", False),
        ("", "configmaps", "patch", "praxis-system", "praxis-allowed-signers", False),
        ("", "configmaps", "delete", "praxis-system", "praxis-allowed-signers", False),
        ("", "configmaps", "get", "praxis-system", "another", False),
        ("", "configmaps", "get", "kube-system", "praxis-allowed-signers", False),
    ],
)
async def test_what_the_operator_may_do_with_one_object(
    *, guarded: ControlPlane, group: str, resource: str, verb: str, namespace: str, name: str, expected: bool
) -> None:
    """It has its own Lease, and reads the one list of those who may sign; no other, and writes only the Lease."""
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    user, groups, _ = SUBJECTS["operator"]
    async with await Kube.connect(guarded.admin_kubeconfig) as kube:
        assert await may(kube, user, groups, {**attributes, "name": name} if name else attributes) is expected


@pytest.mark.parametrize("who", [who for who in SUBJECTS if who != "operator"])
@pytest.mark.parametrize("resource", ["leases.coordination.k8s.io", "configmaps", "secrets", "serviceaccounts/token"])
async def test_the_installation_is_the_operators_alone(bound: ControlPlane, who: str, resource: str) -> None:
    """In PRAXIS' own namespace nobody else may do anything to its Lease, its list of signers or its accounts."""
    user, groups, _ = SUBJECTS[who]
    name, _, group = resource.partition(".")
    async with await Kube.connect(bound.admin_kubeconfig) as kube:
        for verb in VERBS:
            assert not await may(kube, user, groups, {**asked(verb, group, name), "namespace": "praxis-system"})


async def test_nobody_mints_the_tokens_of_another(guarded: ControlPlane) -> None:
    """With their own ephemeral tokens neither account gets another one, nor acts as somebody else: real requests."""
    for account in (NAMES.operator_account, NAMES.gateway_account):
        kubeconfig = guarded.service_account_kubeconfig(NAMES.namespace, account, lifetime=600)
        for command in (
            ("create", "token", NAMES.operator_account, "-n", NAMES.namespace),
            ("create", "token", "default", "-n", NAMESPACE),
            ("get", "incidents", "-n", NAMESPACE, "--as=alice", "--as-group=praxis-approvers"),
            ("get", "secrets", "-n", NAMES.namespace),
        ):
            done = guarded.kubectl(*command, kubeconfig=kubeconfig, check=False)
            assert done.returncode != 0, command
            assert "forbidden" in done.stderr.lower(), done.stderr


def test_roles_name_everything() -> None:
    """No generated role uses a wildcard, or grants anything on Secrets, or creates approvals for a robot."""
    documents = list(yaml.safe_load_all(Path(ROOT, "manifests/rbac.yaml").read_text(encoding="utf-8")))
    roles = [each for each in documents if each["kind"] in {"Role", "ClusterRole"}]
    assert sorted(each["metadata"]["name"] for each in roles) == [
        "praxis-approver",
        "praxis-evidence",
        "praxis-gateway",
        "praxis-operator",
        "praxis-operator",
        "praxis-viewer",
    ]
    for role in roles:
        for rule in role["rules"]:
            named = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert not any("*" in each for each in named)
            assert "secrets" not in rule["resources"]


def test_subjects() -> None:
    """Robots are bound by name, people by group, and nobody to both kinds of role."""
    documents = yaml.safe_load_all(Path(ROOT, "manifests/rbac.yaml").read_text(encoding="utf-8"))
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"]): [
            (subject["kind"], subject["name"]) for subject in each["subjects"]
        ]
        for each in documents
        if each["kind"].endswith("Binding")
    }
    assert bound == {
        ("ClusterRole", "praxis-operator"): [("ServiceAccount", "praxis-operator")],
        ("ClusterRole", "praxis-evidence"): [("ServiceAccount", "praxis-operator")],
        ("Role", "praxis-operator"): [("ServiceAccount", "praxis-operator")],
        ("ClusterRole", "praxis-gateway"): [("ServiceAccount", "praxis-gateway")],
        ("ClusterRole", "praxis-approver"): [("Group", "praxis-approvers")],
        ("ClusterRole", "praxis-viewer"): [("Group", "praxis-viewers")],
    }
    assert (NAMES.approvers_group, NAMES.viewers_group) == ("praxis-approvers", "praxis-viewers")
