"""What a Transition makes of a status, and the patch that says so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import jsonpatch  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praxis.api import bounds
from praxis.api.base import Condition
from praxis.api.incident import EntryKind, IncidentStatus
from praxis.api.reasons import ConditionType, Reason
from praxis.controller.status import applied, difference, fence
from praxis.digest import canonical, first_broken, genesis
from praxis.errors import NeedsPerson
from praxis.machine import TRANSITIONS, Phase
from praxis.phases.contract import ConditionUpdate, Record, Transition
from tests import builders

NOW = builders.NOW + timedelta(hours=1)
ACTOR = "system:serviceaccount:praxis-system:praxis-operator"


def moved(source: Phase, to: Phase, **more: Any) -> IncidentStatus:
    return applied(
        builders.incident(source),
        Transition(to=to, reason=Reason.CLASSIFIED, message="because", **more),
        actor=ACTOR,
        now=NOW,
    )


def test_a_transition_leaves_one_linked_entry_that_names_the_actor() -> None:
    """The trail of a new incident begins at the digest of its uid."""
    status = moved(Phase.NEW, Phase.TRIAGED)
    (entry,) = status.trail
    assert (entry.seq, entry.kind, entry.phase, entry.actor) == (0, EntryKind.PHASE_CHANGED, Phase.TRIAGED, ACTOR)
    assert entry.prev == genesis(builders.INCIDENT_UID)
    assert status.head == entry.hash


def test_the_records_come_before_the_change_of_phase() -> None:
    """A person's decision is in the trail in their own name, then the phase that it led to."""
    status = moved(
        Phase.AWAITING_APPROVAL,
        Phase.CLOSED,
        records=[Record(EntryKind.DECIDED, Reason.DISMISSED, actor="alice", document={"said": "no"})],
    )
    assert [(each.kind, each.actor) for each in status.trail[-2:]] == [
        (EntryKind.DECIDED, "alice"),
        (EntryKind.PHASE_CHANGED, ACTOR),
    ]


def test_an_edge_that_the_table_does_not_have_is_a_bug() -> None:
    """The writer's own check stands before the API server's."""
    with pytest.raises(AssertionError, match="no transition from New to Executing"):
        moved(Phase.NEW, Phase.EXECUTING)


def test_stalled_ends_with_the_phase_and_waiting_since_only_stands_in_awaiting_approval() -> None:
    """What is true of a phase goes with it."""
    stalled = applied(
        builders.incident(Phase.INVESTIGATED, attempts=2),
        Transition(
            to=Phase.INVESTIGATED,
            reason=Reason.UNAVAILABLE,
            message="",
            conditions=[ConditionUpdate(ConditionType.STALLED, status=True, reason=Reason.UNAVAILABLE)],
        ),
        actor=ACTOR,
        now=NOW,
    )
    assert stalled.condition("Stalled") is not None
    assert stalled.attempts == 2
    waiting = applied(
        builders.incident(Phase.INVESTIGATED, conditions=stalled.conditions, attempts=2),
        Transition(
            to=Phase.AWAITING_APPROVAL, reason=Reason.PLAN_PROPOSED, message="", changes={"plan": builders.plan()}
        ),
        actor=ACTOR,
        now=NOW,
    )
    assert waiting.condition("Stalled") is None
    assert waiting.attempts is None
    assert waiting.waiting_since == "2026-01-31T13:00:00.000000Z"
    assert moved(Phase.AWAITING_APPROVAL, Phase.CLOSED).waiting_since is None


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    """lastTransitionTime moves when the status changes, not when the message does."""
    before = builders.incident(Phase.AWAITING_APPROVAL)
    times = []
    for hours, status, message in ((1, False, "0/2"), (2, False, "1/2"), (3, True, "2/2")):
        after = applied(
            before,
            Transition(
                to=Phase.AWAITING_APPROVAL,
                reason=Reason.PENDING,
                message="",
                conditions=[
                    ConditionUpdate(ConditionType.APPROVED, status=status, reason=Reason.PENDING, message=message)
                ],
            ),
            actor=ACTOR,
            now=builders.NOW + timedelta(hours=hours),
        )
        condition = after.condition("Approved")
        assert condition is not None
        assert condition.message == message
        times.append(condition.last_transition_time[11:13])
        before = before.replace(status=after)
    assert times == ["13", "13", "15"]


@pytest.mark.parametrize(
    ("source", "destination", "left"),
    [
        (Phase.EXECUTING, Phase.INVESTIGATED, False),
        (Phase.OBSERVING, Phase.INVESTIGATED, False),
        (Phase.AWAITING_APPROVAL, Phase.INVESTIGATED, False),
        (Phase.EXECUTING, Phase.OBSERVING, True),
        (Phase.OBSERVING, Phase.RESOLVED, True),
    ],
)
def test_nobody_has_approved_a_plan_that_is_not_drafted_yet(source: Phase, destination: Phase, left: bool) -> None:
    """The condition tells of one plan: it must not stand on the next one before anybody has read that."""
    approved = Condition(
        type="Approved", status="True", reason="Approved", last_transition_time="2026-01-31T12:00:00.000000Z"
    )
    before = builders.incident(source, conditions=[approved])
    after = applied(
        before, Transition(to=destination, reason=Reason.PENDING, message=""), actor=ACTOR, now=builders.NOW
    )
    assert (after.condition("Approved") is not None) is left


@pytest.mark.parametrize(("excerpt", "fits"), [(4096, True), (4097, False)])
def test_a_status_too_large_for_a_person_to_approve_needs_one(
    excerpt: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is checked before AwaitingApproval, at and above it."""
    incident = builders.incident(Phase.INVESTIGATED)
    transition = Transition(
        to=Phase.AWAITING_APPROVAL,
        reason=Reason.PLAN_PROPOSED,
        message="",
        changes={"plan": builders.plan(rationale="x" * (excerpt - 1))},
    )
    size = len(canonical(applied(incident, transition, actor=ACTOR, now=NOW).dump()))
    monkeypatch.setattr(bounds, "STATUS_BYTES", size if fits else size - 1)
    if fits:
        applied(incident, transition, actor=ACTOR, now=NOW)
    else:
        with pytest.raises(NeedsPerson, match="the status would exceed"):
            applied(incident, transition, actor=ACTOR, now=NOW)


def test_the_fence_tests_what_a_second_writer_changes() -> None:
    """uid, phase and head; the resourceVersion too where an effect rests on the read."""
    incident = builders.incident(Phase.EXECUTING)
    paths = [each["path"] for each in fence(incident, versioned=False)]
    assert paths == ["/metadata/uid", "/status/phase", "/status/head"]
    assert fence(incident, versioned=True)[-1]["path"] == "/metadata/resourceVersion"
    assert fence(builders.incident(Phase.NEW), versioned=False)[-1] == {
        "op": "test",
        "path": "/status/trail",
        "value": [],
    }


edges = st.sampled_from([(source, to) for source, following in TRANSITIONS.items() for to in following])


@settings(max_examples=50)
@given(edge=edges, message=st.text(max_size=50), people=st.lists(st.sampled_from(["alice", "bob"]), max_size=3))
def test_the_patch_gives_what_was_decided_and_the_chain_holds(
    edge: tuple[Phase, Phase], message: str, people: list[str]
) -> None:
    """For every edge: the operations, applied to the stored document, are the new status, and its trail verifies."""
    source, to = edge
    incident = builders.incident(source)
    after = applied(
        incident,
        Transition(
            to=to,
            reason=Reason.CLASSIFIED,
            message=message,
            records=[Record(EntryKind.DECIDED, Reason.APPROVED, actor=each) for each in people],
        ),
        actor=ACTOR,
        now=NOW,
    )
    stored = {"metadata": incident.metadata.dump(), "status": incident.status.dump()}
    operations = [*fence(incident, versioned=True), *difference(incident.status, after)]
    patched = jsonpatch.apply_patch(stored, operations)
    assert patched["status"] == after.dump()
    assert first_broken(builders.INCIDENT_UID, patched["status"]["trail"]) is None
    assert len(after.trail) == len(incident.status.trail) + len(people) + 1


def test_a_decision_within_a_phase_ends_stalled() -> None:
    """What work was stalled on is over when work goes on, also where the phase stays."""
    stalled = Condition(
        type="Stalled", status="True", reason="TargetHeld", last_transition_time="2026-01-31T12:00:00.000000Z"
    )
    after = applied(
        builders.incident(Phase.EXECUTING, conditions=[stalled]),
        Transition(to=Phase.EXECUTING, reason=Reason.DRY_RUN, message=""),
        actor=ACTOR,
        now=NOW,
    )
    assert after.condition("Stalled") is None
