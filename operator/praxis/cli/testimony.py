"""People's statements beside a trail: which IncidentApproval or IncidentReconciliation each entry records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from praxis.api.approval import IncidentApproval, IncidentReconciliation, Verdict
from praxis.api.incident import EntryKind
from praxis.api.records import statement_digest

Document = Mapping[str, Any]
KINDS = {EntryKind.DECIDED.value: IncidentApproval.kind, EntryKind.RECONCILED.value: IncidentReconciliation.kind}


@dataclass(frozen=True)
class Statements:
    """The statements on one incident, each with the entry that records it.

    `matching` holds, by index of an entry, the statement that it binds; `rivals` a statement of the same person that
    the operator acted on although no entry binds it: it was changed since. `left` are those of no entry at all.
    """

    matching: Mapping[int, Document]
    rivals: Mapping[int, Document]
    left: Sequence[Document]

    @classmethod
    def on(cls, uid: str, status: Document, trail: Sequence[Document], documents: Sequence[Document]) -> Statements:
        """Find the entry of each statement on this incident."""
        approvers = _approvers(status)
        by_digest: dict[str, Document] = {}
        others: list[Document] = []
        recorded = {str(each.get("digest")) for each in trail if str(each.get("kind")) in KINDS}
        for document in documents:
            digest = _digest(document)
            if digest is not None and digest in recorded:
                by_digest[digest] = document
            elif _about(document, uid, approvers):
                others.append(document)
        matching: dict[int, Document] = {}
        rivals: dict[int, Document] = {}
        for index, entry in enumerate(trail):
            kind = KINDS.get(str(entry.get("kind")))
            found = by_digest.get(str(entry.get("digest")))
            if kind is not None and found is not None and found.get("kind") == kind:
                matching[index] = found
            elif kind is not None:
                rival = next((each for each in others if _by(each, kind, entry.get("actor"), approvers)), None)
                if rival is not None:
                    others.remove(rival)
                    rivals[index] = rival
        return cls(matching, rivals, others)

    def of(self, index: int) -> tuple[Document | None, bool]:
        """The statement of an entry, and whether it is the one that the entry binds."""
        return self.matching.get(index) or self.rivals.get(index), index in self.matching

    def kind_of(self, entry: Document) -> str:
        """The kind of statement that an entry records."""
        return KINDS[str(entry.get("kind"))]

    def recorded(self, digest: str) -> Document | None:
        """The statement with that digest, where an entry binds it."""
        return next((each for each in self.matching.values() if _digest(each) == digest), None)

    def unrecorded(self) -> list[str]:
        """Statements that the operator says it went by, of which the trail knows nothing."""
        return [
            f"{each.get('kind')} {_mapping(each.get('metadata')).get('name')} was accepted, and no entry of the trail "
            "records it: it was changed, or read later than the incident"
            for each in self.left
            if _accepted(each)
        ]


def _approvers(status: Document) -> dict[str, str]:
    """Who gave the approvals that status holds, by uid."""
    bound = status.get("approvals") or []
    given = [_mapping(each) for each in bound] if isinstance(bound, list) else []
    return {str(each.get("uid")): str(each.get("approver")) for each in given}


def _about(document: Document, uid: str, approvers: Mapping[str, str]) -> bool:
    """Whether it is on this incident, and was acted on."""
    spec, meta = _mapping(document.get("spec")), _mapping(document.get("metadata"))
    copied = str(meta.get("uid")) in approvers
    return copied or (_mapping(spec.get("incidentRef")).get("uid") == uid and _accepted(document))


def _by(document: Document, kind: str, actor: Any, approvers: Mapping[str, str]) -> bool:
    spec, meta = _mapping(document.get("spec")), _mapping(document.get("metadata"))
    people = [
        _mapping(spec.get("approver")).get("username"),
        _mapping(spec.get("observer")).get("username"),
        approvers.get(str(meta.get("uid"))),
    ]
    return document.get("kind") == kind and isinstance(actor, str) and actor in people


def _accepted(document: Document) -> bool:
    return _mapping(document.get("status")).get("verdict") == Verdict.ACCEPTED


def _digest(document: Document) -> str | None:
    try:
        return statement_digest(document)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _mapping(value: Any) -> Document:
    return value if isinstance(value, Mapping) else {}
