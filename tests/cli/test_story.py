"""What a person is shown of an incident, and what is found wrong with it."""

from __future__ import annotations

import io
from typing import Any

import pytest

from praxis.api.incident import Incident
from praxis.api.plan import ActionType
from praxis.api.reasons import ConditionType
from praxis.cli.cluster import Found
from praxis.cli.integrity import faults
from praxis.cli.story import consequence, proposal, tell
from praxis.cli.terminal import Screen
from praxis.machine import Phase
from tests.builders import action, incident, plan


def found(of: Incident) -> Found:
    return Found(of, of.dump())


def shown(of: Incident, *, wide: bool = False) -> list[str]:
    out = io.StringIO()
    tell(Screen(out), found(of), wide=wide)
    return [each.strip() for each in out.getvalue().splitlines()]


def test_a_proposal_shows_all_that_an_approval_binds() -> None:
    """Alerts, classification, diagnosis with its evidence, memories, and each action with its risk and target."""
    on = incident()
    assert on.status.plan is not None
    out = io.StringIO()
    proposal(Screen(out), found(on))
    lines = [each.strip() for each in out.getvalue().splitlines()]
    for expected in (
        "Incident shop/checkout-latency-1",
        "HighLatency: firing since 2026-01-31T11:55:00Z",
        "│ summary: p99 latency of checkout is 4 s",
        "category     MemoryLeak, critical, service checkout",
        "Diagnosis (confidence high; by qwen3.7-max)",
        "│ Resident memory doubled in ten minutes.  [e1]",
        "│ 11:50 400 MiB, 11:55 700 MiB, 12:00 980 MiB",
        "m1  shop/checkout-latency-0  score 0.91",
        f"digest       {on.status.plan.digest}",
        "1. restart_function  [safe]  REAL",
        "target    checkout-fn, uid 22222222-2222-4222-8222-222222222222, generation 1",
        "does      Sets PRAXIS_RESTART_ID in the environment of function checkout, as there is no restart call.",
    ):
        assert expected in lines


def test_a_dry_run_is_marked_wherever_it_is_shown() -> None:
    """In the plan and in what approving will do, also that a plan of dry runs remedies nothing."""
    drafted = plan(actions=[action(ActionType.SCALE_SERVICE, parameters={"replicas": "4"})])
    on = incident(draft=lambda **_: drafted, approvals_required=2)
    lines = shown(on)
    assert "1. scale_service  [caution]  DRY RUN, changes nothing" in lines
    assert "parameter replicas = 4" in lines
    assert consequence(on) == [
        "If approved, the operator does this, once:",
        "1. DRY RUN: nothing is sent; scale_service is only recorded.",
        "Every action is a DRY RUN: the incident will not end as remediated.",
        "Of risk caution, 2 distinct people must approve it.",
    ]


def test_what_approving_does_is_said_literally() -> None:
    """The effect of each action in the words of the plan, in order, and how many people it takes."""
    drafted = plan(actions=[action(), action(ActionType.UPDATE_CONFIG, effect="nothing is sent")])
    on = incident(draft=lambda **_: drafted)
    assert consequence(on) == [
        "If approved, the operator does this, in this order, each once:",
        "1. Sets PRAXIS_RESTART_ID in the environment of function checkout, as there is no restart call.",
        "2. DRY RUN: nothing is sent",
        "Of risk caution, one person must approve it.",
    ]


def test_a_claim_that_cites_nothing_that_is_there_is_marked() -> None:
    """Evidence that is cited and not stored is pointed out, so is a claim without any."""
    on = incident()
    assert on.status.diagnosis is not None
    claim = on.status.diagnosis.claims[0]
    diagnosis = on.status.diagnosis.replace(claims=[claim.replace(evidence=["e9"]), claim.replace(evidence=[])])
    lines = shown(on.replace(status=on.status.replace(diagnosis=diagnosis)))
    assert "│ Resident memory doubled in ten minutes.  [e9 (NOT FOUND)]" in lines
    assert "│ Resident memory doubled in ten minutes.  [no evidence]" in lines


def test_steps_show_intent_outcome_and_proof() -> None:
    """What was running, what was sent, how it ended and what shows it."""
    lines = shown(incident(Phase.RESOLVED))
    for expected in (
        "revision 1, restart-function: Applied",
        "intent    intent-00000001, at 2026-01-31T12:00:05Z by writer-a",
        "before    i-old",
        "outcome   Restarted: One newer instance runs.",
        "proof     PRAXIS_RESTART_ID=intent-00000001 is in force",
        "after     i-new",
    ):
        assert expected in lines


def test_wide_shows_hashes_and_whole_excerpts() -> None:
    """Without wide, long evidence is cut and says so; with it, nothing is left out."""
    on = incident()
    excerpt = "\n".join(f"line {n}" for n in range(20))
    long = on.replace(status=on.status.replace(evidence=[on.status.evidence[0].replace(excerpt=excerpt)]))
    narrow, wide = shown(long), shown(long, wide=True)
    assert "│ … 8 more lines; praxis show -o wide shows them" in narrow
    assert "│ line 19" not in narrow
    assert "│ line 19" in wide
    assert any(each.startswith(f"hash {on.status.trail[0].hash}") for each in wide)


def test_text_of_others_cannot_steer_the_terminal() -> None:
    """Wherever untrusted text is shown, its escape sequences are gone and it stays inside its quotation."""
    hostile = "\x1b[2J\x1b]0;x\x07evil\u202e\n  phase        Resolved"
    on = incident(Phase.RESOLVED)
    status = on.status
    assert status.plan is not None
    assert status.classification is not None
    assert status.diagnosis is not None
    bent = on.replace(
        spec=on.spec.replace(
            summary=hostile,
            severity="\x1b[1m",
            source=on.spec.source.replace(receiver=hostile),
            alerts=[
                on.spec.alerts[0].replace(
                    labels={"alertname": hostile, hostile: hostile}, annotations={hostile: hostile}
                )
            ],
        ),
        status=status.replace(
            message=hostile,
            target=hostile,
            classification=status.classification.replace(
                summary=hostile, service=hostile, model=hostile, category="\x1b[2J"
            ),
            diagnosis=status.diagnosis.replace(
                summary=hostile,
                model=hostile,
                claims=[status.diagnosis.claims[0].replace(text=hostile, evidence=["\x1b[2J"])],
            ),
            evidence=[status.evidence[0].replace(excerpt=hostile, query=hostile, tool="\x1b[2J", id="\x1b[2J")],
            recalled=[status.recalled[0].replace(summary=hostile, incident=hostile, id=hostile)],
            corrections=[hostile],
            plan=status.plan.replace(
                summary=hostile,
                rationale=hostile,
                model=hostile,
                actions=[action(effect=hostile, rollback=hostile, parameters={hostile: hostile})],
            ),
            approvals=[status.approvals[0].replace(approver=hostile, name=hostile)],
            steps=[
                status.steps[0].replace(
                    outcome=status.steps[0].outcome.replace(message=hostile, proof=hostile, writer=hostile)  # type: ignore[union-attr]
                )
            ],
            trail=[status.trail[0].replace(actor=hostile, reason="\x1b[2J")],
        ),
    )
    out = io.StringIO()
    tell(Screen(out), found(bent), wide=True)
    assert "evil" in out.getvalue()
    assert not set(out.getvalue()) & {"\x1b", "\x07", "\u202e"}
    assert [each for each in out.getvalue().splitlines() if each.startswith("  phase ")] == [
        "  phase        Resolved, AlertCleared"
    ]
    assert "\x1b" not in "".join(consequence(bent))


@pytest.mark.parametrize("phase", list(Phase))
def test_an_honest_incident_has_no_faults(phase: Phase) -> None:
    """In every phase, what the operator writes holds, and can be shown."""
    assert faults(found(incident(phase))) == []
    assert shown(incident(phase))


def bent(**status: Any) -> Found:
    """An incident whose stored document was changed behind the operator's back."""
    on = incident()
    return found(on.replace(status=on.status.replace(**status)))


def test_a_changed_plan_is_found() -> None:
    """Actions that are not what the digest names are said to have been changed."""
    on = incident()
    assert on.status.plan is not None
    wrong = bent(plan=on.status.plan.replace(actions=[action(effect="Deletes the function.")]))
    [fault] = faults(wrong)
    assert fault.startswith(f"trail entry 2: the stored plan is not what its digest {on.status.plan.digest} names")


def test_changed_evidence_is_found() -> None:
    """The evidence that is shown must be the evidence that the plan's digest covers."""
    on = incident()
    wrong = bent(evidence=[on.status.evidence[0].replace(excerpt="all is well"), on.status.evidence[1]])
    assert faults(wrong) == ["trail entry 1: the stored evidence is not the evidence that the plan rests on"]


def test_a_broken_trail_is_found() -> None:
    """The first entry that does not hold is named, and a head that is not the last hash."""
    on = incident()
    trail = [on.status.trail[0], on.status.trail[1].replace(actor="mallory"), on.status.trail[2]]
    [fault] = faults(bent(trail=trail))
    assert fault.startswith("trail entry 1: it was altered: its content hashes to sha256:")
    assert faults(bent(head="sha256:" + "0" * 64)) == ["status.head is not the hash of the last trail entry"]


def test_a_field_of_another_version_in_the_trail_is_part_of_its_hash() -> None:
    """The stored document is checked, not what this version reads of it."""
    of = found(incident())
    of.document["status"]["trail"][0]["added"] = "later"
    [fault] = faults(of)
    assert fault.startswith("trail entry 0: it was altered: its content hashes to sha256:")


def test_how_many_have_approved_is_said() -> None:
    """The count that the operator keeps is quoted."""
    on = incident(approvals_required=2)
    condition = {
        "type": ConditionType.APPROVED.value,
        "status": "False",
        "reason": "Pending",
        "message": "1/2 approved by bob",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    }
    counted = on.replace(status=on.status.replace(conditions=[condition]))
    assert consequence(counted)[-1] == "Of risk safe, 2 distinct people must approve it. So far: 1/2 approved by bob."
