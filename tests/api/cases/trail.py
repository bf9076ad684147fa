"""Round the trail: entries altered, dropped, out of order, or missing for what happened."""

from __future__ import annotations

from tests.api.cases.contract import allowed, refused
from tests.api.lab import (
    FOREIGN,
    REAL,
    TIME,
    Lab,
    decided,
    extended,
    step,
)


@refused("trail-append-only", "trail entries never change and are never dropped")
async def trail_entry_changed(lab: Lab) -> None:
    stored = await lab.triaged()
    await lab.put(stored, trail=[{**stored["status"]["trail"][0], "actor": "somebody else"}])


@refused("trail-append-only", "trail entries never change and are never dropped")
async def trail_entry_respelled(lab: Lab) -> None:
    stored = await lab.triaged()
    await lab.put(stored, trail=[{**stored["status"]["trail"][0], "time": "2026-01-31T12:00:00Z"}])


@refused("trail-append-only", "trail entries never change and are never dropped")
async def trail_emptied(lab: Lab) -> None:
    await lab.put(await lab.triaged(), trail=[])


@refused("trail-append-only", "trail entries never change and are never dropped")
async def trail_cut(lab: Lab) -> None:
    stored = await lab.investigated()
    await lab.put(stored, trail=stored["status"]["trail"][:1])


@refused("trail-linked", "trail entries are numbered from 0 and linked")
async def trail_unlinked(lab: Lab) -> None:
    stored = await lab.triaged()
    trail = extended(stored, "Decided")
    await lab.put(stored, trail=[*trail[:-1], {**trail[-1], "prev": FOREIGN}])


@refused("trail-linked", "trail entries are numbered from 0 and linked")
async def trail_number_skipped(lab: Lab) -> None:
    stored = await lab.triaged()
    await lab.put(stored, trail=extended(stored, {"kind": "Decided", "seq": 2}))


@refused("trail-linked", "trail entries are numbered from 0 and linked")
async def trail_number_used_twice(lab: Lab) -> None:
    stored = await lab.triaged()
    entry = extended(stored, "Decided")[-1]
    await lab.put(stored, trail=[*stored["status"]["trail"], entry, {**entry, "hash": FOREIGN}])


@refused("trail-linked", "trail entries are numbered from 0 and linked")
async def trail_renumbered(lab: Lab) -> None:
    stored = await lab.triaged()
    await lab.put(stored, trail=[{**stored["status"]["trail"][0], "seq": 1}])


@refused("head", "head is the hash of the last entry")
async def stale_head(lab: Lab) -> None:
    await lab.put(await lab.triaged(), head=FOREIGN)


@refused("head", "head is the hash of the last entry")
async def no_head(lab: Lab) -> None:
    await lab.put(await lab.triaged(), head=None)


@refused("head", "head is the hash of the last entry")
async def head_of_no_trail(lab: Lab) -> None:
    await lab.put(await lab.new(), head=FOREIGN)


@refused("transition-recorded", "a transition leaves a trail entry")
async def silent_transition(lab: Lab) -> None:
    await lab.go(await lab.new(), "Triaged", trail=[])


@refused("transition-recorded", "a transition leaves a trail entry")
async def transition_recorded_as_something_else(lab: Lab) -> None:
    stored = await lab.new()
    await lab.go(stored, "Triaged", trail=extended(stored, "Decided", phase="Triaged"))


@refused("transition-recorded", "nothing else leaves one that says PhaseChanged")
async def transition_recorded_that_was_none(lab: Lab) -> None:
    await lab.put(await lab.triaged(), "PhaseChanged")


@refused("trail-phase", "the last trail entry names the phase")
async def transition_recorded_to_another_phase(lab: Lab) -> None:
    stored = await lab.new()
    await lab.go(stored, "Triaged", trail=extended(stored, "PhaseChanged", phase="Resolved"))


@refused("intents-recorded", "every intent has its trail entry")
async def intent_recorded_as_something_else(lab: Lab) -> None:
    stored = await lab.executing()
    await lab.put(stored, steps=[step(REAL)], trail=extended(stored, "Decided"))


@refused("intents-recorded", "every such entry its intent")
async def intent_recorded_that_is_none(lab: Lab) -> None:
    await lab.put(await lab.executing(), "IntentRecorded")


@refused("outcomes-recorded", "every outcome has its trail entry")
async def outcome_recorded_as_something_else(lab: Lab) -> None:
    stored = await lab.intent()
    await lab.put(stored, steps=[step(REAL, "Applied")], trail=extended(stored, "Decided"))


@refused("outcomes-recorded", "every such entry its outcome")
async def outcome_recorded_that_is_none(lab: Lab) -> None:
    await lab.put(await lab.intent(), "OutcomeRecorded")


@refused("decisions-recorded", "every approver's decision has its trail entry")
async def approver_missing_in_the_trail(lab: Lab) -> None:
    await lab.go(await lab.awaiting(), "Executing", decided("bob"))


@refused("decisions-recorded", "every approver's decision has its trail entry")
async def approver_recorded_for_an_earlier_plan(lab: Lab) -> None:
    again = await lab.go(await lab.executing(), "Investigated")
    await lab.go(await lab.go(again, "AwaitingApproval"), "Executing", decided("bob"))


@refused("reconciled-once", "one reconciliation at most, and only in ReconciliationRequired")
async def reconciled_twice(lab: Lab) -> None:
    await lab.put(await lab.at("ReconciliationRequired"), "Reconciled", "Reconciled")


@refused("reconciled-once", "one reconciliation at most, and only in ReconciliationRequired")
async def reconciled_in_another_phase(lab: Lab) -> None:
    await lab.put(await lab.observing(), "Reconciled")


RECONCILED = {
    "type": "Reconciled",
    "status": "True",
    "reason": "Reconciled",
    "message": "",
    "lastTransitionTime": TIME,
    "observedGeneration": 1,
}


@refused("reconciled-condition", "reconciled only by a finding that the trail records")
async def reconciled_by_nobody(lab: Lab) -> None:
    await lab.put(await lab.at("ReconciliationRequired"), conditions=[RECONCILED])


@allowed
async def reconciled_by_a_finding(lab: Lab) -> None:
    await lab.put(await lab.at("ReconciliationRequired"), "Reconciled", conditions=[RECONCILED])


@allowed
async def a_decision_recorded_without_a_transition(lab: Lab) -> None:
    await lab.put(await lab.triaged(), "Decided")
