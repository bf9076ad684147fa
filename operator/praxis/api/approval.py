"""IncidentApproval and IncidentReconciliation: what people say. Their specs never change."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from praxis.api import bounds
from praxis.api.base import (
    API_VERSION,
    Condition,
    Model,
    Name,
    PlanDigest,
    Resource,
    Sentence,
    Text,
    Timestamp,
    Uid,
    Username,
    Word,
)
from praxis.digest import Digest, canonical, digest

ARMOUR = r"^-----BEGIN SSH SIGNATURE-----\n[A-Za-z0-9+/=\n]+\n-----END SSH SIGNATURE-----\n?$"
"""An armoured SSH signature, as PROTOCOL.sshsig of OpenSSH defines it."""


class IncidentRef(Model):
    """The incident that is spoken of, this very one."""

    name: Annotated[Name, Field(description="Its name, in the same namespace.")]
    uid: Annotated[Uid, Field(description="Its uid.")]


class Decision(StrEnum):
    """What a person decides about a plan."""

    APPROVE = "Approve"
    REJECT = "Reject"
    REVISE = "Revise"
    DISMISS = "Dismiss"


class Person(Model):
    """A person, by the name that the API server authenticates."""

    username: Annotated[Username, Field(description="Must be the requester's own username.")]


class IncidentApprovalSpec(Model):
    """A decision on one plan of one incident."""

    incident_ref: Annotated[IncidentRef, Field(description="The incident.")]
    plan_digest: Annotated[PlanDigest, Field(description="The digest of the plan that was read.")]
    decision: Annotated[
        Decision, Field(description="Approve runs the plan; Reject and Revise ask for another; Dismiss closes.")
    ]
    reason: Annotated[Sentence, Field(description="Why.")] = ""
    corrections: Annotated[
        list[Sentence], Field(max_length=bounds.CORRECTIONS, description="With Revise: what the next plan must heed.")
    ] = []
    approver: Annotated[Person, Field(description="Who decides.")]
    signature: Annotated[
        str | None,
        Field(
            max_length=8192,
            pattern=ARMOUR,
            description="Armoured SSH signature of the approver, in the sshsig namespace praxis-approval, over the "
            "canonical decision. It is optional; one that is present and does not verify always refuses.",
        ),
    ] = None
    expires_at: Annotated[Timestamp, Field(description="After this it is no longer acted on.")]


class Verdict(StrEnum):
    """What the operator made of a decision."""

    ACCEPTED = "Accepted"
    REFUSED = "Refused"


class VerdictStatus(Model):
    """Status of an approval or a reconciliation. A verdict is final."""

    verdict: Annotated[Verdict | None, Field(description="Accepted or Refused; absent while pending.")] = None
    reason: Annotated[Word | None, Field(description="Why, as a CamelCase word.")] = None
    message: Annotated[Sentence | None, Field(description="Why, in a sentence, and what to do next.")] = None
    conditions: Annotated[
        list[Condition],
        Field(
            max_length=bounds.CONDITIONS,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
            description="Conditions: Accepted.",
        ),
    ] = []


class IncidentApproval(Resource):
    """A person's decision on a plan."""

    kind: ClassVar[str] = "IncidentApproval"
    plural: ClassVar[str] = "incidentapprovals"

    spec: IncidentApprovalSpec
    status: VerdictStatus = VerdictStatus()

    @property
    def record_digest(self) -> Digest:
        """What the trail records of this decision: this very object and all that it says."""
        return digest({"uid": self.metadata.uid, "spec": self.spec.dump()})

    @property
    def signed_content(self) -> bytes:
        """What `spec.signature` must be a signature of."""
        return signed_content(self.metadata.namespace, self.spec)


def signed_content(namespace: str, spec: IncidentApprovalSpec) -> bytes:
    """The bytes that a person signs: all that a decision says, in canonical JSON, but for the signature itself.

    The namespace is part of it, the object's name is not: tools that apply manifests may prefix names, and the same
    words under another name still count once, as they are the same person's on the same plan.

    Raises:
        ValueError: a field has no canonical form (a lone surrogate).
    """
    said = {name: value for name, value in spec.dump().items() if name != "signature"}
    kind = IncidentApproval.kind
    return canonical({"apiVersion": API_VERSION, "kind": kind, "namespace": namespace, "spec": said})


class Observed(StrEnum):
    """What a person found to have happened."""

    APPLIED = "Applied"
    NOT_APPLIED = "NotApplied"


class IncidentReconciliationSpec(Model):
    """A person's finding on an outcome that the operator could not establish."""

    incident_ref: Annotated[IncidentRef, Field(description="The incident.")]
    intent_id: Annotated[Word, Field(min_length=8, description="The intent whose outcome is unknown.")]
    trail_head: Annotated[PlanDigest, Field(description="status.head of the incident that was read.")]
    observed: Annotated[Observed, Field(description="What was found.")]
    note: Annotated[Text, Field(min_length=1, description="How it was found.")]
    observer: Annotated[Person, Field(description="Who found it.")]


class IncidentReconciliation(Resource):
    """A person's finding on an incident in ReconciliationRequired."""

    kind: ClassVar[str] = "IncidentReconciliation"
    plural: ClassVar[str] = "incidentreconciliations"

    spec: IncidentReconciliationSpec
    status: VerdictStatus = VerdictStatus()

    @property
    def record_digest(self) -> Digest:
        """What the trail records of this finding: this very object and all that it says."""
        return digest({"uid": self.metadata.uid, "spec": self.spec.dump()})
