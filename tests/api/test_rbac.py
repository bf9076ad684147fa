"""What each identity may do, asked of a real API server: everything that is not listed here is refused."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
import yaml

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
    ("", "events"),
    ("events.k8s.io", "events"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("apps", "replicasets"),
    ("apps", "daemonsets"),
    ("coordination.k8s.io", "leases"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    (ADMISSION, "validatingadmissionpolicies"),
    (ADMISSION, "validatingadmissionpolicybindings"),
    (ADMISSION, "validatingwebhookconfigurations"),
    (ADMISSION, "mutatingwebhookconfigurations"),
    (ADMISSION, "mutatingadmissionpolicies"),
    (RBAC, "roles"),
    (RBAC, "rolebindings"),
    (RBAC, "clusterroles"),
    (RBAC, "clusterrolebindings"),
)
SPECIAL = (
    ("impersonate", "", "users"),
    ("impersonate", "", "groups"),
    ("impersonate", "", "serviceaccounts"),
    ("escalate", RBAC, "clusterroles"),
    ("bind", RBAC, "clusterroles"),
    ("escalate", RBAC, "roles"),
    ("bind", RBAC, "roles"),
    ("approve", "certificates.k8s.io", "signers"),
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
            *READ_ALL,
            "patch incidents/status.praxis.kopachelli.dev",
            "patch incidentapprovals/status.praxis.kopachelli.dev",
            "patch incidentreconciliations/status.praxis.kopachelli.dev",
            "patch remediationtargets/status.praxis.kopachelli.dev",
            "create events.events.k8s.io",
            "get events.events.k8s.io",
            "list events.events.k8s.io",
            "list namespaces",
            "get pods",
            "list pods",
            "get pods/log",
            "list pods/log",
            "get deployments.apps",
            "list deployments.apps",
            "get statefulsets.apps",
            "list statefulsets.apps",
            "get replicasets.apps",
            "list replicasets.apps",
            "get daemonsets.apps",
            "list daemonsets.apps",
            "get customresourcedefinitions.apiextensions.k8s.io",
            "list customresourcedefinitions.apiextensions.k8s.io",
            "watch customresourcedefinitions.apiextensions.k8s.io",
            "get validatingadmissionpolicies.admissionregistration.k8s.io",
            "list validatingadmissionpolicies.admissionregistration.k8s.io",
            "get validatingadmissionpolicybindings.admissionregistration.k8s.io",
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


@pytest.mark.parametrize("who", SUBJECTS)
async def test_exactly_this(guarded: ControlPlane, who: str) -> None:
    """An identity may do what its role lists, in any namespace, and nothing else."""
    user, groups, expected = SUBJECTS[who]
    questions = [
        *((verb, group, resource) for (group, resource), verb in itertools.product(RESOURCES, VERBS)),
        *SPECIAL,
    ]
    async with await Kube.connect(guarded.admin_kubeconfig) as kube:
        answers = await asyncio.gather(*(may(kube, user, groups, asked(*question)) for question in questions))
    allowed = {
        f"{verb} {resource}.{group}" if group else f"{verb} {resource}"
        for (verb, group, resource), answer in zip(questions, answers, strict=True)
        if answer
    }
    assert allowed == expected


@pytest.mark.parametrize(
    ("verb", "namespace", "name", "expected"),
    [
        ("create", "praxis-system", "", True),
        ("get", "praxis-system", "praxis-operator", True),
        ("update", "praxis-system", "praxis-operator", True),
        ("patch", "praxis-system", "praxis-operator", True),
        ("delete", "praxis-system", "praxis-operator", False),
        ("get", "praxis-system", "another", False),
        ("update", "praxis-system", "another", False),
        ("create", "kube-system", "", False),
        ("update", "kube-system", "kube-scheduler", False),
    ],
)
async def test_lease(guarded: ControlPlane, verb: str, namespace: str, name: str, expected: bool) -> None:
    """The operator has its own Lease in its own namespace, and no other."""
    attributes = {"verb": verb, "group": "coordination.k8s.io", "resource": "leases", "namespace": namespace}
    user, groups, _ = SUBJECTS["operator"]
    async with await Kube.connect(guarded.admin_kubeconfig) as kube:
        assert await may(kube, user, groups, {**attributes, "name": name} if name else attributes) is expected


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
