"""Round the plan: what is in it, when it changes, and what evidence and diagnosis stand under it."""

from __future__ import annotations

from praxis.api.plan import ActionType
from tests import builders
from tests.api.cases.contract import allowed, refused
from tests.api.lab import (
    EVIDENCE,
    FOREIGN,
    GUARDS,
    REAL,
    Lab,
    approval,
    bent,
    plan,
)


@refused("one-real-action", "one real action at most")
async def two_real_actions(lab: Lab) -> None:
    second = builders.action(id="a2").dump()
    await lab.awaiting(plan=bent({**plan(), "tier": "safe"}, 1, **second))


@refused("catalogue", "an action's tier, and whether it is real, are what the catalogue says")
async def dangerous_action_called_safe(lab: Lab) -> None:
    drafted = plan(of=[builders.action(ActionType.ROLLBACK_DEPLOY, id="a1")])
    await lab.awaiting(plan=bent({**drafted, "tier": "safe"}, 0, tier="safe"))


@refused("catalogue", "an action's tier, and whether it is real, are what the catalogue says")
async def dry_run_called_real(lab: Lab) -> None:
    await lab.awaiting(plan=bent(plan(of=[builders.action(ActionType.UPDATE_CONFIG, id="a1")]), 0, real=True))


@refused("catalogue", "an action's tier, and whether it is real, are what the catalogue says")
async def real_action_called_dry_run(lab: Lab) -> None:
    await lab.awaiting(plan=bent(plan(), 0, real=False))


@refused("plan-tier", "a plan's tier is the highest of its actions")
async def plan_called_safer_than_it_is(lab: Lab) -> None:
    await lab.awaiting(plan=plan(tier="safe"))


@refused("plan-short", "short is the beginning of the digest")
async def short_of_another_digest(lab: Lab) -> None:
    await lab.awaiting(plan=plan(short="0" * 12))


SWAPPED = {"digest": FOREIGN, "short": "f" * 12}


@refused("plan-changes", "a plan changes only on the way into AwaitingApproval, and its revision rises by one")
async def plan_swapped_while_awaiting(lab: Lab) -> None:
    await lab.put(await lab.awaiting(), plan=plan(**SWAPPED))


@refused("plan-changes", "a plan changes only on the way into AwaitingApproval")
async def action_swapped_under_the_digest(lab: Lab) -> None:
    await lab.put(await lab.awaiting(), plan=bent(plan(), 1, parameters={"REPLICAS": "0"}))


@refused("plan-changes", "a plan changes only on the way into AwaitingApproval")
async def plan_swapped_entering_executing(lab: Lab) -> None:
    other = plan(2, **SWAPPED)
    await lab.go(await lab.awaiting(), "Executing", plan=other, approvals=[approval(of=other)])


@refused("plan-changes", "a plan changes only on the way into AwaitingApproval")
async def plan_dropped_while_executing(lab: Lab) -> None:
    await lab.put(await lab.executing(), plan=None)


@refused("plan-changes", "a plan changes only on the way into AwaitingApproval")
async def plan_before_its_time(lab: Lab) -> None:
    await lab.put(await lab.investigated(), plan=plan())


@refused("plan-changes", "and its revision rises by one")
async def first_plan_is_revision_two(lab: Lab) -> None:
    await lab.awaiting(plan=plan(2))


@refused("plan-changes", "and its revision rises by one")
async def revision_skipped(lab: Lab) -> None:
    await lab.go(await lab.go(await lab.awaiting(), "Investigated"), "AwaitingApproval", plan=plan(3))


@refused("plan-changes", "a plan changes only on the way into AwaitingApproval")
async def same_digest_under_a_new_revision(lab: Lab) -> None:
    again = await lab.go(await lab.awaiting(), "Investigated")
    await lab.go(again, "AwaitingApproval", plan={**plan(), "revision": 2})


@refused("plan-needed", "AwaitingApproval needs a plan")
async def awaiting_without_a_plan(lab: Lab) -> None:
    await lab.awaiting(plan=None)


@refused("plan-new", "a new round needs a new revision")
async def same_plan_proposed_again(lab: Lab) -> None:
    again = await lab.go(await lab.awaiting(), "Investigated")
    await lab.go(again, "AwaitingApproval", plan=again["status"]["plan"])


@refused("plan-evidence", "a plan rests on the evidence that stands")
async def plan_on_other_evidence(lab: Lab) -> None:
    await lab.awaiting(plan=plan(evidenceDigest=FOREIGN))


@refused("guards-change", "guards change only on the way into AwaitingApproval")
async def guards_swapped_while_awaiting(lab: Lab) -> None:
    await lab.put(await lab.awaiting(), guards=[{**GUARDS[0], "generation": 2}])


@refused("guards-change", "guards change only on the way into AwaitingApproval")
async def guards_swapped_entering_executing(lab: Lab) -> None:
    await lab.go(await lab.awaiting(), "Executing", guards=[{**GUARDS[0], "uid": "g2"}])


@refused("guards-needed", "AwaitingApproval needs the guards under which people approve")
async def awaiting_without_guards(lab: Lab) -> None:
    await lab.awaiting(guards=[])


@refused("quorum-changes", "the number of approvals changes only with the plan")
async def quorum_lowered_while_awaiting(lab: Lab) -> None:
    await lab.put(await lab.awaiting(approvalsRequired=2), approvalsRequired=1)


@refused("quorum-changes", "the number of approvals changes only with the plan")
async def quorum_lowered_entering_executing(lab: Lab) -> None:
    await lab.go(await lab.awaiting(approvalsRequired=2), "Executing", approvalsRequired=1)


@refused("quorum-changes", "the number of approvals changes only with the plan")
async def quorum_dropped_entering_executing(lab: Lab) -> None:
    await lab.go(await lab.awaiting(approvalsRequired=2), "Executing", approvalsRequired=None)


@refused("quorum-needed", "AwaitingApproval needs the number of approvals")
async def awaiting_without_a_quorum(lab: Lab) -> None:
    await lab.awaiting(approvalsRequired=None)


@refused(None, "approvalsRequired in body should be greater than or equal to 1")
async def quorum_of_nobody(lab: Lab) -> None:
    await lab.awaiting(approvalsRequired=0)


@refused(None, "should have at least 1 items")
async def plan_without_actions(lab: Lab) -> None:
    await lab.awaiting(plan={**plan(), "actions": [], "tier": "safe"})


@refused(None, "Too many: 5: must have at most 4 items")
async def plan_of_five_actions(lab: Lab) -> None:
    four = plan(of=[builders.action(ActionType.UPDATE_CONFIG, id=f"a{n}") for n in range(4)])
    fifth = builders.action(ActionType.UPDATE_CONFIG, id="a4").dump()
    await lab.awaiting(plan={**four, "actions": [*four["actions"], fifth]})


@allowed
async def plan_of_four_actions(lab: Lab) -> None:
    await lab.awaiting(plan=plan(of=[builders.action(ActionType.UPDATE_CONFIG, id=f"a{n}") for n in range(4)]))


@refused(None, "Duplicate value")
async def action_id_used_twice(lab: Lab) -> None:
    await lab.awaiting(plan=bent(plan(), 1, id=REAL))


@refused(None, "should be less than or equal to 4")
async def fifth_plan(lab: Lab) -> None:
    await lab.awaiting(plan={**plan(), "revision": 5})


@refused(None, 'Unsupported value: "delete_function"')
async def action_outside_the_catalogue(lab: Lab) -> None:
    await lab.awaiting(plan=bent(plan(), 1, type="delete_function"))


@refused(None, "Duplicate value")
async def evidence_id_used_twice(lab: Lab) -> None:
    await lab.go(await lab.triaged(), "Investigated", evidence=[EVIDENCE[0], EVIDENCE[0]])
