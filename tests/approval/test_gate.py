"""The approvals of a plan in Executing, looked at again right before an action."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from praxis.api.approval import Decision, IncidentApproval, IncidentRef, Person, Verdict, VerdictStatus
from praxis.api.incident import Incident
from praxis.api.plan import ActionType
from praxis.approval.gate import still_valid
from praxis.machine import Phase
from praxis.settings import Quorum
from tests.builders import NOW, action, approval, incident, plan

LATER = NOW + timedelta(minutes=10)
ACCEPTED = VerdictStatus(verdict=Verdict.ACCEPTED)


def running(*approvers: str) -> tuple[Incident, list[IncidentApproval]]:
    """An incident in Executing and the approvals it runs on, as `history` makes them."""
    on = incident(Phase.EXECUTING, approvers=approvers or ("alice",))
    return on, [
        approval(each, of=incident(), created=NOW + timedelta(seconds=4), status=ACCEPTED)
        for each in approvers or ("alice",)
    ]


def reason(on: Incident, given: list[IncidentApproval], *, minutes: int = 10, server_minutes: int | None = None) -> str:
    """The reason of the lapse, or `valid`."""
    server = NOW + timedelta(minutes=minutes if server_minutes is None else server_minutes)
    lapse = still_valid(on, given, now=NOW + timedelta(minutes=minutes), server_now=server, quorum=Quorum())
    return lapse.reason.value if lapse else "valid"


def test_nothing_has_changed() -> None:
    """The plan may go on while everything is as it was accepted, with one approval and with several."""
    assert reason(*running()) == "valid"
    assert reason(*running("alice", "bob")) == "valid"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda a: [], "ApprovalWithdrawn", id="deleted"),
        pytest.param(
            lambda a: [a.replace(metadata=a.metadata.replace(deletion_timestamp="2026-01-31T12:05:00Z"))],
            "ApprovalWithdrawn",
            id="being deleted",
        ),
        pytest.param(
            lambda a: [a.replace(metadata=a.metadata.replace(uid="another"))], "ApprovalWithdrawn", id="made anew"
        ),
        pytest.param(
            lambda a: [a.replace(spec=a.spec.replace(reason="another"))], "ApprovalWithdrawn", id="another reason"
        ),
        pytest.param(
            lambda a: [a.replace(spec=a.spec.replace(approver=Person(username="bob")))],
            "ApprovalWithdrawn",
            id="another approver",
        ),
        pytest.param(
            lambda a: [a.replace(spec=a.spec.replace(expires_at="2027-01-31T13:00:00Z"))],
            "ApprovalWithdrawn",
            id="prolonged",
        ),
        pytest.param(
            lambda a: [a.replace(status=VerdictStatus(verdict=Verdict.REFUSED))], "ApprovalWithdrawn", id="refused"
        ),
        pytest.param(lambda a: [a.replace(status=VerdictStatus())], "valid", id="verdict not written yet"),
    ],
)
def test_an_approval_must_still_be_what_was_accepted(
    change: Callable[[IncidentApproval], list[IncidentApproval]], expected: str
) -> None:
    """A bound approval that is gone, or differs in a word from what the trail recorded, stops the plan."""
    on, [given] = running()
    assert reason(on, change(given)) == expected


@pytest.mark.parametrize(
    ("minutes", "server_minutes", "expected"),
    [(59, 59, "valid"), (61, 59, "Expired"), (59, 61, "Expired"), (61, 61, "Expired")],
)
def test_an_approval_must_be_in_time_on_both_clocks(minutes: int, server_minutes: int, expected: str) -> None:
    """Expired on either clock is too late to act on."""
    on, given = running()
    assert reason(on, given, minutes=minutes, server_minutes=server_minutes) == expected


def test_without_the_servers_time_nothing_goes_on() -> None:
    """An approval that cannot be shown to be unexpired on both clocks does not carry an action."""
    on, given = running()
    lapse = still_valid(on, given, now=LATER, server_now=None, quorum=Quorum())
    assert lapse is not None
    assert lapse.reason.value == "Expired"


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (Decision.REJECT, "Rejected"),
        (Decision.REVISE, "RevisionRequested"),
        (Decision.DISMISS, "Dismissed"),
        (Decision.APPROVE, "valid"),
    ],
)
@pytest.mark.parametrize("status", [VerdictStatus(), VerdictStatus(verdict=Verdict.REFUSED)])
def test_a_no_that_came_since_stops_the_plan(decision: Decision, expected: str, status: VerdictStatus) -> None:
    """A person's objection to this very plan counts until something is sent, whatever verdict it got meanwhile."""
    on, given = running()
    late = approval("zoe", of=on, decision=decision, created=NOW + timedelta(minutes=5), status=status)
    assert reason(on, [*given, late]) == expected
    lapse = still_valid(on, [*given, late], now=LATER, server_now=LATER, quorum=Quorum())
    assert (lapse.objection if lapse else None) == (None if expected == "valid" else late)


def test_the_leading_objection_is_named() -> None:
    """Of several objections the one of highest precedence is the reason, not the earliest."""
    on, given = running()
    dismiss = approval("bob", of=on, decision=Decision.DISMISS)
    reject = approval("zoe", of=on, decision=Decision.REJECT, created=LATER)
    assert reason(on, [dismiss, reject, *given]) == "Rejected"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"plan_digest": "sha256:" + "0" * 64}, id="of another plan"),
        pytest.param({"username": "system:serviceaccount:a:b"}, id="of a robot"),
        pytest.param({"deleted": True}, id="withdrawn"),
        pytest.param({"expires": NOW + timedelta(minutes=10)}, id="expired on both clocks"),
        pytest.param(
            {"signature": "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"}, id="with a signature"
        ),
    ],
)
def test_an_objection_that_does_not_count_stops_nothing(changes: dict[str, object]) -> None:
    """Only a person's own decision on this very plan, in time, is heeded."""
    on, given = running()
    fields = {"username": "zoe", "of": on, "decision": Decision.REJECT, "name": "no", **changes}
    assert reason(on, [*given, approval(**fields)]) == "valid"  # type: ignore[arg-type]


def test_a_doubtful_objection_stops() -> None:
    """A no that has expired on one clock only is in doubt, and a doubt about a no is no yes."""
    on, given = running()
    late = approval("zoe", of=on, decision=Decision.REJECT, expires=NOW + timedelta(minutes=10))
    assert reason(on, [*given, late], minutes=9, server_minutes=11) == "Rejected"
    assert reason(on, [*given, late], minutes=11, server_minutes=9) == "Rejected"


def test_an_objection_to_another_incident_stops_nothing() -> None:
    """It must name this incident's uid, from its own namespace."""
    on, given = running()
    objection = approval("zoe", of=on, decision=Decision.REJECT)
    elsewhere = objection.replace(metadata=objection.metadata.replace(namespace="elsewhere"))
    other = objection.replace(spec=objection.spec.replace(incident_ref=IncidentRef(name=on.metadata.name, uid="other")))
    assert reason(on, [*given, elsewhere, other]) == "valid"


def test_a_changed_plan_stops() -> None:
    """Actions that were changed under their digest do not run, whoever approved it."""
    on, given = running()
    assert on.status.plan is not None
    altered = on.status.plan.replace(actions=[action(effect="Deletes the function.")])
    assert reason(on.replace(status=on.status.replace(plan=altered)), given) == "PlanDrifted"


def test_an_approval_of_another_plan_stops() -> None:
    """Approvals that were bound to another digest than the plan's do not carry it."""
    on, given = running()
    other = plan(revision=2)
    assert reason(on.replace(status=on.status.replace(plan=other)), given) == "PlanDrifted"


def test_the_quorum_is_asked_again() -> None:
    """Too few distinct people for the tier, by what the settings say now, stops the plan."""
    drafted = plan(actions=[action(ActionType.ROLLBACK_DEPLOY)])
    waiting = incident(draft=lambda **_: drafted)
    on = incident(Phase.EXECUTING, draft=lambda **_: drafted)
    given = [approval("alice", of=waiting, created=NOW + timedelta(seconds=4), status=ACCEPTED)]
    assert reason(on, given) == "QuorumNotMet"
    assert still_valid(on, given, now=LATER, server_now=LATER, quorum=Quorum(dangerous=1)) is None


def test_one_person_twice_is_one_person() -> None:
    """Two approvals of one person carry no plan that two people must approve, whatever is stored."""
    on, given = running("alice", "bob")
    twice = [on.status.approvals[0], on.status.approvals[0].replace(uid="another", name="another")]
    on = on.replace(status=on.status.replace(approvals=twice))
    again = given[0].replace(metadata=given[0].metadata.replace(uid="another", name="another"))
    trail = [*on.status.trail, on.status.trail[-1].replace(kind="Decided", digest=again.record_digest)]
    on = on.replace(status=on.status.replace(trail=trail))
    assert reason(on, [given[0], again]) == "QuorumNotMet"
