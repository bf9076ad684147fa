"""Round the one door into Executing, and the approvals that it binds."""

from __future__ import annotations

from tests import builders
from tests.api.cases.contract import allowed, refused
from tests.api.lab import (
    FOREIGN,
    Lab,
    approval,
    decided,
)


@refused("approvals-bound", "approvals are bound only on the way into Executing")
async def approval_before_the_door(lab: Lab) -> None:
    stored = await lab.awaiting()
    await lab.put(stored, approvals=[approval(of=stored["status"]["plan"])])


@refused("approvals-bound", "approvals are bound only on the way into Executing")
async def approval_swapped_while_executing(lab: Lab) -> None:
    stored = await lab.executing()
    await lab.put(stored, approvals=[approval("eve", of=stored["status"]["plan"])])


@refused("approvals-needed", "Executing needs approvals of this very plan that were never used before")
async def no_approval(lab: Lab) -> None:
    await lab.go(await lab.awaiting(), "Executing", approvals=[])


@refused("approvals-needed", "Executing needs approvals of this very plan")
async def approval_of_another_plan(lab: Lab) -> None:
    stored = await lab.awaiting()
    await lab.go(stored, "Executing", approvals=[approval(of={**stored["status"]["plan"], "digest": FOREIGN})])


@refused("approvals-needed", "that were never used before")
async def old_approval_for_a_new_plan(lab: Lab) -> None:
    again = await lab.go(await lab.go(await lab.outcome("NotApplied"), "Investigated"), "AwaitingApproval")
    await lab.go(again, "Executing", decided("alice"), approvals=again["status"]["approvals"])


@refused("approvals-needed", "that were never used before")
async def old_approval_with_a_new_digest(lab: Lab) -> None:
    again = await lab.go(await lab.go(await lab.outcome("NotApplied"), "Investigated"), "AwaitingApproval")
    used = {**again["status"]["approvals"][0], "planDigest": again["status"]["plan"]["digest"]}
    await lab.go(again, "Executing", approvals=[used])


@refused("approvals-needed", "that were never used before")
async def one_of_two_approvals_used_before(lab: Lab) -> None:
    again = await lab.go(await lab.go(await lab.outcome("NotApplied"), "Investigated"), "AwaitingApproval")
    drafted = again["status"]["plan"]
    used = {**again["status"]["approvals"][0], "planDigest": drafted["digest"]}
    await lab.go(again, "Executing", approvals=[approval("bob", of=drafted), used])


@refused("approvers-distinct", "approvals come from distinct people")
async def one_person_twice(lab: Lab) -> None:
    stored = await lab.awaiting(approvalsRequired=2)
    drafted = stored["status"]["plan"]
    await lab.go(stored, "Executing", approvals=[approval(of=drafted), approval(of=drafted, uid="another")])


@refused("approvals-of-people", "only people approve")
async def approved_by_the_operator_itself(lab: Lab) -> None:
    stored = await lab.awaiting()
    await lab.go(stored, "Executing", approvals=[approval(builders.OPERATOR, of=stored["status"]["plan"])])


@refused("quorum-reached", "Executing needs as many approvals as the plan asks for")
async def one_approval_of_two(lab: Lab) -> None:
    await lab.go(await lab.awaiting(approvalsRequired=2), "Executing")


@allowed
async def two_approvals_of_two(lab: Lab) -> None:
    stored = await lab.awaiting(approvalsRequired=2)
    drafted = stored["status"]["plan"]
    await lab.go(stored, "Executing", approvals=[approval(of=drafted), approval("bob", of=drafted)])
