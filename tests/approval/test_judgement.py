"""What decisions add up to. Everything is literal: the builders' incident, people by name, times around NOW."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.api.approval import Decision, IncidentApproval, IncidentRef, Verdict, VerdictStatus
from praxis.api.incident import EntryKind, Incident
from praxis.api.plan import ActionType
from praxis.api.reasons import Reason
from praxis.approval.judgement import Approved, Dismissed, Judgement, Rejected, RevisionRequested, judge
from praxis.machine import Phase
from praxis.settings import Quorum
from tests.builders import NOW, action, approval, bound, incident, plan

LATER = NOW + timedelta(minutes=10)
HOUR = timedelta(hours=1)
STALE = "sha256:" + "0" * 64
SIGNATURE = "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n"


def judged(
    on: Incident,
    *given: IncidentApproval,
    now: datetime = LATER,
    server_now: datetime | None = LATER,
    quorum: Quorum | None = None,
) -> Judgement:
    return judge(on, given, now=now, server_now=server_now, quorum=quorum or Quorum())


def verdicts(judgement: Judgement) -> dict[str, tuple[str | None, str]]:
    return {each.name: (each.verdict, each.reason.value) for each in judgement.rulings}


def test_one_approval_of_the_current_plan_runs_it() -> None:
    """A person's approval of the plan that waits is bound whole, and counts as theirs."""
    given = approval("alice", name="a1", uid="u1", expires=NOW + HOUR)
    judgement = judged(incident(), given)
    assert judgement.decision == Approved((bound(given),))
    assert (judgement.have, judgement.needed) == (("alice",), 1)
    assert verdicts(judgement) == {"a1": ("Accepted", "Accepted")}
    assert judgement.rulings[0].provisional


def test_nobody_has_decided() -> None:
    """Without decisions it waits."""
    judgement = judged(incident())
    assert (judgement.decision, judgement.rulings, judgement.have, judgement.needed) == (None, (), (), 1)


@pytest.mark.parametrize(
    ("changes", "verdict", "reason", "says"),
    [
        pytest.param(
            {"plan_digest": STALE}, "Refused", "PlanSuperseded", "it is on plan 000000000000", id="another plan"
        ),
        pytest.param(
            {"incident_ref": IncidentRef(name="checkout-latency-1", uid="other")},
            "Refused",
            "IncidentNotFound",
            "with uid other",
            id="another incident of that name",
        ),
        pytest.param(
            {"incident_ref": IncidentRef(name="other", uid="11111111-1111-4111-8111-111111111111")},
            "Refused",
            "IncidentNotFound",
            "no incident other",
            id="that uid under another name",
        ),
        pytest.param({"expires": LATER}, "Refused", "Expired", "praxis show checkout-latency-1 -n shop", id="expired"),
        pytest.param({"expires_at": "tomorrow"}, "Refused", "Expired", "tomorrow", id="unreadable expiry"),
        pytest.param({"signature": SIGNATURE}, "Refused", "SignatureNotVerified", "signature", id="signed"),
        pytest.param(
            {"username": "system:serviceaccount:shop:robot"},
            "Refused",
            "ApproverNotAPerson",
            "system:serviceaccount:shop:robot",
            id="service account",
        ),
        pytest.param({"username": "system:node:n1"}, "Refused", "ApproverNotAPerson", "only people", id="node"),
    ],
)
def test_an_approval_that_does_not_count_is_refused_and_told_why(
    changes: dict[str, Any], verdict: str, reason: str, says: str
) -> None:
    """A faulty approval leads nowhere and gets a final verdict with its own reason."""
    judgement = judged(incident(), approval(**{"username": "alice", **changes}))
    assert judgement.decision is None
    assert judgement.have == ()
    [ruling] = judgement.rulings
    assert (ruling.verdict, ruling.reason.value, ruling.provisional) == (verdict, reason, False)
    assert says in ruling.message


def test_a_superseded_approval_is_told_the_current_digest() -> None:
    """The message names the plan that waits now and the command that shows it."""
    on = incident()
    assert on.status.plan is not None
    [ruling] = judged(on, approval(of=on, plan_digest=STALE)).rulings
    assert on.status.plan.digest in ruling.message
    assert "praxis show checkout-latency-1 -n shop" in ruling.message


def test_an_approval_from_another_namespace_is_refused() -> None:
    """Who may approve in one namespace does not decide in another."""
    given = approval("alice")
    moved = given.replace(metadata=given.metadata.replace(namespace="elsewhere"))
    judgement = judged(incident(), moved)
    assert judgement.decision is None
    assert verdicts(judgement) == {moved.metadata.name: ("Refused", "IncidentNotFound")}


def test_a_plan_that_is_not_what_its_digest_says_cannot_be_approved_but_can_be_left() -> None:
    """Stored actions that were changed under their digest never run; Revise still leads out."""
    honest = plan()
    altered = honest.replace(actions=[action(effect="Deletes the function.")])
    on = incident().replace(status=incident().status.replace(plan=altered))
    approving = judged(on, approval("alice", of=on, name="a1"))
    assert approving.decision is None
    assert verdicts(approving) == {"a1": ("Refused", "PlanDrifted")}
    revising = judged(on, approval("bob", of=on, decision=Decision.REVISE))
    assert isinstance(revising.decision, RevisionRequested)


@pytest.mark.parametrize(
    ("ours", "servers", "runs", "verdict", "reason"),
    [
        pytest.param(-1, -1, True, "Accepted", "Accepted", id="in time on both"),
        pytest.param(-1, 0, False, None, "Pending", id="late on the server's"),
        pytest.param(0, -1, False, None, "Pending", id="late on ours"),
        pytest.param(0, 0, False, "Refused", "Expired", id="late on both, to the second"),
        pytest.param(-1, None, False, None, "Pending", id="in time on ours, no server time"),
        pytest.param(3600, None, False, None, "Pending", id="late on ours, no server time"),
    ],
)
def test_two_clocks_decide_about_expiry(
    ours: int, servers: int | None, runs: bool, verdict: str | None, reason: str
) -> None:
    """It runs only if unexpired on both clocks, is refused only if expired on both, and waits in between."""
    end = NOW + HOUR
    judgement = judged(
        incident(),
        approval("alice", name="a1", expires=end),
        now=end + timedelta(seconds=ours),
        server_now=None if servers is None else end + timedelta(seconds=servers),
    )
    assert isinstance(judgement.decision, Approved) is runs
    assert verdicts(judgement) == {"a1": (verdict, reason)}


def test_k_approvals_of_one_person_count_once() -> None:
    """A quorum counts distinct usernames; the earliest approval stands, the others are refused."""
    on = incident(approvals_required=2)
    given = [approval("alice", name=f"a{n}", uid=f"u{n}", created=NOW + timedelta(seconds=n)) for n in (3, 1, 2)]
    judgement = judged(on, *given)
    assert (judgement.decision, judgement.have, judgement.needed) == (None, ("alice",), 2)
    assert verdicts(judgement) == {
        "a1": (None, "Pending"),
        "a2": ("Refused", "DuplicateApprover"),
        "a3": ("Refused", "DuplicateApprover"),
    }


def test_of_one_second_the_lower_uid_stands() -> None:
    """The API server's stamps have whole seconds; within one, the uid decides, whatever the list's order."""
    on = incident(approvals_required=2)
    given = [approval("alice", name="later", uid="b"), approval("alice", name="first", uid="a")]
    assert verdicts(judged(on, *given))["first"] == (None, "Pending")
    assert verdicts(judged(on, *given))["later"] == ("Refused", "DuplicateApprover")


def test_a_doubtful_approval_gives_way_to_the_same_persons_sure_one() -> None:
    """Somebody can renew an approval that has expired on one of the clocks."""
    old = approval("alice", name="old", created=NOW, expires=LATER)
    new = approval("alice", name="new", created=NOW + timedelta(minutes=5), expires=NOW + HOUR)
    judgement = judged(incident(), old, new, server_now=LATER - timedelta(seconds=1))
    assert judgement.decision == Approved((bound(new),))
    assert verdicts(judgement)["old"] == ("Refused", "DuplicateApprover")


def test_a_quorum_binds_as_many_as_it_needs() -> None:
    """The earliest approvals are bound; one that came on top is told that it was not needed."""
    on = incident(approvals_required=2)
    given = [
        approval(each, name=each, created=NOW + timedelta(seconds=n))
        for n, each in enumerate(["carol", "alice", "bob"])
    ]
    judgement = judged(on, *reversed(given))
    assert judgement.decision == Approved((bound(given[0]), bound(given[1])))
    assert judgement.have == ("carol", "alice", "bob")
    assert verdicts(judgement) == {
        "carol": ("Accepted", "Accepted"),
        "alice": ("Accepted", "Accepted"),
        "bob": ("Refused", "AlreadyDecided"),
    }


@pytest.mark.parametrize(
    ("type_", "shown", "quorum", "needed"),
    [
        pytest.param(ActionType.RESTART_FUNCTION, 1, Quorum(), 1, id="safe"),
        pytest.param(ActionType.UPDATE_CONFIG, 1, Quorum(caution=3), 3, id="raised since it was shown"),
        pytest.param(ActionType.ROLLBACK_DEPLOY, 1, Quorum(), 2, id="dangerous"),
        pytest.param(ActionType.RESTART_FUNCTION, 3, Quorum(), 3, id="lowered since it was shown"),
    ],
)
def test_the_quorum_follows_the_highest_tier_and_is_never_lowered(
    type_: ActionType, shown: int, quorum: Quorum, needed: int
) -> None:
    """Needed is what people were shown or what the settings ask for that tier now, whichever is more."""
    drafted = plan(actions=[action(type_)])
    on = incident(draft=lambda **_: drafted, approvals_required=shown)
    people = [f"person{n}" for n in range(needed)]
    few = judged(on, *[approval(each, of=on) for each in people[1:]], quorum=quorum)
    assert (few.decision, few.needed) == (None, needed)
    assert isinstance(judged(on, *[approval(each, of=on) for each in people], quorum=quorum).decision, Approved)


def test_the_tier_is_read_from_the_actions() -> None:
    """The plan's own tier is not under its digest, so a lowered one does not lower the quorum."""
    lowered = plan(actions=[action(ActionType.ROLLBACK_DEPLOY)], tier="safe")
    on = incident(draft=lambda **_: lowered, approvals_required=1)
    assert judged(on, approval("alice", of=on)).needed == 2


RANKS = [Decision.REJECT, Decision.REVISE, Decision.DISMISS, Decision.APPROVE]
OUTCOMES = {Decision.REJECT: Rejected, Decision.REVISE: RevisionRequested, Decision.DISMISS: Dismissed}


@pytest.mark.parametrize(("winner", "loser"), list(itertools.combinations(RANKS, 2)))
@pytest.mark.parametrize("winner_first", [True, False])
def test_precedence_whatever_came_first(winner: Decision, loser: Decision, winner_first: bool) -> None:
    """Reject > Revise > Dismiss > Approve; the loser is refused for good."""
    early, late = NOW, NOW + timedelta(minutes=1)
    high = approval("alice", decision=winner, name="high", created=early if winner_first else late)
    low = approval("bob", decision=loser, name="low", created=late if winner_first else early)
    judgement = judged(incident(), low, high)
    assert isinstance(judgement.decision, OUTCOMES[winner])
    assert judgement.decision.approval == high
    assert verdicts(judgement) == {"high": ("Accepted", "Accepted"), "low": ("Refused", "Overruled")}


def test_a_persons_own_reject_goes_before_their_approval() -> None:
    """Whoever approves and then rejects has rejected."""
    judgement = judged(incident(), approval("alice"), approval("alice", decision=Decision.REJECT))
    assert isinstance(judgement.decision, Rejected)


def test_of_two_rejects_the_earlier_is_acted_on() -> None:
    """The second Reject says the same and is told so."""
    first = approval("alice", decision=Decision.REJECT, name="first")
    second = approval("bob", decision=Decision.REJECT, name="second", created=NOW + timedelta(seconds=1))
    judgement = judged(incident(), second, first)
    assert judgement.decision == Rejected(first)
    assert verdicts(judgement)["second"] == ("Refused", "AlreadyDecided")


def test_a_revision_brings_its_corrections() -> None:
    """What the person wants changed arrives as written."""
    given = approval("alice", decision=Decision.REVISE, corrections=["scale first", "then restart"])
    assert judged(incident(), given).decision == RevisionRequested(given, ("scale first", "then restart"))


def test_a_doubtful_reject_holds_an_approval_back() -> None:
    """A Reject that has expired on one clock only neither acts nor lets anything of lower precedence run."""
    end = NOW + timedelta(minutes=5)
    reject = approval("alice", decision=Decision.REJECT, name="no", expires=end)
    approve = approval("bob", name="yes", expires=NOW + HOUR)
    judgement = judged(incident(), approve, reject, now=LATER, server_now=NOW)
    assert judgement.decision is None
    assert verdicts(judgement) == {"no": (None, "Pending"), "yes": (None, "Pending")}
    settled = judged(incident(), approve, reject, now=LATER, server_now=LATER)
    assert isinstance(settled.decision, Approved)
    assert verdicts(settled)["no"] == ("Refused", "Expired")


@pytest.mark.parametrize(
    "used",
    [
        pytest.param({"deleted": True}, id="being deleted"),
        pytest.param({"status": VerdictStatus(verdict=Verdict.REFUSED)}, id="refused before"),
        pytest.param({"status": VerdictStatus(verdict=Verdict.ACCEPTED)}, id="accepted before"),
    ],
)
@pytest.mark.parametrize("decision", RANKS)
def test_what_is_used_up_or_going_is_ignored(used: dict[str, Any], decision: Decision) -> None:
    """An object with a final verdict, or that is being deleted, counts for nothing and gets no other verdict."""
    judgement = judged(incident(), approval("alice", decision=decision, **used))
    assert (judgement.decision, judgement.rulings, judgement.have) == (None, (), ())


@pytest.mark.parametrize("phase", [each for each in Phase if each is not Phase.AWAITING_APPROVAL])
def test_nothing_is_decided_in_another_phase(phase: Phase) -> None:
    """No set of approvals leads anywhere unless the incident waits for one."""
    waiting = incident()
    given = [approval(f"p{n}", of=waiting, decision=each) for n, each in enumerate(RANKS)]
    assert judged(incident(phase), *given).decision is None


@pytest.mark.parametrize(
    ("phase", "decision", "digest", "verdict", "reason"),
    [
        pytest.param(Phase.NEW, Decision.APPROVE, None, "Refused", "NotAwaitingApproval", id="no plan yet"),
        pytest.param(Phase.INVESTIGATED, Decision.APPROVE, STALE, "Refused", "NotAwaitingApproval", id="drafting"),
        pytest.param(Phase.EXECUTING, Decision.APPROVE, None, "Refused", "AlreadyDecided", id="running"),
        pytest.param(Phase.EXECUTING, Decision.APPROVE, STALE, "Refused", "NotAwaitingApproval", id="another runs"),
        pytest.param(Phase.EXECUTING, Decision.REJECT, None, None, "Pending", id="a no while it runs"),
        pytest.param(Phase.OBSERVING, Decision.REJECT, None, "Refused", "AlreadyDecided", id="it has run"),
        pytest.param(Phase.RESOLVED, Decision.APPROVE, STALE, "Refused", "AlreadyDecided", id="ended"),
        pytest.param(Phase.CLOSED, Decision.APPROVE, None, "Refused", "Overruled", id="closed by a dismissal"),
        pytest.param(Phase.CLOSED, Decision.REJECT, None, "Refused", "AlreadyDecided", id="a no after a dismissal"),
    ],
)
def test_late_decisions_are_told_what_has_become_of_the_plan(
    phase: Phase, decision: Decision, digest: str | None, verdict: str | None, reason: str
) -> None:
    """Outside AwaitingApproval a decision is refused with what happened; a no waits for the gate."""
    given = approval("zoe", decision=decision, name="late", **({"plan_digest": digest} if digest else {}))
    assert verdicts(judged(incident(phase), given)) == {"late": (verdict, reason)}


def test_an_approval_that_the_plan_runs_on_is_accepted_after_a_crash() -> None:
    """The verdict that an operator died before writing comes out of the stored incident, the same."""
    on = incident(Phase.EXECUTING)
    given = approval("alice", of=incident(), created=NOW + timedelta(seconds=4))
    assert on.status.approvals == [bound(given)]
    judgement = judged(on, given)
    assert (judgement.have, judgement.needed) == (("alice",), 1)
    [ruling] = judgement.rulings
    assert (ruling.verdict, ruling.reason, ruling.provisional) == (Verdict.ACCEPTED, Reason.ACCEPTED, False)


def test_a_reject_that_was_acted_on_is_accepted_after_a_crash_and_overrules() -> None:
    """Back in Investigated, the Reject in the trail is Accepted, the Approve it beat is Overruled."""
    reject = approval("alice", decision=Decision.REJECT, name="no")
    beaten = approval("bob", name="yes")
    waiting = incident()
    entry = waiting.status.trail[-1].replace(kind=EntryKind.DECIDED, digest=reject.record_digest)
    on = waiting.replace(
        status=waiting.status.replace(phase=Phase.INVESTIGATED, reason="Rejected", trail=[*waiting.status.trail, entry])
    )
    assert verdicts(judged(on, reject, beaten)) == {
        "no": ("Accepted", "Accepted"),
        "yes": ("Refused", "Overruled"),
    }


def test_an_approval_that_was_bound_before_is_not_used_again() -> None:
    """An approval of an earlier round counts no more, even when its verdict was never written."""
    given = approval("alice", name="a1")
    judgement = judged(incident(approvals=[bound(given)]), given)
    assert (judgement.decision, judgement.have) == (None, ())
    assert verdicts(judgement) == {"a1": ("Accepted", "Accepted")}


decisions = st.builds(
    approval,
    username=st.sampled_from(["alice", "bob", "carol", "system:serviceaccount:x:y"]),
    decision=st.sampled_from(RANKS),
    uid=st.uuids().map(str),
    created=st.integers(0, 3).map(lambda n: NOW + timedelta(seconds=n)),
    expires=st.integers(-2, 2).map(lambda n: LATER + timedelta(seconds=n)),
    deleted=st.booleans(),
    status=st.sampled_from([None, None, None, VerdictStatus(verdict=Verdict.ACCEPTED)]),
    plan_digest=st.sampled_from([plan().digest, plan().digest, STALE]),
)
seconds_off = st.integers(-3, 3).map(lambda n: LATER + timedelta(seconds=n))


@given(st.lists(decisions, max_size=6), st.randoms(use_true_random=False), seconds_off, seconds_off, st.integers(1, 3))
def test_the_order_of_the_list_never_matters(
    given_: list[IncidentApproval], random: Any, now: datetime, server_now: datetime, required: int
) -> None:
    """Any permutation gives the same judgement."""
    on = incident(approvals_required=required)
    shuffled = list(given_)
    random.shuffle(shuffled)
    assert judged(on, *given_, now=now, server_now=server_now) == judged(on, *shuffled, now=now, server_now=server_now)


@given(st.lists(decisions, max_size=6), st.sampled_from(RANKS[:3]), seconds_off, seconds_off, st.booleans())
def test_nothing_is_approved_over_an_objection(
    given_: list[IncidentApproval], decision: Decision, now: datetime, server_now: datetime, on_both: bool
) -> None:
    """With a person's Reject, Revise or Dismiss of this plan, in time on either clock, no plan runs."""
    end = (max if on_both else min)(now, server_now) + timedelta(seconds=1)
    objection = approval("zoe", decision=decision, expires=end)
    judgement = judged(incident(), *given_, objection, now=now, server_now=server_now)
    assert not isinstance(judgement.decision, Approved)


@given(st.lists(decisions, max_size=6), seconds_off, seconds_off, st.integers(1, 3))
def test_what_is_approved_was_approved_by_enough_distinct_people(
    given_: list[IncidentApproval], now: datetime, server_now: datetime, required: int
) -> None:
    """Bound approvals are of the current plan, unexpired on both clocks, of distinct people, as many as needed."""
    judgement = judged(incident(approvals_required=required), *given_, now=now, server_now=server_now)
    if isinstance(judgement.decision, Approved):
        chosen = [each for each in given_ if each.metadata.uid in {b.uid for b in judgement.decision.bound}]
        assert len({each.spec.approver.username for each in chosen}) == len(judgement.decision.bound) == required
        for each in chosen:
            assert each.spec.decision is Decision.APPROVE
            assert each.spec.plan_digest == plan().digest
            assert datetime.fromisoformat(each.spec.expires_at) > max(now, server_now)
            assert each.status.verdict is None
            assert each.metadata.deletion_timestamp is None


@given(
    st.text(max_size=40),
    st.text(min_size=1, max_size=300),
    st.text(max_size=40),
    st.sampled_from(RANKS),
    st.sampled_from(list(Phase)),
)
def test_random_text_never_crashes_and_never_runs(
    expires_at: str, username: str, digest: str, decision: Decision, phase: Phase
) -> None:
    """Whatever stands in the fields, there is a ruling with a message that the schema takes, and no approval."""
    raw = approval(decision=decision)
    spec = raw.spec.model_copy(
        update={
            "expires_at": expires_at,
            "plan_digest": digest,
            "approver": raw.spec.approver.model_copy(update={"username": username}),
        }
    )
    judgement = judged(incident(phase), raw.model_copy(update={"spec": spec}))
    assert judgement.decision is None
    assert all(0 < len(each.message) <= 1024 for each in judgement.rulings)
    assert len(judgement.rulings) == 1
