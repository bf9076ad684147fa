"""Round intents and outcomes: what is final, what needs which proof, one real action for each revision."""

from __future__ import annotations

from tests.api.cases.contract import allowed, refused
from tests.api.lab import (
    DRY,
    REAL,
    Lab,
    decided,
    step,
)


@refused("step-stays", "a step is never removed")
async def step_traded_for_another(lab: Lab) -> None:
    first = await lab.put(await lab.executing(), steps=[step(DRY, "DryRun")])
    again = await lab.go(await lab.go(await lab.go(first, "Investigated"), "AwaitingApproval"), "Executing")
    await lab.put(again, "Decided", steps=[step(DRY, "DryRun", revision=2)])


@refused("step-stays", "a step is never removed")
async def step_dropped(lab: Lab) -> None:
    await lab.put(await lab.intent(), "Decided", steps=[])


@refused("intent-is-final", "an intent never changes")
async def intent_changed(lab: Lab) -> None:
    await lab.put(await lab.intent(), "Decided", steps=[step(REAL, intent_id="intent-other")])


@refused("intent-is-final", "an intent never changes")
async def intent_changed_with_its_outcome(lab: Lab) -> None:
    await lab.put(await lab.intent(), steps=[step(REAL, "Applied", intent_id="intent-other")])


@refused("intent-is-final", "an intent never changes")
async def intent_dropped(lab: Lab) -> None:
    await lab.put(await lab.intent(), "Decided", steps=[step(REAL, intent=False)])


@refused("outcome-is-final", "an outcome never changes")
async def outcome_changed(lab: Lab) -> None:
    await lab.put(await lab.outcome("Unknown"), "Decided", steps=[step(REAL, "Applied"), step(DRY, "DryRun")])


@refused("outcome-is-final", "an outcome never changes")
async def outcome_dropped(lab: Lab) -> None:
    await lab.put(await lab.outcome("Unknown"), "Decided", steps=[step(REAL), step(DRY, "DryRun")])


@refused("dry-run-without-intent", "a dry run has no intent, any other outcome has one")
async def dry_run_of_an_intent(lab: Lab) -> None:
    await lab.put(await lab.intent(), steps=[step(REAL, "DryRun", intent=True)])


@refused("dry-run-without-intent", "a dry run has no intent, any other outcome has one")
async def applied_without_an_intent(lab: Lab) -> None:
    await lab.put(await lab.executing(), steps=[step(REAL, "Applied", intent=False)])


@refused("applied-proof", "Applied needs a proof")
async def applied_without_proof(lab: Lab) -> None:
    await lab.put(await lab.intent(), steps=[step(REAL, "Applied", proof="")])


@refused("not-applied-by-writer", "only the process that wrote an intent may conclude NotApplied")
async def not_applied_concluded_by_another(lab: Lab) -> None:
    await lab.put(await lab.intent(), steps=[step(REAL, "NotApplied", concluded_by="writer-b")])


@allowed
async def unknown_concluded_by_another(lab: Lab) -> None:
    await lab.put(await lab.intent(), steps=[step(REAL, "Unknown", concluded_by="writer-b")])


@allowed
async def applied_proven_by_another(lab: Lab) -> None:
    await lab.put(await lab.intent(), steps=[step(REAL, "Applied", concluded_by="writer-b")])


@refused("one-open-intent", "one open intent at most, and none outside Executing")
async def investigated_with_an_open_intent(lab: Lab) -> None:
    await lab.go(await lab.intent(), "Investigated")


@refused("one-open-intent", "one open intent at most, and none outside Executing")
async def observing_with_an_open_intent(lab: Lab) -> None:
    await lab.go(await lab.intent(), "Observing")


@refused("steps-change", "steps change only from Executing")
async def dry_run_while_awaiting(lab: Lab) -> None:
    await lab.put(await lab.awaiting(), steps=[step(DRY, "DryRun")])


@refused("steps-change", "steps change only from Executing")
async def intent_while_awaiting(lab: Lab) -> None:
    await lab.put(await lab.awaiting(), steps=[step(REAL)])


@refused("steps-change", "steps change only from Executing")
async def intent_on_entering_executing(lab: Lab) -> None:
    stored = await lab.awaiting()
    await lab.go(stored, "Executing", decided("alice"), steps=[step(REAL)])


@refused("steps-change", "for actions of the approved revision")
async def intent_of_another_revision(lab: Lab) -> None:
    await lab.put(await lab.executing(), steps=[step(REAL, revision=2)])


@refused("steps-change", "for actions of the approved revision")
async def intent_of_the_former_revision(lab: Lab) -> None:
    again = await lab.second_round()
    await lab.put(again, steps=[*again["status"]["steps"], step("third", revision=1)])


@refused("steps-change", "for actions of the approved revision")
async def intent_for_a_dry_run_action(lab: Lab) -> None:
    await lab.put(await lab.executing(), steps=[step(DRY)])


@refused("steps-change", "for actions of the approved revision")
async def action_outside_the_plan(lab: Lab) -> None:
    await lab.put(await lab.executing(), steps=[step("elsewhere")])


@refused("steps-change", "for actions of the approved revision")
async def dry_run_of_the_real_action(lab: Lab) -> None:
    await lab.put(await lab.executing(), steps=[step(REAL, "DryRun")])


@refused("steps-change", "or the outcome of a stored intent")
async def intent_and_outcome_in_one_write(lab: Lab) -> None:
    await lab.put(await lab.executing(), steps=[step(REAL, "Applied")])


@refused("steps-change", "steps change only from Executing, with a trail entry")
async def intent_without_a_trail_entry(lab: Lab) -> None:
    stored = await lab.executing()
    await lab.put(stored, steps=[step(REAL)], trail=stored["status"]["trail"])


@refused("steps-change", "steps change only from Executing")
async def step_before_executing(lab: Lab) -> None:
    await lab.put(await lab.new(), steps=[step(DRY, "DryRun")])


@refused("steps-change", "steps change only from Executing")
async def step_after_the_end(lab: Lab) -> None:
    ended = await lab.at("Resolved")
    await lab.put(ended, steps=[*ended["status"]["steps"], step("late", "DryRun")])


@refused(None, "Duplicate value")
async def step_written_twice(lab: Lab) -> None:
    await lab.put(await lab.executing(), steps=[step(REAL), step(REAL)])


@refused("intent-id-once", "an intent id is used once")
async def intent_id_used_again(lab: Lab) -> None:
    again = await lab.second_round()
    used = step(REAL, revision=2, intent_id=f"intent-1-{REAL}")
    await lab.put(again, steps=[*again["status"]["steps"], used])


@allowed
async def intent_of_the_second_round(lab: Lab) -> None:
    again = await lab.second_round()
    await lab.put(again, steps=[*again["status"]["steps"], step(REAL, revision=2)])


@refused("observing-needs-applied", "Observing needs every action applied or dry-run, and one applied")
async def observing_after_not_applied(lab: Lab) -> None:
    await lab.go(await lab.outcome("NotApplied"), "Observing")


@refused("observing-needs-applied", "Observing needs every action applied or dry-run, and one applied")
async def observing_after_unknown(lab: Lab) -> None:
    await lab.go(await lab.outcome("Unknown"), "Observing")


@refused("observing-needs-applied", "Observing needs every action applied or dry-run, and one applied")
async def observing_with_an_action_left(lab: Lab) -> None:
    await lab.go(await lab.put(await lab.intent(), steps=[step(REAL, "Applied")]), "Observing")


@refused("observing-needs-applied", "Observing needs every action applied or dry-run, and one applied")
async def observing_after_dry_runs(lab: Lab) -> None:
    await lab.go(await lab.dry_only(), "Observing")


@refused("observing-needs-applied", "Observing needs every action applied or dry-run, and one applied")
async def observing_on_what_the_former_plan_applied(lab: Lab) -> None:
    former = await lab.go(await lab.observing(), "Investigated")
    await lab.go(await lab.go(await lab.go(former, "AwaitingApproval"), "Executing"), "Observing")


@refused("reconciliation-needs-unknown", "ReconciliationRequired needs an unknown outcome")
async def reconciliation_without_unknown(lab: Lab) -> None:
    await lab.go(await lab.outcome("Applied"), "ReconciliationRequired")


@refused("no-walking-back", "what was applied or unknown cannot be walked back")
async def investigated_after_applied(lab: Lab) -> None:
    await lab.go(await lab.outcome("Applied"), "Investigated")


@refused("no-walking-back", "what was applied or unknown cannot be walked back")
async def investigated_after_unknown(lab: Lab) -> None:
    await lab.go(await lab.outcome("Unknown"), "Investigated")


@refused("no-walking-back", "what was applied or unknown cannot be walked back")
async def closed_after_unknown(lab: Lab) -> None:
    await lab.go(await lab.outcome("Unknown"), "Closed")


@refused("closed-before-intent", "Executing is closed only before an intent")
async def closed_after_not_applied(lab: Lab) -> None:
    await lab.go(await lab.outcome("NotApplied"), "Closed")


@refused("dry-run-only", "DryRunOnly needs a dry run of every action")
async def dry_run_only_of_nothing(lab: Lab) -> None:
    await lab.go(await lab.new(), "Closed", reason="DryRunOnly")


@refused("dry-run-only", "DryRunOnly needs a dry run of every action")
async def dry_run_only_with_the_real_action_left(lab: Lab) -> None:
    stored = await lab.put(await lab.executing(), steps=[step(DRY, "DryRun")])
    await lab.go(stored, "Closed", reason="DryRunOnly")


@allowed
async def closed_after_dry_runs(lab: Lab) -> None:
    await lab.go(await lab.dry_only(), "Closed", reason="DryRunOnly")


@allowed
async def outcome_and_end_in_one_write(lab: Lab) -> None:
    await lab.go(await lab.intent(), "ReconciliationRequired", steps=[step(REAL, "Unknown")])
