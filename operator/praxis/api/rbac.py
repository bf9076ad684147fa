"""Namespace, service accounts and roles: each identity gets what it is seen to use (`tests/audit`), and nothing else.

The operator and the gateway never read Secrets and never create an approval. What a person may see and decide is a role
of its own; who is one of them is the cluster's to say, by group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from praxis.api.accounts import SIGNERS_CONFIG_MAP, Names
from praxis.api.admission import KINDS
from praxis.api.base import GROUP
from praxis.api.crds import LABELS

Document = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")
LEASE = "praxis-operator"
"""Name of the Lease that says which replica works."""


def accounts(names: Names) -> list[Document]:
    """The namespace of the installation and its two service accounts."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": names.namespace,
                "labels": {**LABELS, "pod-security.kubernetes.io/enforce": "restricted"},
            },
        },
        *(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": account, "namespace": names.namespace, "labels": dict(LABELS)},
            }
            for account in (names.operator_account, names.gateway_account)
        ),
    ]


def documents(names: Names) -> list[Document]:
    """Every role, each with its binding."""
    operator = [_account(names, names.operator_account)]
    gateway = [_account(names, names.gateway_account)]
    return [
        *(signing(names) if names.signing_accounts else []),
        *_cluster_role(
            "praxis-operator",
            [
                _rule([GROUP], ["incidents"], READ),
                _rule([GROUP], [kind for kind in KINDS if kind != "incidents"], ["list", "watch"]),
                _rule([GROUP], [f"{kind}/status" for kind in KINDS], ["patch"]),
                _rule(["events.k8s.io"], ["events"], ["create"]),
                # At start it asks in each namespace what it may do; rules are listed by namespace only.
                _rule([""], ["namespaces"], ["list"]),
                # Compared with what this operator was built with; kopf watches CRDs to see ours come and go.
                _rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], ["list", "watch"]),
                _rule(
                    ["admissionregistration.k8s.io"],
                    ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
                    ["list"],
                ),
            ],
            operator,
        ),
        *_cluster_role(
            "praxis-evidence",
            [
                _rule([""], ["pods"], ["list"]),
                _rule([""], ["pods/log"], ["get"]),
                _rule(["events.k8s.io"], ["events"], ["list"]),
                _rule(["apps"], ["daemonsets", "deployments", "replicasets", "statefulsets"], ["list"]),
            ],
            operator,
        ),
        *_own_namespace(names, operator),
        *_cluster_role("praxis-gateway", [_rule([GROUP], ["incidents"], ["create", "get", "list", "patch"])], gateway),
        *_cluster_role(
            "praxis-approver",
            [
                _rule([GROUP], ["incidentapprovals", "incidentreconciliations"], ["create", *READ]),
                _rule([GROUP], ["incidents", "remediationtargets"], READ),
                _rule([""], ["events"], ["get", "list"]),
            ],
            [_group(names.approvers_group)],
        ),
        *_cluster_role(
            "praxis-viewer",
            [_rule([GROUP], KINDS, READ), _rule([""], ["events"], ["get", "list"])],
            [_group(names.viewers_group)],
        ),
    ]


def signing(names: Names) -> list[Document]:
    """What a GitOps controller needs to apply and prune signed decisions; the policies keep it to those."""
    return _cluster_role(
        "praxis-signed-approvals",
        [_rule([GROUP], ["incidentapprovals"], ["create", "delete", "patch", *READ])],
        [_user_account(username) for username in names.signing_accounts],
    )


def _own_namespace(names: Names, subjects: Sequence[Document]) -> list[Document]:
    """The operator's own Lease, and no other, though creation cannot be limited to a name; the list of signers."""
    metadata = {"name": "praxis-operator", "namespace": names.namespace, "labels": dict(LABELS)}
    api = "coordination.k8s.io"
    return [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": metadata,
            "rules": [
                _rule([api], ["leases"], ["create"]),
                {**_rule([api], ["leases"], ["get", "patch", "update"]), "resourceNames": [LEASE]},
                {**_rule([""], ["configmaps"], ["get"]), "resourceNames": [SIGNERS_CONFIG_MAP]},
            ],
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "praxis-operator"},
            "subjects": list(subjects),
        },
    ]


def _cluster_role(name: str, rules: Sequence[Document], subjects: Sequence[Document]) -> list[Document]:
    return [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": dict(LABELS)},
            "rules": list(rules),
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name, "labels": dict(LABELS)},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": list(subjects),
        },
    ]


def _rule(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str]) -> Document:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


def _account(names: Names, account: str) -> Document:
    return {"kind": "ServiceAccount", "name": account, "namespace": names.namespace}


def _user_account(username: str) -> Document:
    """A service account, from the user name that the API server knows it by."""
    _, _, namespace, name = username.split(":")
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def _group(name: str) -> Document:
    return {"apiGroup": RBAC, "kind": "Group", "name": name}
