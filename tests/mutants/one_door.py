"""Guards of invariant 1: one door."""

from __future__ import annotations

from tests.mutants.contract import APPROVAL, GATE, WRITER, Mutant

ONE_DOOR = (
    Mutant(
        "an edge past people",
        1,
        "machine.py",
        "Phase.INVESTIGATED: (Phase.AWAITING_APPROVAL, Phase.CLOSED",
        "Phase.INVESTIGATED: (Phase.AWAITING_APPROVAL, Phase.EXECUTING, Phase.CLOSED",
        ("tests/api/test_machine.py",),
    ),
    Mutant(
        "the writer's own check of the edge",
        1,
        "controller/status.py",
        '    assert allows(before.phase, transition.to), f"no transition from {before.phase} to {transition.to}"\n',
        "",
        WRITER,
    ),
    Mutant(
        "a quorum of nobody",
        1,
        "settings.py",
        "QuorumOf = Annotated[int, Field(ge=1,",
        "QuorumOf = Annotated[int, Field(ge=0,",
        ("tests/approval/test_quorum.py",),
    ),
    Mutant("enough people", 1, "approval/judgement.py", "len(counted) >= needed", "len(counted) >= 1", APPROVAL),
    Mutant(
        "only while the plan waits",
        1,
        "approval/judgement.py",
        "    if incident.status.phase is not Phase.AWAITING_APPROVAL:\n",
        "    if False:\n",
        APPROVAL,
    ),
    Mutant(
        "the number that was shown",
        1,
        "approval/judgement.py",
        "max(by_tier, incident.status.approvals_required or 1)",
        "by_tier",
        APPROVAL,
    ),
    Mutant(
        "the number that is set now",
        1,
        "approval/judgement.py",
        "max(by_tier, incident.status.approvals_required or 1)",
        "incident.status.approvals_required or 1",
        APPROVAL,
    ),
    Mutant(
        "the tier from the actions",
        1,
        "approval/judgement.py",
        "quorum.of(highest_tier(plan.actions))",
        "quorum.of(plan.tier)",
        APPROVAL,
    ),
    Mutant("the number at the gate", 1, "approval/gate.py", "if len(people) < needed:", "if False:", GATE),
    Mutant(
        "distinct people at the gate",
        1,
        "approval/gate.py",
        "people = _people(incident.status.approvals, signatures)",
        "people = incident.status.approvals",
        GATE,
    ),
)
