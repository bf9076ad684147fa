"""An installation's accounts on a real API server, under names of their own, to be given more than they should have."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from praxis.api import rbac
from praxis.api.accounts import Names
from praxis.controlplane import ControlPlane
from praxis.settings import OperatorSettings

RBAC = "/apis/rbac.authorization.k8s.io/v1"
IN_FORCE_SECONDS = 30.0
"""For the authoriser to hear of a new binding; it takes milliseconds."""
Rule = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Installation:
    """Service accounts with the shipped roles in a namespace of its own; nobody else is bound."""

    plane: ControlPlane
    names: Names

    @classmethod
    def create(cls, plane: ControlPlane) -> Installation:
        """Create both accounts, and every role and binding, cluster roles under names of their own."""
        suffix = secrets.token_hex(4)
        names = Names(namespace=f"own-{suffix}", approvers_group=f"deciders-{suffix}", viewers_group=f"others-{suffix}")
        installation = cls(plane, names)
        for document in rbac.accounts(names):
            installation._post(document)
        for document in rbac.documents(names):
            installation._post(installation._renamed(document))
        asked = {"verb": "patch", "group": "praxis.kopachelli.dev", "resource": "incidents/status"}
        installation._wait(asked, user=names.operator)
        return installation

    @property
    def kubeconfig(self) -> Path:
        """The operator's."""
        return self.plane.service_account_kubeconfig(self.names.namespace, self.names.operator_account)

    def settings(self, *namespaces: str) -> OperatorSettings:
        """The operator's, watching these namespaces, or all."""
        return OperatorSettings(namespaces=list(namespaces), installation_namespace=self.names.namespace)

    def grant(
        self, rule: Rule, *, namespace: str | None = None, user: str | None = None, group: str | None = None
    ) -> str:
        """Give one rule more, cluster-wide or in a namespace, and wait until it is in force.

        To the operator, unless a user or a group is named. The name of the new role and binding.
        """
        name = f"more-{secrets.token_hex(4)}"
        kind = "Role" if namespace else "ClusterRole"
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        subject = {"kind": "ServiceAccount", "name": self.names.operator_account, "namespace": self.names.namespace}
        if user or group:
            kind_of_subject = "User" if user else "Group"
            subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind_of_subject, "name": str(user or group)}
        api = {"apiVersion": "rbac.authorization.k8s.io/v1"}
        self._post({**api, "kind": kind, "metadata": metadata, "rules": [rule]})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        self._post({**api, "kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference, "subjects": [subject]})
        self._wait(
            {
                "verb": rule["verbs"][0],
                "group": rule.get("apiGroups", [""])[0],
                "resource": rule.get("resources", [""])[0],
                "name": rule.get("resourceNames", [""])[0],
                "namespace": namespace or "",
                "path": rule.get("nonResourceURLs", [""])[0],
            },
            user=user or (None if group else self.names.operator),
            group=group,
        )
        return name

    def _renamed(self, document: dict[str, Any]) -> dict[str, Any]:
        if document["metadata"].get("namespace"):
            return document
        renamed = {**document, "metadata": {"name": f"{self.names.namespace}-{document['metadata']['name']}"}}
        if "roleRef" in document:
            role = f"{self.names.namespace}-{document['roleRef']['name']}"
            renamed["roleRef"] = {**document["roleRef"], "name": role}
        return renamed

    def _post(self, document: Mapping[str, Any]) -> None:
        plural = {"Namespace": "namespaces", "ServiceAccount": "serviceaccounts"}.get(
            document["kind"], f"{document['kind'].lower()}s"
        )
        api = "/api/v1" if document["apiVersion"] == "v1" else RBAC
        namespace = document["metadata"].get("namespace")
        within = f"/namespaces/{namespace}" if namespace else ""
        self.plane.request("POST", f"{api}{within}/{plural}", document)

    def _wait(self, asked: Mapping[str, str], *, user: str | None = None, group: str | None = None) -> None:
        resource, _, subresource = asked["resource"].partition("/")
        attributes = {**asked, "resource": resource, "subresource": subresource}
        path = attributes.pop("path", "")
        what: dict[str, Any] = {"resourceAttributes": attributes}
        if path:
            what = {"nonResourceAttributes": {"path": path.replace("*", "x"), "verb": asked["verb"]}}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user or "somebody", "groups": [group] if group else [], **what},
        }
        deadline = time.monotonic() + IN_FORCE_SECONDS
        while time.monotonic() < deadline:
            answer = self.plane.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
            if answer["status"].get("allowed"):
                return
            time.sleep(0.02)
        raise TimeoutError(f"not in force: {asked}")
