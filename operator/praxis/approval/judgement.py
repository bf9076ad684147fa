"""What people's decisions on one plan add up to.

Pure and level-triggered: the same objects give the same judgement, in whatever order they came or are listed, as often
as it is asked. What it says of an incident that has gone by a decision already, it reads from the incident's trail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from praxis.api.approval import Decision, IncidentApproval
from praxis.api.incident import BoundApproval, Incident
from praxis.api.plan import highest_tier
from praxis.api.reasons import Reason
from praxis.approval.ruling import Ruling, accepted, arrival, pending, refused, undecided
from praxis.approval.signature import UNCHECKED, Signatures, doubt, key_of
from praxis.approval.validity import PRECEDENCE, Clocks, Standing, overruled, settled_alone, short
from praxis.machine import Phase
from praxis.settings import Quorum


@dataclass(frozen=True)
class Approved:
    """Enough people approved; the plan runs on these approvals."""

    bound: tuple[BoundApproval, ...]


@dataclass(frozen=True)
class Rejected:
    """Somebody said no: another plan is needed."""

    approval: IncidentApproval


@dataclass(frozen=True)
class RevisionRequested:
    """Somebody wants another plan, with corrections."""

    approval: IncidentApproval
    corrections: tuple[str, ...]


@dataclass(frozen=True)
class Dismissed:
    """Somebody closes the incident: nothing is to be done."""

    approval: IncidentApproval


Outcome: TypeAlias = Approved | Rejected | RevisionRequested | Dismissed


@dataclass(frozen=True)
class Judgement:
    """A ruling for every decision that has no verdict yet, and what they lead to (None: wait).

    `have` are the distinct people who approve the plan, in order of arrival, `needed` how many it takes; `doubts` say
    which decisions wait because nothing is known of their signatures.
    """

    rulings: tuple[Ruling, ...]
    decision: Outcome | None
    have: tuple[str, ...]
    needed: int
    doubts: tuple[str, ...] = ()


def judge(
    incident: Incident,
    approvals: Sequence[IncidentApproval],
    *,
    now: datetime,
    server_now: datetime | None,
    quorum: Quorum,
    signatures: Signatures = UNCHECKED,
) -> Judgement:
    """Judge all decisions that name this incident, listed consistently.

    A plan runs only when enough distinct people approve this very plan, each in time on both clocks, and nobody says
    anything else about it. A Reject, Revise or Dismiss that is in time on one clock only, or whose signature could not
    be checked, does not act yet, but holds back everything of lower precedence: a doubt about a no is no yes.
    """
    look = Look(Clocks(now, server_now), signatures)
    needed = people_needed(incident, quorum)
    rulings: list[Ruling] = []
    standing: list[IncidentApproval] = []
    for each in sorted(filter(undecided, approvals), key=arrival):
        ruling = settled_alone(incident, each, look.clocks, signatures)
        if ruling is None:
            standing.append(each)
        else:
            rulings.append(ruling)
    if incident.status.phase is not Phase.AWAITING_APPROVAL:
        return Judgement(tuple(rulings), None, tuple(each.approver for each in incident.status.approvals), needed)
    approving, duplicates = _one_each([each for each in standing if each.spec.decision is Decision.APPROVE], look)
    counted = [each for each in approving if look.current(each)]
    have = tuple(each.spec.approver.username for each in counted)
    leading = _leading(standing, look)
    if leading is not None and look.current(leading):
        rulings += _after_objection(standing, leading)
        return Judgement(tuple(rulings), _objection(leading), have, needed)
    rulings += duplicates
    if leading is None and len(counted) >= needed:
        bound = counted[:needed]
        rulings += _after_approval(approving, bound)
        return Judgement(tuple(rulings), Approved(tuple(bind(each) for each in bound)), have, needed)
    objections = [each for each in standing if each.spec.decision is not Decision.APPROVE]
    rulings += [_waiting(each, look, have, needed, leading) for each in [*approving, *objections]]
    doubts = [
        f"{each.spec.decision} {each.metadata.name}: {why}" for each in standing if (why := doubt(each, signatures))
    ]
    return Judgement(tuple(rulings), None, have, needed, tuple(doubts))


@dataclass(frozen=True)
class Look:
    """What is known at one look at the decisions."""

    clocks: Clocks
    signatures: Signatures

    def standing(self, approval: IncidentApproval) -> Standing:
        """In time, late, or in doubt: by the clocks, or because nothing is known of the signature."""
        standing = self.clocks.standing(approval.spec.expires_at)
        doubtful = standing is Standing.CURRENT and doubt(approval, self.signatures) is not None
        return Standing.IN_DOUBT if doubtful else standing

    def current(self, approval: IncidentApproval) -> bool:
        """Whether it counts now."""
        return self.standing(approval) is Standing.CURRENT


def people_needed(incident: Incident, quorum: Quorum) -> int:
    """How many distinct people must approve: what was shown with the plan, or what the settings say now, if more.

    The tier is taken from the actions, which the digest covers, not from the plan's own field, which it does not.
    """
    plan = incident.status.plan
    by_tier = quorum.of(highest_tier(plan.actions)) if plan else quorum.safe
    return max(by_tier, incident.status.approvals_required or 1)


def bind(approval: IncidentApproval) -> BoundApproval:
    """An approval as it is copied into the incident."""
    return BoundApproval(
        uid=approval.metadata.uid,
        name=approval.metadata.name,
        approver=approval.spec.approver.username,
        plan_digest=approval.spec.plan_digest,
        expires_at=approval.spec.expires_at,
    )


def _one_each(approving: Sequence[IncidentApproval], look: Look) -> tuple[list[IncidentApproval], list[Ruling]]:
    """One approval of each person, and the refusals of the others. One key is one person, under however many names.

    The earliest stands, but a doubtful one gives way to one that is surely in time: otherwise somebody could not renew
    what is about to expire under a wrong clock.
    """
    kept: list[IncidentApproval] = []
    duplicates: list[Ruling] = []
    for each in sorted(approving, key=lambda a: (look.standing(a), arrival(a))):
        first = next((other for other in kept if same_person(bind(each), bind(other), look.signatures)), None)
        if first is None:
            kept.append(each)
            continue
        username, before = each.spec.approver.username, first.spec.approver.username
        who = username if username == before else f"{username}, who signs with the key of {before},"
        duplicates.append(
            refused(
                each,
                Reason.DUPLICATE_APPROVER,
                f"{who} has approved this plan already with {first.metadata.name}, which stands until "
                f"{first.spec.expires_at}; each person counts once",
            )
        )
    return sorted(kept, key=arrival), duplicates


def same_person(one: BoundApproval, other: BoundApproval, signatures: Signatures) -> bool:
    """Whether two approvals are of one person, by username or by the key that signed them."""
    if one.approver == other.approver:
        return True
    key = key_of(one.uid, signatures)
    return key is not None and key == key_of(other.uid, signatures)


def _leading(standing: Sequence[IncidentApproval], look: Look) -> IncidentApproval | None:
    """The decision that goes before all others, unless everybody approves."""
    objections = [each for each in standing if each.spec.decision is not Decision.APPROVE]
    return min(
        objections,
        key=lambda a: (PRECEDENCE.index(a.spec.decision), look.standing(a), arrival(a)),
        default=None,
    )


def _objection(approval: IncidentApproval) -> Outcome:
    if approval.spec.decision is Decision.REJECT:
        return Rejected(approval)
    if approval.spec.decision is Decision.REVISE:
        return RevisionRequested(approval, tuple(approval.spec.corrections))
    return Dismissed(approval)


def _after_objection(standing: Sequence[IncidentApproval], leading: IncidentApproval) -> list[Ruling]:
    return [_beside(each, leading) for each in standing]


def _beside(approval: IncidentApproval, leading: IncidentApproval) -> Ruling:
    winner = leading.spec.decision
    if approval is leading:
        return accepted(approval, f"{winner}: the incident goes by it", provisional=True)
    if approval.spec.decision is winner:
        return refused(
            approval,
            Reason.ALREADY_DECIDED,
            f"{leading.spec.approver.username} decided the same before: {leading.metadata.name}",
            provisional=True,
        )
    return overruled(approval, winner, provisional=True)


def _after_approval(approving: Sequence[IncidentApproval], bound: Sequence[IncidentApproval]) -> list[Ruling]:
    people = ", ".join(each.spec.approver.username for each in bound)
    return [
        accepted(each, f"plan {short(each.spec.plan_digest)} runs on the approval of {people}", provisional=True)
        if each in bound
        else refused(
            each,
            Reason.ALREADY_DECIDED,
            f"plan {short(each.spec.plan_digest)} runs on the approval of {people}; this one was not needed",
            provisional=True,
        )
        for each in approving
    ]


def _waiting(
    approval: IncidentApproval, look: Look, have: Sequence[str], needed: int, leading: IncidentApproval | None
) -> Ruling:
    unknown = doubt(approval, look.signatures)
    if unknown is not None:
        return pending(approval, f"whether its signature holds is not known: {unknown}; it is looked at again")
    if not look.current(approval):
        return pending(
            approval,
            f"the operator's clock and the API server's do not agree on whether it expired at "
            f"{approval.spec.expires_at}; it is not acted on until they do",
        )
    if leading is not None:
        return pending(approval, f"waits for the {leading.spec.decision} {leading.metadata.name} to be settled")
    return pending(approval, f"{len(have)} of {needed} people needed have approved: {', '.join(have)}")
