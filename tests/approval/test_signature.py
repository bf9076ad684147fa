"""What a signature on a decision changes: nothing when it holds, everything when it does not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from praxis.api.approval import Decision, IncidentApproval, Verdict, VerdictStatus
from praxis.api.incident import EntryKind, Incident
from praxis.api.reasons import Reason
from praxis.approval.gate import Lapse, still_valid
from praxis.approval.judgement import Approved, Judgement, Rejected, judge
from praxis.approval.signature import UNCHECKED, Signatures, Unverified, Verified, signed_with
from praxis.machine import Phase
from praxis.settings import Quorum
from tests.builders import NOW, approval, bound, incident

ARMOUR = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"
LATER = NOW + timedelta(minutes=10)
KEY = "SHA256:cZ0kwYBKGL2I"


def judged(given: list[IncidentApproval], signatures: Signatures) -> Judgement:
    """Ten minutes after the plan was proposed."""
    return judge(incident(), given, now=LATER, server_now=LATER, quorum=Quorum(), signatures=signatures)


def test_one_that_holds_counts_like_a_decision_under_ones_own_name() -> None:
    """A verified approval carries the plan, and its key is named where people are told."""
    given = approval(signature=ARMOUR)
    found = {given.metadata.uid: Verified(KEY)}
    assert judged([given], found).decision == Approved((bound(given),))
    assert signed_with(given, found) == " (SSH key SHA256:cZ0kwYBKGL2I)"
    assert signed_with(approval(), UNCHECKED) == ""


@pytest.mark.parametrize(
    ("finding", "why"),
    [
        (None, "it has not been checked"),
        (Unverified("its key is revoked"), "its key is revoked"),
    ],
)
def test_one_that_does_not_hold_refuses(finding: Unverified | None, why: str) -> None:
    """Whoever applied it, and also when nobody looked; what another's signature is worth changes nothing."""
    given, other = approval(signature=ARMOUR), approval("bob", signature=ARMOUR)
    found = {other.metadata.uid: Verified(KEY)} | ({} if finding is None else {given.metadata.uid: finding})
    judgement = judged([given], found)
    assert judgement.decision is None
    [ruling] = judgement.rulings
    assert (ruling.verdict, ruling.reason) == ("Refused", "SignatureNotVerified")
    assert ruling.message == (
        f"its signature does not hold: {why}. Decide anew, signed with a listed key or under your own name without one"
    )


def test_a_signed_reject() -> None:
    """A no that is signed goes before a yes, if the signature holds; else it is nobody's."""
    yes, no = approval(), approval("zoe", decision=Decision.REJECT, signature=ARMOUR)
    assert judged([yes, no], {no.metadata.uid: Verified(KEY)}).decision == Rejected(no)
    assert isinstance(judged([yes, no], UNCHECKED).decision, Approved)


def running(given: IncidentApproval) -> Incident:
    """An incident that runs on this approval."""
    trail = [
        entry.replace(digest=given.record_digest) if entry.kind is EntryKind.DECIDED else entry
        for entry in incident(Phase.EXECUTING).status.trail
    ]
    return incident(Phase.EXECUTING, approvals=[bound(given)], trail=trail)


def lapse(on: Incident, given: list[IncidentApproval], signatures: Signatures) -> Lapse | None:
    """What the gate finds."""
    return still_valid(on, given, now=LATER, server_now=LATER, quorum=Quorum(), signatures=signatures)


def test_the_gate_asks_again() -> None:
    """A key that was revoked since acceptance carries nothing any more."""
    given = approval(
        of=incident(),
        created=NOW + timedelta(seconds=4),
        status=VerdictStatus(verdict=Verdict.ACCEPTED),
        signature=ARMOUR,
    )
    on = running(given)
    assert lapse(on, [given], {given.metadata.uid: Verified(KEY)}) is None
    assert lapse(on, [given], {given.metadata.uid: Unverified("its key is revoked")}) == Lapse(
        Reason.SIGNATURE_NOT_VERIFIED,
        f"the signature on approval {given.metadata.name} of alice fails: its key is revoked",
    )
    assert lapse(on, [given], UNCHECKED) is not None


def test_a_signed_objection_at_the_gate() -> None:
    """A signed no that came since stops the plan, if the signature holds."""
    given = approval(of=incident(), created=NOW + timedelta(seconds=4), status=VerdictStatus(verdict=Verdict.ACCEPTED))
    on = running(given)
    no = approval("zoe", of=on, decision=Decision.REJECT, name="no", signature=ARMOUR)
    stopped = lapse(on, [given, no], {no.metadata.uid: Verified(KEY)})
    assert stopped is not None
    assert (stopped.reason, stopped.objection) == ("Rejected", no)
    assert lapse(on, [given, no], UNCHECKED) is None


def test_what_is_signed() -> None:
    """Literally: all that is said, canonically, with the namespace, without the name and without the signature."""
    given = approval(signature=ARMOUR, expires_at="2026-01-31T13:00:00Z")
    assert given.signed_content == (
        b'{"apiVersion":"praxis.kopachelli.dev/v1alpha1","kind":"IncidentApproval","namespace":"shop","spec":{'
        b'"approver":{"username":"alice"},"corrections":[],"decision":"Approve","expiresAt":"2026-01-31T13:00:00Z",'
        b'"incidentRef":{"name":"checkout-latency-1","uid":"' + given.spec.incident_ref.uid.encode() + b'"},'
        b'"planDigest":"' + given.spec.plan_digest.encode() + b'","reason":"looks right"}}'
    )
