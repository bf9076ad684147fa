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


@dataclass(frozen=True)
class Unknown:
    """Whether it holds cannot be told now: a yes does not count yet, and a no holds back whatever it would stop."""

    why: str


Finding: TypeAlias = Verified | Unverified | Unknown
Signatures: TypeAlias = Mapping[str, Finding]
"""What was found, by the uid of the approval."""
UNCHECKED: Signatures = MappingProxyType({})
"""Nobody looked: then no signature holds."""


def fault(approval: IncidentApproval, signatures: Signatures) -> str | None:
    """Why the signature that an approval carries does not hold; None when it holds, is not known, or there is none."""
    if approval.spec.signature is None:
        return None
    match signatures.get(approval.metadata.uid):
        case Verified() | Unknown():
            return None
        case Unverified(why=why):
            return why
        case None:
            return "it has not been checked"


def doubt(approval: IncidentApproval, signatures: Signatures) -> str | None:
    """Why it is not known whether the signature holds; None when that is known."""
    finding = signatures.get(approval.metadata.uid)
    return finding.why if isinstance(finding, Unknown) else None


def key_of(uid: str, signatures: Signatures) -> str | None:
    """The fingerprint of the key that signed the approval with this uid, if that signature holds."""
    finding = signatures.get(uid)
    return finding.key if isinstance(finding, Verified) else None


def signed_with(approval: IncidentApproval, signatures: Signatures) -> str:
    """` (SSH key SHA256:…)` of a decision whose signature holds, for what people are told; else empty."""
    key = key_of(approval.metadata.uid, signatures)
    return f" (SSH key {key})" if key is not None else ""
