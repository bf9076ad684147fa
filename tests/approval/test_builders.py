"""The builders that other tests rest on build what the rules allow."""

from __future__ import annotations

import itertools

import pytest

from praxis import machine
from praxis.digest import first_broken
from praxis.machine import Phase
from tests import builders


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_is_built_with_a_whole_chain(phase: Phase) -> None:
    """Each built incident is in its phase, reached over legal edges, with an unbroken trail and the right head."""
    states = builders.history(phase)
    assert states[-1].status.phase is phase
    for before, after in itertools.pairwise(states):
        assert machine.allows(before.status.phase, after.status.phase)
        assert len(after.status.trail) > len(before.status.trail)
    last = states[-1]
    trail = last.dump()["status"]["trail"]
    assert first_broken(builders.INCIDENT_UID, trail) is None
    assert last.status.head == (trail[-1]["hash"] if trail else None)


def test_the_plan_digest_is_recomputed_the_same() -> None:
    """A built plan names the digest of what it holds."""
    built = builders.plan()
    assert built.recomputed(builders.INCIDENT_UID) == built.digest


def test_a_changed_status_is_what_was_asked_for() -> None:
    """Changes of status and spec arrive in the built incident."""
    built = builders.incident(Phase.EXECUTING, spec={"truncated_alerts": 3}, attempts=2, approvers=("alice", "bob"))
    assert (built.spec.truncated_alerts, built.status.attempts) == (3, 2)
    assert [each.approver for each in built.status.approvals] == ["alice", "bob"]


def test_a_replanned_incident_has_a_whole_chain_and_a_higher_revision() -> None:
    """After a Reject, the next plan has another digest, and the trail goes on unbroken."""
    before = builders.incident()
    back, again = builders.replanned(before)
    assert back.status.phase is Phase.INVESTIGATED
    assert again.status.phase is Phase.AWAITING_APPROVAL
    assert again.status.plan is not None
    assert again.status.plan.revision == 2
    assert again.status.plan.recomputed(builders.INCIDENT_UID) == again.status.plan.digest
    assert first_broken(builders.INCIDENT_UID, again.dump()["status"]["trail"]) is None
