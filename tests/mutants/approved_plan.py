"""Guards of invariant 2: the approved plan is the plan that runs."""

from __future__ import annotations

from tests.mutants.contract import APPROVAL, GATE, PLAN, Mutant

APPROVED_PLAN = (
    *(
        Mutant(
            f"the digest covers {name}",
            2,
            "api/plan.py",
            f'        "{name}": {value},\n',
            f'        "{name}": 1,\n',
            PLAN,
        )
        for name, value in (
            ("incidentUid", "incident_uid"),
            ("revision", "revision"),
            ("actions", "[action.dump() for action in actions]"),
            ("evidenceDigest", "evidence_digest"),
        )
    ),
    Mutant(
        "a plan that hashes to its digest",
        2,
        "approval/validity.py",
        "return same(plan.recomputed(incident.metadata.uid), plan.digest)",
        "return True",
        APPROVAL,
    ),
    Mutant(
        "an approval of this very plan",
        2,
        "approval/validity.py",
        "if plan is None or not same(approval.spec.plan_digest, plan.digest):",
        "if plan is None:",
        APPROVAL,
    ),
    Mutant(
        "a damaged plan cannot be approved",
        2,
        "approval/validity.py",
        "if approval.spec.decision is Decision.APPROVE and not intact(incident, plan):",
        "if False:",
        APPROVAL,
    ),
    Mutant(
        "the plan is intact at the gate",
        2,
        "approval/gate.py",
        "if plan is None or not intact(incident, plan):",
        "if plan is None:",
        GATE,
    ),
    Mutant(
        "the approval is on this plan at the gate",
        2,
        "approval/gate.py",
        "if not same(bound.plan_digest, incident.status.plan.digest):",
        "if False:",
        GATE,
    ),
    Mutant(
        "the target by uid",
        2,
        "phases/gate.py",
        "if each.metadata.uid == action.target.uid), None)",
        "if each.metadata.name == action.target.name), None)",
        GATE,
    ),
    Mutant(
        "the target in this namespace",
        2,
        "phases/gate.py",
        "if target is None or target.metadata.namespace != incident.metadata.namespace:",
        "if target is None:",
        GATE,
    ),
    Mutant(
        "the target's generation",
        2,
        "phases/gate.py",
        "if target.metadata.generation != action.target.generation or target",
        "if target",
        GATE,
    ),
    Mutant(
        "a target that is being deleted",
        2,
        "phases/gate.py",
        " or target.metadata.deletion_timestamp is not None:",
        ":",
        GATE,
    ),
    Mutant(
        "the function as it was planned on",
        2,
        "phases/executing.py",
        "if not same(baseline.state, action.target.state):",
        "if False:",
        ("tests/phases/test_executing.py",),
    ),
    Mutant(
        "an incident that still fires at the gate",
        2,
        "phases/gate.py",
        "    if not incident.spec.firing:\n        return cleared(incident)\n",
        "",
        GATE,
    ),
)
