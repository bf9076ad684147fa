"""Consistent reads of PRAXIS' resources for the phases, and the holder's compare-and-swap.

A read without a resourceVersion is served from etcd's quorum (the API server's "consistent read"); no cache of a watch
is asked for anything that is decided on.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from praxis.api.accounts import SIGNERS_CONFIG_MAP
from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import Resource
from praxis.api.incident import Guard, Incident
from praxis.api.installation import Names, differences, expected
from praxis.api.reasons import Reason
from praxis.api.target import Holder, RemediationTarget
from praxis.controller.queue import Key
from praxis.errors import NeedsPerson, Refused, Superseded
from praxis.kube import Kube, Reply, path_of, resource_path
from praxis.settings import OperatorSettings
from praxis.signing.signers import AllowedSigners

R = TypeVar("R", bound=Resource)

LABEL = "app.kubernetes.io/part-of=praxis"
"""Everything that PRAXIS installs carries it."""

PLURALS = {
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "ValidatingAdmissionPolicy": ("/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies"),
    "ValidatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1",
        "validatingadmissionpolicybindings",
    ),
}


class KubeCluster:
    """The cluster as one identity sees it."""

    def __init__(self, *, kube: Kube, settings: OperatorSettings) -> None:
        self._kube = kube
        self._namespaces: list[str | None] = list(settings.namespaces) or [None]
        self._expected = expected(
            Names(
                namespace=settings.installation_namespace,
                operator_account=settings.operator_account,
                gateway_account=settings.gateway_account,
                signing_accounts=tuple(settings.signing_accounts),
            )
        )
        self._installation = settings.installation_namespace

    async def incident(self, namespace: str, name: str) -> Incident | None:
        """The incident as stored now, None when there is none; raises NeedsPerson when it does not hold its schema."""
        try:
            reply = await self._kube.get(path_of(Incident, namespace, name))
        except Refused as error:
            if error.not_found:
                return None
            raise
        try:
            return Incident.parse(reply.document)
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            raise NeedsPerson(
                f"the stored incident does not hold its schema: {first['msg']} ({first['loc']})"
            ) from error

    async def versions(self, kind: type[Resource]) -> dict[Key, str]:
        """The resourceVersion of every object of a kind in the watched namespaces."""
        found: list[dict[str, Any]] = []
        for namespace in self._namespaces:
            found += await self._kube.metadata(path_of(kind, namespace))
        return {Key(each["namespace"], each["name"]): each["resourceVersion"] for each in found}

    async def approvals(self, incident: Incident) -> tuple[list[IncidentApproval], datetime | None]:
        """Every approval that names this incident's uid, and the API server's own time."""
        reply = await self._by_reference(IncidentApproval, incident.metadata.namespace, uid=incident.metadata.uid)
        return parsed(IncidentApproval, reply), reply.server_time

    async def approvals_by_name(self, namespace: str, name: str) -> tuple[list[IncidentApproval], datetime | None]:
        """Every approval that names an incident of this name, whatever the uid, and the API server's own time."""
        reply = await self._by_reference(IncidentApproval, namespace, name=name)
        return parsed(IncidentApproval, reply), reply.server_time

    async def allowed_signers(self) -> AllowedSigners | None:
        """The ConfigMap of those who may sign, None when there is none."""
        try:
            reply = await self._kube.get(resource_path("/api/v1", "configmaps", self._installation, SIGNERS_CONFIG_MAP))
        except Refused as error:
            if error.not_found:
                return None
            raise
        return AllowedSigners.of(reply.document)

    async def reconciliations(self, namespace: str, incident_uid: str) -> list[IncidentReconciliation]:
        """Every reconciliation that names this incident, which may be gone."""
        return parsed(
            IncidentReconciliation, await self._by_reference(IncidentReconciliation, namespace, uid=incident_uid)
        )

    async def reconciliations_by_name(self, namespace: str, name: str) -> list[IncidentReconciliation]:
        """Every reconciliation that names an incident of this name, whatever the uid."""
        return parsed(IncidentReconciliation, await self._by_reference(IncidentReconciliation, namespace, name=name))

    async def targets(self, namespace: str) -> list[RemediationTarget]:
        """Every target declared in a namespace."""
        return parsed(RemediationTarget, await self._kube.get(path_of(RemediationTarget, namespace)))

    async def all_targets(self) -> list[RemediationTarget]:
        """Every target in the watched namespaces."""
        found: list[RemediationTarget] = []
        for namespace in self._namespaces:
            found += parsed(RemediationTarget, await self._kube.get(path_of(RemediationTarget, namespace)))
        return found

    async def guards(self) -> list[Guard]:
        """The installed CRDs, policies and bindings; raises NeedsPerson when one is missing or differs."""
        guards: list[Guard] = []
        wrong: list[str] = []
        installed = await self._installed()
        for wanted in self._expected:
            kind, name = wanted["kind"], wanted["metadata"]["name"]
            found = installed.get((kind, name))
            if found is None:
                wrong.append(f"{kind} {name} is not installed, or has lost its label {LABEL}")
                continue
            # The items of a list do not repeat what the list says of them all.
            whole = {"apiVersion": wanted["apiVersion"], "kind": kind, **found}
            wrong += [f"{kind} {name}: {each}" for each in differences(wanted, whole)]
            metadata = found["metadata"]
            guards.append(Guard(kind=kind, name=name, uid=metadata["uid"], generation=metadata.get("generation", 1)))
        if wrong:
            raise NeedsPerson(
                "the installation is not what this operator was built with; apply its crds/ and manifests/, or the "
                "overlay with the service accounts of PRAXIS_SIGNING_ACCOUNTS: " + "; ".join(wrong),
                reason=Reason.INSTALLATION_DIFFERS,
            )
        return guards

    async def claim(self, target: RemediationTarget, holder: Holder) -> RemediationTarget:
        """Make `holder` the target's holder, if it is still as read; raises Superseded."""
        return await self._swap(target, {"op": "add", "path": "/status", "value": {"holder": holder.dump()}})

    async def release(self, target: RemediationTarget) -> None:
        """Remove the holder, if the target is still as read; raises Superseded."""
        await self._swap(target, {"op": "remove", "path": "/status/holder"})

    async def _swap(self, target: RemediationTarget, change: dict[str, Any]) -> RemediationTarget:
        path = path_of(RemediationTarget, target.metadata.namespace, target.metadata.name, "status")
        tests = [
            {"op": "test", "path": "/metadata/uid", "value": target.metadata.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": target.metadata.resource_version},
        ]
        try:
            reply = await self._kube.json_patch(path, [*tests, change])
        except Refused as error:
            if error.status in {404, 409, 422}:
                raise Superseded(f"target {target.key} changed since it was read: {error}") from error
            raise
        return RemediationTarget.model_validate(reply.document)

    async def _installed(self) -> dict[tuple[str, str], dict[str, Any]]:
        """What is installed and carries PRAXIS' label, by kind and name: three reads, not one for each guard."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for kind, (api, plural) in PLURALS.items():
            reply = await self._kube.get(resource_path(api, plural, None), {"labelSelector": LABEL})
            found |= {(kind, each["metadata"]["name"]): each for each in reply.document["items"]}
        return found

    async def _by_reference(self, kind: type[Resource], namespace: str, **reference: str) -> Reply:
        selector = ",".join(f"spec.incidentRef.{field}={value}" for field, value in reference.items())
        return await self._kube.get(path_of(kind, namespace), {"fieldSelector": selector})


def parsed(kind: type[R], reply: Reply) -> list[R]:
    """The items of a list. One that does not hold its schema raises NeedsPerson: skipping it could hide a Reject."""
    try:
        return [kind.model_validate(item) for item in reply.document["items"]]
    except ValidationError as error:
        raise NeedsPerson(f"a stored {kind.kind} does not hold its schema: {error.errors()[0]['msg']}") from error
