"""What a signature on a decision changes: nothing when it holds, everything when it does not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from praxis.api.approval import Decision, IncidentApproval, Verdict, VerdictStatus
from praxis.api.incident import EntryKind, Incident
from praxis.api.reasons import Reason
from praxis.approval.gate import Lapse, still_valid
from praxis.approval.judgement import Approved, Judgement, Rejected, judge
from praxis.approval.signature import UNCHECKED, Signatures, Unknown, Unverified, Verified, signed_with
from praxis.errors import RetryLater
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


def test_what_is_not_known_decides_nothing_and_holds_back() -> None:
    """A yes waits, without a verdict; a no that may be valid keeps the plan from running until it is known."""
    yes, no = approval(), approval("zoe", decision=Decision.REJECT, name="no", signature=ARMOUR)
    unknown = {no.metadata.uid: Unknown("ssh-keygen was killed")}
    judgement = judged([yes, no], unknown)
    assert judgement.decision is None
    assert [(each.uid, each.verdict) for each in judgement.rulings] == [
        (yes.metadata.uid, None),
        (no.metadata.uid, None),
    ]
    assert judgement.doubts == ("Reject no: ssh-keygen was killed",)
    signed = approval("zoe", signature=ARMOUR)
    waits = judged([signed], {signed.metadata.uid: Unknown("ssh-keygen was killed")})
    assert (waits.decision, waits.have) == (None, ())
    [ruling] = waits.rulings
    assert ruling.verdict is None
    assert ruling.message == "whether its signature holds is not known: ssh-keygen was killed; it is looked at again"


def test_what_is_not_known_of_one_does_not_hold_up_another() -> None:
    """A yes that cannot be checked is as if it were not there."""
    yes, other = approval(), approval("zoe", signature=ARMOUR)
    judgement = judged([yes, other], {other.metadata.uid: Unknown("the list cannot be read")})
    assert judgement.decision == Approved((bound(yes),))


def test_one_key_is_one_person() -> None:
    """Under however many names the list knows it; each name alone may approve."""
    one, other, third = (approval(name, name=name, signature=ARMOUR) for name in ("eve", "eve@example.com", "zoe"))
    same_key = {
        one.metadata.uid: Verified(KEY),
        other.metadata.uid: Verified(KEY),
        third.metadata.uid: Verified("SHA256:zoe"),
    }

    def by_two(given: list[IncidentApproval]) -> Judgement:
        quorum = Quorum(safe=2, caution=2, dangerous=2)
        return judge(incident(), given, now=LATER, server_now=LATER, quorum=quorum, signatures=same_key)

    judgement = by_two([one, other])
    assert (judgement.decision, judgement.have) == (None, ("eve",))
    refusal = next(each for each in judgement.rulings if each.uid == other.metadata.uid)
    assert (refusal.verdict, refusal.reason) == ("Refused", "DuplicateApprover")
    assert refusal.message == (
        "eve@example.com, who signs with the key of eve, has approved this plan already with eve, which stands until "
        f"{one.spec.expires_at}; each person counts once"
    )
    assert by_two([one, other, third]).decision == Approved((bound(one), bound(third)))


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


def test_the_gate_holds_while_nothing_is_known() -> None:
    """Of an approval that the plan runs on, and of a no: nothing is sent, and nothing is thrown away."""
    signed = approval(
        of=incident(),
        created=NOW + timedelta(seconds=4),
        status=VerdictStatus(verdict=Verdict.ACCEPTED),
        signature=ARMOUR,
    )
    unknown = Unknown("ssh-keygen was killed")
    with pytest.raises(RetryLater, match=r"whether the signature on Approve .* of alice holds: ssh-keygen was killed"):
        lapse(running(signed), [signed], {signed.metadata.uid: unknown})
    given = approval(of=incident(), created=NOW + timedelta(seconds=4), status=VerdictStatus(verdict=Verdict.ACCEPTED))
    on = running(given)
    no = approval("zoe", of=on, decision=Decision.REJECT, name="no", signature=ARMOUR)
    with pytest.raises(RetryLater, match="whether the signature on Reject no of zoe holds: ssh-keygen was killed"):
        lapse(on, [given, no], {no.metadata.uid: unknown})
    sure = approval("yan", of=on, decision=Decision.DISMISS, name="sure")
    stopped = lapse(on, [given, no, sure], {no.metadata.uid: unknown})
    assert stopped is not None
    assert (stopped.reason, stopped.objection) == ("Dismissed", sure)


def test_the_gate_counts_one_key_once() -> None:
    """Also when two were bound."""
    one, other = (
        approval(
            name,
            of=incident(),
            name=name,
            created=NOW + timedelta(seconds=4),
            status=VerdictStatus(verdict=Verdict.ACCEPTED),
            signature=ARMOUR,
        )
        for name in ("eve", "eve@example.com")
    )
    first = running(one)
    decided = next(entry for entry in first.status.trail if entry.kind is EntryKind.DECIDED)
    on = incident(
        Phase.EXECUTING,
        approvals=[bound(one), bound(other)],
        approvals_required=2,
        trail=[*first.status.trail, decided.replace(digest=other.record_digest)],
    )
    keys = {one.metadata.uid: Verified(KEY), other.metadata.uid: Verified("SHA256:another")}
    assert lapse(on, [one, other], keys) is None
    assert lapse(on, [one, other], dict.fromkeys(keys, Verified(KEY))) == Lapse(
        Reason.QUORUM_NOT_MET, "2 distinct people must approve a plan of tier safe; it has 1"
    )


def test_what_is_signed() -> None:
    """Literally: all that is said, canonically, with the namespace, without the name and without the signature."""
    given = approval(signature=ARMOUR, expires_at="2026-01-31T13:00:00Z")
    assert given.signed_content == (
        b'{"apiVersion":"praxis.kopachelli.dev/v1alpha1","kind":"IncidentApproval","namespace":"shop","spec":{'
        b'"approver":{"username":"alice"},"corrections":[],"decision":"Approve","expiresAt":"2026-01-31T13:00:00Z",'
        b'"incidentRef":{"name":"checkout-latency-1","uid":"' + given.spec.incident_ref.uid.encode() + b'"},'
        b'"planDigest":"' + given.spec.plan_digest.encode() + b'","reason":"looks right"}}'
    )
