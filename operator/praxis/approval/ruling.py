"""What becomes of one decision or finding of a person."""

from __future__ import annotations

from dataclasses import dataclass

from praxis.api.approval import IncidentApproval, IncidentReconciliation, Verdict
from praxis.api.reasons import Reason

MESSAGE_LIMIT = 1024
"""As the CRD bounds `status.message`."""


@dataclass(frozen=True)
class Ruling:
    """The verdict on one object, None while it is pending, and what its author is told.

    A `provisional` ruling holds only once the incident's transition is stored: written earlier, a crash in between
    would leave an approval that says Accepted on a plan that never ran. Whoever writes verdicts leaves it out, and
    judges the stored incident again, which then says the same for good.
    """

    uid: str
    name: str
    verdict: Verdict | None
    reason: Reason
    message: str
    provisional: bool = False


def refused(
    subject: IncidentApproval | IncidentReconciliation, reason: Reason, message: str, *, provisional: bool = False
) -> Ruling:
    """It is not acted on, for good."""
    return _ruling(subject, Verdict.REFUSED, reason, message, provisional=provisional)


def accepted(subject: IncidentApproval | IncidentReconciliation, message: str, *, provisional: bool = False) -> Ruling:
    """It is acted on."""
    return _ruling(subject, Verdict.ACCEPTED, Reason.ACCEPTED, message, provisional=provisional)


def pending(subject: IncidentApproval | IncidentReconciliation, message: str) -> Ruling:
    """It waits for others, or for the next gate."""
    return _ruling(subject, None, Reason.PENDING, message)


def arrival(subject: IncidentApproval | IncidentReconciliation) -> tuple[str, str, str]:
    """Sorts by creation, then by uid: the API server's stamps have whole seconds, and lists have no order of their own.

    The stamps are compared as text: the API server writes them all in the one form that sorts so.
    """
    meta = subject.metadata
    return meta.creation_timestamp or "", meta.uid, meta.name


def undecided(subject: IncidentApproval | IncidentReconciliation) -> bool:
    """Whether it may still count: it is not being deleted, and has no verdict.

    A verdict is final, Accepted too: what was acted on once is used up and can never carry a second plan.
    """
    return subject.metadata.deletion_timestamp is None and subject.status.verdict is None


def a_person(username: str) -> bool:
    """Whether a username can be a person's.

    The admission policy keeps robots out already. This holds for objects that were created while its binding was
    absent: Kubernetes keeps the prefix `system:` for service accounts, nodes and its own components.
    """
    return not username.startswith("system:")


def _ruling(
    subject: IncidentApproval | IncidentReconciliation,
    verdict: Verdict | None,
    reason: Reason,
    message: str,
    *,
    provisional: bool = False,
) -> Ruling:
    return Ruling(
        uid=subject.metadata.uid,
        name=subject.metadata.name,
        verdict=verdict,
        reason=reason,
        message=message[:MESSAGE_LIMIT],
        provisional=provisional,
    )
