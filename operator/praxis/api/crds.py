"""The four CustomResourceDefinitions, rendered from the models and the rules.

Everything that the API server would fill in is written out, so that an installed `.spec` equals the rendered one
exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from praxis.api import rules
from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import GROUP, VERSION, Resource
from praxis.api.incident import Incident
from praxis.api.rules import Rule
from praxis.api.schema import Schema, structural
from praxis.api.target import RemediationTarget

Document = dict[str, Any]
LABELS = {"app.kubernetes.io/name": "praxis", "app.kubernetes.io/part-of": "praxis"}


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`; `wide` shows it with `-o wide` only. A date is shown as the time since then."""

    name: str
    path: str
    description: str
    type: Literal["string", "date", "integer"] = "string"
    wide: bool = False

    def rendered(self) -> Document:
        """An entry of `additionalPrinterColumns`."""
        column = {"name": self.name, "type": self.type, "description": self.description, "jsonPath": self.path}
        return {**column, "priority": 1} if self.wide else column


@dataclass(frozen=True)
class Definition:
    """What a CRD needs beside its models."""

    resource: type[Resource]
    short_name: str
    columns: Sequence[Column]
    rules: Sequence[Rule]
    selectable: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The name of the CRD."""
        return f"{self.resource.plural}.{GROUP}"


AGE = Column("Age", ".metadata.creationTimestamp", "Since its creation.", "date")
REASON = Column("Reason", ".status.reason", "Why.")
INCIDENT_NAME = Column("Incident", ".spec.incidentRef.name", "The incident.")
VERDICT = Column("Verdict", ".status.verdict", "Accepted or Refused; empty while pending.")
BY_REFERENCE = (".spec.incidentRef.name", ".spec.incidentRef.uid")

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        resource=Incident,
        short_name="inc",
        rules=rules.INCIDENT,
        columns=(
            Column("Phase", ".status.phase", "Where the incident stands."),
            Column("Severity", ".status.classification.severity", "How urgent it is."),
            Column("Target", ".status.target", "The target that its alerts belong to."),
            Column("Plan", ".status.plan.short", "The plan: the first digits of its digest."),
            Column("Waiting", ".status.waitingSince", "How long it has waited for a person.", "date"),
            REASON,
            AGE,
            Column("Summary", ".spec.summary", "The alert in a line.", wide=True),
            Column("Message", ".status.message", "Why it stands there, and what to do next.", wide=True),
        ),
    ),
    Definition(
        resource=IncidentApproval,
        short_name="incapp",
        rules=rules.APPROVAL,
        selectable=BY_REFERENCE,
        columns=(
            INCIDENT_NAME,
            Column("Decision", ".spec.decision", "Approve, Reject, Revise or Dismiss."),
            Column("Approver", ".spec.approver.username", "Who decided."),
            VERDICT,
            REASON,
            Column("Expires", ".spec.expiresAt", "When it ceases to count."),
            AGE,
            Column("Plan", ".spec.planDigest", "The plan that was read.", wide=True),
            Column("Message", ".status.message", "Why, and what to do next.", wide=True),
        ),
    ),
    Definition(
        resource=IncidentReconciliation,
        short_name="increc",
        rules=rules.RECONCILIATION,
        selectable=BY_REFERENCE,
        columns=(
            INCIDENT_NAME,
            Column("Observed", ".spec.observed", "What was found to have happened."),
            Column("Observer", ".spec.observer.username", "Who found it."),
            VERDICT,
            REASON,
            AGE,
            Column("Intent", ".spec.intentId", "The intent that it speaks of.", wide=True),
            Column("Message", ".status.message", "Why, and what to do next.", wide=True),
        ),
    ),
    Definition(
        resource=RemediationTarget,
        short_name="rt",
        rules=rules.TARGET,
        columns=(
            Column("Kind", ".spec.kind", "What kind of target it is."),
            Column("Region", ".spec.functionCompute.region", "Where the function is."),
            Column("Function", ".spec.functionCompute.function", "The function."),
            Column("Disposable", ".spec.disposable", "Whether it may be acted on at all."),
            Column("Holder", ".status.holder.incidentName", "The incident that may act on it now."),
            AGE,
        ),
    ),
)


def documents() -> list[Document]:
    """All four, in the order in which they are read."""
    return [document(definition) for definition in DEFINITIONS]


def document(definition: Definition) -> Document:
    """One CRD, whole."""
    resource = definition.resource
    version: Document = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [column.rendered() for column in definition.columns],
        "schema": {"openAPIV3Schema": schema(definition)},
    }
    if definition.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in definition.selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": definition.name, "labels": dict(LABELS)},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": [definition.short_name],
                "categories": ["praxis"],
            },
            "conversion": {"strategy": "None"},
            "versions": [version],
        },
    }


def schema(definition: Definition) -> Schema:
    """The schema of the whole object, with the rules in place.

    `status` has a default: the API server drops what a creator sends, and a status that somebody wipes becomes New
    again, which the transition rule then refuses. CEL runs on the default itself, so it is whole.
    """
    resource = definition.resource
    status = resource.model_fields["status"]
    root: Schema = {
        "description": f"{(resource.__doc__ or '').strip()}",
        "type": "object",
        "required": ["spec"],
        "properties": {name: structural(_model(resource, name)) for name in ("spec", "status")},
    }
    root["properties"]["status"]["default"] = status.get_default().dump()
    for rule in definition.rules:
        located(root, rule.at).setdefault("x-kubernetes-validations", []).append(rule.rendered())
    return root


def located(root: Schema, at: str) -> Schema:
    """The node of a schema at a rule's place.

    Raises:
        KeyError: there is no such field.
    """
    node = root
    for part in filter(None, at.split(".")):
        name = part.removesuffix("[]")
        node = node["properties"][name]
        if part != name:
            node = node["items"]
    return node


def _model(resource: type[Resource], name: str) -> Any:
    annotation = resource.model_fields[name].annotation
    assert annotation is not None, "every field of a resource is annotated"
    return annotation
