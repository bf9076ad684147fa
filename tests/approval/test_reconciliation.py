"""A person's finding on an unknown outcome."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.api.approval import IncidentReconciliation, IncidentRef, Observed, Verdict, VerdictStatus
from praxis.api.incident import EntryKind
from praxis.api.target import Holder
from praxis.approval.reconciliation import Findings, judge_reconciliations, releases, unknown_intent
from praxis.machine import Phase
from tests.builders import INCIDENT_UID, NOW, incident, reconciliation


def verdicts(findings: Findings) -> dict[str, tuple[str | None, str]]:
    return {each.name: (each.verdict, each.reason.value) for each in findings.rulings}


def test_a_finding_on_the_unknown_intent_is_taken() -> None:
    """The finding that names incident, intent and trail is the one to go by, once the incident says so."""
    given_ = reconciliation(name="r1")
    findings = judge_reconciliations(incident(Phase.RECONCILIATION_REQUIRED), [given_])
    assert findings.accepted == given_
    assert verdicts(findings) == {"r1": ("Accepted", "Accepted")}
    assert findings.rulings[0].provisional


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"intent_id": "intent-99999999"}, "IntentMismatch", id="another intent"),
        pytest.param({"trail_head": "sha256:" + "0" * 64}, "IntentMismatch", id="another trail"),
        pytest.param(
            {"incident_ref": IncidentRef(name="checkout-latency-1", uid="other")}, "IncidentNotFound", id="uid"
        ),
        pytest.param({"incident_ref": IncidentRef(name="x", uid=INCIDENT_UID)}, "IncidentNotFound", id="name"),
        pytest.param({"username": "system:serviceaccount:a:b"}, "ApproverNotAPerson", id="robot"),
    ],
)
def test_a_finding_that_speaks_of_something_else_is_refused(changes: dict[str, Any], reason: str) -> None:
    """It is refused for good, with its own reason, and does not keep a good one from being taken."""
    wrong = reconciliation(**{"username": "zoe", "name": "wrong", **changes})
    good = reconciliation("alice", name="good", created=NOW + timedelta(minutes=1))
    findings = judge_reconciliations(incident(Phase.RECONCILIATION_REQUIRED), [wrong, good])
    assert findings.accepted == good
    assert verdicts(findings) == {"wrong": ("Refused", reason), "good": ("Accepted", "Accepted")}
    assert [each.provisional for each in findings.rulings] == [False, True]


@pytest.mark.parametrize("phase", [each for each in Phase if each is not Phase.RECONCILIATION_REQUIRED])
def test_in_any_other_phase_there_is_nothing_to_reconcile(phase: Phase) -> None:
    """A finding on an incident whose outcome is not unknown is refused."""
    findings = judge_reconciliations(incident(phase), [reconciliation(name="r1")])
    assert findings.accepted is None
    assert verdicts(findings) == {"r1": ("Refused", "IntentMismatch")}


def test_an_unknown_outcome_that_is_not_settled_in_the_phase_yet_is_not_reconciled() -> None:
    """Between the outcome's write and the phase's, somebody is still at work."""
    on = incident(Phase.RECONCILIATION_REQUIRED)
    early = on.replace(status=on.status.replace(phase=Phase.EXECUTING))
    findings = judge_reconciliations(early, [reconciliation(of=on, name="r1")])
    assert verdicts(findings) == {"r1": ("Refused", "IntentMismatch")}


def test_the_first_finding_wins() -> None:
    """By creation, then uid, in any order of the list."""
    first = reconciliation("bob", name="first", uid="a", observed=Observed.NOT_APPLIED)
    second = reconciliation("alice", name="second", uid="b")
    third = reconciliation("carol", name="third", uid="0", created=NOW + timedelta(seconds=1))
    for order in itertools.permutations([first, second, third]):
        findings = judge_reconciliations(incident(Phase.RECONCILIATION_REQUIRED), order)
        assert findings.accepted == first
        assert verdicts(findings) == {
            "first": ("Accepted", "Accepted"),
            "second": ("Refused", "AlreadyDecided"),
            "third": ("Refused", "AlreadyDecided"),
        }


def test_after_it_is_recorded_the_verdicts_come_from_the_trail() -> None:
    """The recorded finding is Accepted, also when its verdict was lost in a crash; any other comes too late."""
    on = incident(Phase.RECONCILIATION_REQUIRED)
    won, late = reconciliation("bob", name="won"), reconciliation("alice", name="late", uid="0")
    entry = on.status.trail[-1].replace(
        seq=len(on.status.trail),
        kind=EntryKind.RECONCILED,
        actor="bob",
        digest=won.record_digest,
        hash="sha256:" + "9" * 64,
    )
    stored = on.replace(status=on.status.replace(trail=[*on.status.trail, entry], head=entry.hash))
    findings = judge_reconciliations(stored, [late, won])
    assert findings.accepted is None
    assert verdicts(findings) == {"won": ("Accepted", "Accepted"), "late": ("Refused", "AlreadyDecided")}
    assert not any(each.provisional for each in findings.rulings)


def test_the_head_when_a_person_was_first_asked_is_good_too() -> None:
    """An entry that came after ReconciliationRequired was entered does not spoil a finding on its way."""
    on = incident(Phase.RECONCILIATION_REQUIRED)
    entry = on.status.trail[-1].replace(seq=len(on.status.trail), kind=EntryKind.DECIDED, hash="sha256:" + "9" * 64)
    stored = on.replace(status=on.status.replace(trail=[*on.status.trail, entry], head=entry.hash))
    assert judge_reconciliations(stored, [reconciliation(of=on)]).accepted is not None
    assert judge_reconciliations(stored, [reconciliation(of=stored)]).accepted is not None


def test_what_is_used_up_or_going_is_ignored() -> None:
    """Findings with a verdict, or being deleted, get no ruling and settle nothing."""
    given_ = [
        reconciliation("alice", status=VerdictStatus(verdict=Verdict.REFUSED)),
        reconciliation("bob", deleted=True),
    ]
    assert judge_reconciliations(incident(Phase.RECONCILIATION_REQUIRED), given_) == Findings((), None)


def test_the_unknown_intent_is_named() -> None:
    """Only an outcome that is Unknown leaves an intent to reconcile."""
    assert unknown_intent(incident(Phase.RECONCILIATION_REQUIRED)) == "intent-00000001"
    assert unknown_intent(incident(Phase.OBSERVING)) is None
    assert unknown_intent(incident()) is None


def test_a_holder_of_a_vanished_incident_is_released_by_a_person_who_names_its_intent() -> None:
    """Incident and intent must be the holder's, the author a person; the first such finding counts."""
    holder = Holder(
        incident_uid=INCIDENT_UID,
        incident_name="checkout-latency-1",
        revision=1,
        intent_id="intent-00000001",
        writer="writer-a",
        claimed_at="2026-01-31T12:00:00Z",
    )
    good = reconciliation("bob", uid="b", created=NOW + timedelta(seconds=1))
    assert releases(holder, []) is None
    assert releases(holder, [reconciliation(intent_id="intent-99999999")]) is None
    assert releases(holder, [reconciliation(incident_ref=IncidentRef(name="a", uid="other"))]) is None
    assert releases(holder, [reconciliation("system:serviceaccount:a:b")]) is None
    assert releases(holder, [reconciliation(deleted=True)]) is None
    assert releases(holder, [reconciliation("alice", created=NOW + timedelta(minutes=1)), good]) == good


@given(st.text(max_size=64), st.text(max_size=71), st.text(min_size=1, max_size=256), st.sampled_from(list(Phase)))
def test_random_text_never_crashes_and_settles_nothing(intent: str, head: str, username: str, phase: Phase) -> None:
    """Whatever stands in the fields, it is refused with a message that the schema takes."""
    raw = reconciliation()
    observer = raw.spec.observer.model_copy(update={"username": username})
    spec = raw.spec.model_copy(update={"intent_id": intent, "trail_head": head, "observer": observer})
    odd: IncidentReconciliation = raw.model_copy(update={"spec": spec})
    findings = judge_reconciliations(incident(phase), [odd])
    assert findings.accepted is None
    assert [each.verdict for each in findings.rulings] == [Verdict.REFUSED]
    assert all(0 < len(each.message) <= 1024 for each in findings.rulings)
