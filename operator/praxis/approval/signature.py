"""What is known of the signatures on people's decisions. Checking one takes a process: see `praxis.signing`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from praxis.api.approval import IncidentApproval


@dataclass(frozen=True)
class Verified:
    """It is the approver's, over this very decision; `key` is the fingerprint of the key, `SHA256:…`."""

    key: str


@dataclass(frozen=True)
class Unverified:
    """It counts for nothing; `why` says what to do about it."""

    why: str


Finding: TypeAlias = Verified | Unverified
Signatures: TypeAlias = Mapping[str, Finding]
"""What was found, by the uid of the approval."""
UNCHECKED: Signatures = MappingProxyType({})
"""Nobody looked: then no signature holds."""


def fault(approval: IncidentApproval, signatures: Signatures) -> str | None:
    """Why the signature that an approval carries does not hold; None when it holds, or there is none."""
    if approval.spec.signature is None:
        return None
    match signatures.get(approval.metadata.uid):
        case Verified():
            return None
        case Unverified(why=why):
            return why
        case None:
            return "it has not been checked"


def signed_with(approval: IncidentApproval, signatures: Signatures) -> str:
    """` (SSH key SHA256:…)` of a decision whose signature holds, for what people are told; else empty."""
    finding = signatures.get(approval.metadata.uid)
    return f" (SSH key {finding.key})" if isinstance(finding, Verified) else ""
