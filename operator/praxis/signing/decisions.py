"""The signatures on a list of decisions, checked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from praxis.api.accounts import SIGNERS_CONFIG_MAP
from praxis.api.approval import IncidentApproval, Verdict
from praxis.api.reasons import Reason
from praxis.approval.signature import UNCHECKED, Finding, Signatures, Unknown, Unverified
from praxis.clock import parse_rfc3339
from praxis.errors import PraxisError
from praxis.signing.openssh import verify
from praxis.signing.signers import AllowedSigners


async def checked(
    approvals: Sequence[IncidentApproval], allowed_signers: Callable[[], Awaitable[AllowedSigners | None]]
) -> Signatures:
    """What is found on those that carry a signature; the list of signers is read only then, and afresh.

    A key counts if it was valid when the API server stored the decision: that one clock says the same however often and
    wherever it is asked. A key that was taken from the list, or is revoked, stops counting at once. What cannot be
    found out now, for want of the list, of `ssh-keygen` or of space, is Unknown, of the signed ones only.
    """
    signed = [each for each in approvals if each.spec.signature is not None]
    if not signed:
        return UNCHECKED
    try:
        signers = await allowed_signers()
    except PraxisError as error:
        return {each.metadata.uid: Unknown(f"the list of signers cannot be read: {error}") for each in signed}
    return {each.metadata.uid: await asyncio.to_thread(stored, each, signers) for each in signed}


def stored(approval: IncidentApproval, signers: AllowedSigners | None) -> Finding:
    """What is found on one that the API server stored."""
    if approval.status.verdict is Verdict.REFUSED and approval.status.reason == Reason.SIGNATURE_NOT_VERIFIED:
        # Final, and not asked again: whoever may create approvals could otherwise have thousands checked at each look.
        return Unverified("it was refused for its signature before")
    if signers is None:
        return Unknown(
            f"there is no ConfigMap {SIGNERS_CONFIG_MAP} in the namespace of the installation; "
            "an admin lists there who signs with which key"
        )
    try:
        return found(approval, signers, at=parse_rfc3339(approval.metadata.creation_timestamp or ""))
    except PraxisError as error:
        return Unknown(str(error))
    except ValueError as error:
        return Unverified(f"it cannot be checked: {error}")


def found(approval: IncidentApproval, signers: AllowedSigners, *, at: datetime) -> Finding:
    """What is found on one signed decision, by keys that are valid at a time.

    Raises:
        ValueError: it has no canonical form.
        NeedsPerson: `ssh-keygen` is not installed, or the list is not what `ssh-keygen` reads.
        RetryLater: it could not run to its end.
    """
    assert approval.spec.signature is not None
    return verify(
        approval.signed_content,
        approval.spec.signature,
        username=approval.spec.approver.username,
        signers=signers,
        at=at,
    )
