"""Every way round every rule, each as one attempt on a real API server, and what the server says to it.

`rule` names the rule that must refuse (None: the schema itself does); `says` is what it says. For every rule there is
at least one case which nothing else refuses: `test_rules.py` drops the rule and sees the case pass.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import Resource
from praxis.api.incident import Incident
from praxis.api.plan import ActionType
from praxis.api.target import RemediationTarget
from tests import builders
from tests.api.lab import (
    ALERT,
    CLASSIFICATION,
    DIAGNOSIS,
    DRY,
    EVIDENCE,
    FOREIGN,
    GUARDS,
    REAL,
    TIME,
    Lab,
    approval,
    bent,
    decided,
    extended,
    holder,
    plan,
    step,
)

Attempt = Callable[[Lab], Awaitable[Any]]


@dataclass(frozen=True)
class Case:
    """An attempt that must be refused."""

    name: str
    rule: str | None
    says: str
    attempt: Attempt
    kind: type[Resource] = Incident


@dataclass(frozen=True)
class Allowed:
    """An attempt that must pass: the rules forbid no more than they say."""

    name: str
    attempt: Attempt


REFUSED: list[Case] = []
ALLOWED: list[Allowed] = []


def refused(rule: str | None, says: str, kind: type[Resource] = Incident) -> Callable[[Attempt], Attempt]:
    """Register a coroutine as a case, under its own name."""

    def register(attempt: Attempt) -> Attempt:
        REFUSED.append(Case(attempt.__name__, rule, says, attempt, kind))
        return attempt

    return register


def allowed(attempt: Attempt) -> Attempt:
    """Register a coroutine as an attempt that passes."""
    ALLOWED.append(Allowed(attempt.__name__, attempt))
    return attempt


# ---- phases ----


@refused("transition", "no transition from Failed to New")
async def back_to_the_beginning(lab: Lab) -> None:
    await lab.go(await lab.at("Failed"), "New")


@refused("transition", "no transition from Triaged to New")
async def wiped_status(lab: Lab) -> None:
    await lab.wipe_status(await lab.triaged())


@refused("phase-time", "entering a phase sets its time")
async def phase_without_its_time(lab: Lab) -> None:
    await lab.go(await lab.new(), "Triaged", phaseTimes={})


@refused("phase-time-keys", "phaseTimes has phases as keys")
async def time_of_no_phase(lab: Lab) -> None:
    await lab.put(await lab.new(), phaseTimes={"Nowhere": TIME})


@refused("closed-reason", "Closed has a reason: SelfResolved, Dismissed, ApprovalExpired, DryRunOnly")
async def closed_for_another_reason(lab: Lab) -> None:
    await lab.go(await lab.new(), "Closed", reason="Tired")


@refused("closed-reason", "Closed has a reason")
async def closed_for_no_reason(lab: Lab) -> None:
    await lab.go(await lab.new(), "Closed", reason=None)


@refused("closed-reason-is-final", "why an incident was closed never changes")
async def closed_reason_changed(lab: Lab) -> None:
    await lab.put(await lab.at("Closed"), reason="ApprovalExpired")


@refused("classified-once", "the classification changes only in New")
async def classified_again(lab: Lab) -> None:
    await lab.put(await lab.triaged(), classification={**CLASSIFICATION, "severity": "low"})


@refused("classified-once", "the classification changes only in New")
async def classification_dropped(lab: Lab) -> None:
    await lab.put(await lab.investigated(), classification=None)


@refused("triaged-needs-classification", "Triaged needs a classification")
async def triaged_unclassified(lab: Lab) -> None:
    await lab.go(await lab.new(), "Triaged", classification=None)


@refused("evidence-gathered-once", "evidence and diagnosis change only in Triaged")
async def evidence_removed(lab: Lab) -> None:
    await lab.put(await lab.awaiting(), evidence=EVIDENCE[:1])


@refused("evidence-gathered-once", "evidence and diagnosis change only in Triaged")
async def evidence_changed(lab: Lab) -> None:
    await lab.put(await lab.awaiting(), evidence=[EVIDENCE[0], {**EVIDENCE[1], "excerpt": "nothing to see"}])


@refused("evidence-gathered-once", "evidence and diagnosis change only in Triaged")
async def evidence_digest_changed(lab: Lab) -> None:
    await lab.put(await lab.awaiting(), evidenceDigest=FOREIGN)


@refused("evidence-gathered-once", "evidence and diagnosis change only in Triaged")
async def diagnosis_changed(lab: Lab) -> None:
    await lab.put(await lab.awaiting(), diagnosis={**DIAGNOSIS, "confidence": "low"})


@refused("investigated-needs-diagnosis", "Investigated needs a diagnosis and the digest of its evidence")
async def investigated_without_diagnosis(lab: Lab) -> None:
    await lab.go(await lab.triaged(), "Investigated", diagnosis=None)


@refused("investigated-needs-diagnosis", "Investigated needs a diagnosis and the digest of its evidence")
async def investigated_without_evidence_digest(lab: Lab) -> None:
    await lab.go(await lab.triaged(), "Investigated", evidenceDigest=None)


@refused("corrections-append-only", "corrections never change and are never dropped")
async def correction_replaced(lab: Lab) -> None:
    again = await lab.go(await lab.awaiting(), "Investigated", corrections=["smaller"])
    await lab.go(await lab.go(again, "AwaitingApproval"), "Investigated", corrections=["larger", "smaller"])


@refused("corrections-append-only", "corrections never change and are never dropped")
async def correction_dropped(lab: Lab) -> None:
    again = await lab.go(await lab.awaiting(), "Investigated", corrections=["smaller"])
    await lab.go(await lab.go(again, "AwaitingApproval"), "Investigated", corrections=[])


@refused("corrections-by-people", "corrections are added only on the way back into Investigated")
async def correction_while_awaiting(lab: Lab) -> None:
    await lab.put(await lab.awaiting(), corrections=["smaller"])


@refused("usage-only-grows", "what the models have cost only grows")
async def tokens_forgotten(lab: Lab) -> None:
    await lab.put(await lab.put(await lab.new(), usage={"inputTokens": 10}), usage={"inputTokens": 9})


@refused("usage-only-grows", "what the models have cost only grows")
async def money_forgotten(lab: Lab) -> None:
    await lab.put(await lab.put(await lab.new(), usage={"costMicroUSD": 10}), usage={"costMicroUSD": 9})


@refused("usage-only-grows", "what the models have cost only grows")
async def usage_dropped(lab: Lab) -> None:
    await lab.put(await lab.put(await lab.new(), usage={"modelCalls": 1}), usage=None)


# ---- trail ----


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


# ---- plan ----


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


# ---- the door ----


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


# ---- steps ----


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


# ---- the spec, and what it allows the status ----


@refused("source-is-final", "where an incident came from never changes")
async def authentication_claimed_later(lab: Lab) -> None:
    stored = await lab.new()
    await lab.merge(stored, source={**stored["spec"]["source"], "authentication": "hmac"})


@refused("resolved-when-clear", "not Resolved while an alert fires")
async def resolved_while_firing(lab: Lab) -> None:
    await lab.go(await lab.observing(), "Resolved")


@refused("resolved-when-clear", "not Resolved while an alert fires")
async def resolved_after_a_refire_was_merged(lab: Lab) -> None:
    await lab.go(await lab.alerts(await lab.cleared(), "firing"), "Resolved")


@refused("resolved-when-clear", "not Resolved while an alert fires")
async def resolved_while_one_of_two_fires(lab: Lab) -> None:
    await lab.go(await lab.alerts(await lab.observing(), "resolved", "firing"), "Resolved")


@refused("resolved-when-clear", "truncated alerts never count as cleared")
async def resolved_with_truncated_alerts(lab: Lab) -> None:
    await lab.go(await lab.merge(await lab.cleared(), truncatedAlerts=1), "Resolved")


@refused("self-resolved-when-clear", "not SelfResolved while an alert fires")
async def self_resolved_while_firing(lab: Lab) -> None:
    await lab.go(await lab.new(), "Closed", reason="SelfResolved")


@refused("self-resolved-when-clear", "truncated alerts never count as cleared")
async def self_resolved_with_truncated_alerts(lab: Lab) -> None:
    stored = await lab.merge(await lab.alerts(await lab.triaged(), "resolved"), truncatedAlerts=1)
    await lab.go(stored, "Closed", reason="SelfResolved")


@allowed
async def self_resolved_when_clear(lab: Lab) -> None:
    await lab.go(await lab.alerts(await lab.triaged(), "resolved"), "Closed", reason="SelfResolved")


@refused("intent-when-firing", "no intent when nothing fires")
async def intent_when_nothing_fires(lab: Lab) -> None:
    await lab.put(await lab.alerts(await lab.executing(), "resolved"), steps=[step(REAL)])


@allowed
async def intent_with_truncated_alerts_only(lab: Lab) -> None:
    stored = await lab.merge(await lab.alerts(await lab.executing(), "resolved"), truncatedAlerts=1)
    await lab.put(stored, steps=[step(REAL)])


@allowed
async def outcome_stored_though_the_alert_cleared_meanwhile(lab: Lab) -> None:
    await lab.put(await lab.alerts(await lab.intent(), "resolved"), steps=[step(REAL, "Applied")])


@refused("ended-episode", "an ended episode takes no more alerts: every alert of it had cleared")
async def refire_merged_into_an_ended_episode(lab: Lab) -> None:
    await lab.alerts(await lab.at("Resolved"), "firing")


@refused("ended-episode", "an ended episode takes no more alerts: every alert of it had cleared")
async def refire_merged_into_a_reconciled_end(lab: Lab) -> None:
    stored = await lab.alerts(await lab.at("ReconciliationRequired"), "resolved")
    await lab.alerts(stored, "firing")


@refused("ended-episode", "an ended episode takes no more alerts: every alert of it had cleared")
async def refire_merged_into_a_dismissed_and_cleared_episode(lab: Lab) -> None:
    await lab.alerts(await lab.alerts(await lab.at("Closed"), "resolved"), "firing")


@refused("lapsed-episode", "an incident that failed or lapsed takes no more firing alerts")
async def alert_joins_a_failed_incident(lab: Lab) -> None:
    await lab.alerts(await lab.at("Failed"), "firing", "firing")


@refused("lapsed-episode", "an incident that failed or lapsed takes no more firing alerts")
async def alert_joins_an_expired_incident(lab: Lab) -> None:
    ended = await lab.go(await lab.awaiting(), "Closed", reason="ApprovalExpired")
    await lab.alerts(ended, "firing", "firing")


@refused("lapsed-episode", "an incident that failed or lapsed takes no more firing alerts")
async def alert_joins_a_dry_run(lab: Lab) -> None:
    ended = await lab.go(await lab.dry_only(), "Closed", reason="DryRunOnly")
    await lab.alerts(ended, "firing", "firing")


@refused("lapsed-episode", "an incident that failed or lapsed takes no more firing alerts")
async def truncated_alerts_join_a_failed_incident(lab: Lab) -> None:
    await lab.merge(await lab.at("Failed"), truncatedAlerts=3)


@allowed
async def alert_of_a_failed_incident_clears(lab: Lab) -> None:
    await lab.alerts(await lab.at("Failed"), "resolved")


@allowed
async def repeat_joins_a_dismissed_incident_that_fires_on(lab: Lab) -> None:
    await lab.alerts(await lab.at("Closed"), "firing", "firing")


@allowed
async def alert_joins_an_incident_that_waits_to_be_reconciled(lab: Lab) -> None:
    await lab.alerts(await lab.at("ReconciliationRequired"), "firing", "firing")


@refused(None, "spec.alerts[0].startsAt in body must be of type date-time")
async def alert_that_began_on_no_day(lab: Lab) -> None:
    await lab.new(alerts=[{**ALERT, "startsAt": "2026-02-30T12:00:00Z"}])


@refused(None, "should have at least 1 items")
async def incident_without_alerts(lab: Lab) -> None:
    await lab.new(alerts=[])


@refused(None, "must have at most 64 items")
async def one_alert_too_many(lab: Lab) -> None:
    await lab.new(alerts=[{**ALERT, "fingerprint": f"f{n}"} for n in range(65)])


@allowed
async def as_many_alerts_as_fit(lab: Lab) -> None:
    await lab.new(alerts=[{**ALERT, "fingerprint": f"f{n}"} for n in range(64)])


# ---- approvals and reconciliations ----

VERDICT = {"verdict": "Refused", "reason": "Expired", "message": "too late"}


@refused("approval-is-final", "an approval never changes", IncidentApproval)
async def decision_changed(lab: Lab) -> None:
    await lab.patch_spec(await lab.decision(), IncidentApproval, decision="Dismiss")


@refused("approval-is-final", "an approval never changes", IncidentApproval)
async def expiry_respelled(lab: Lab) -> None:
    stored = await lab.decision(expiresAt="2026-01-31T12:00:00Z")
    await lab.patch_spec(stored, IncidentApproval, expiresAt="2026-01-31T12:00:00.0Z")


@refused("approval-expires", "spec.expiresAt", IncidentApproval)
async def expires_on_no_day(lab: Lab) -> None:
    await lab.decision(expiresAt="2026-02-31T12:00:00Z")


@refused(None, "spec.expiresAt in body should match", IncidentApproval)
async def expires_some_day(lab: Lab) -> None:
    await lab.decision(expiresAt="tomorrow")


@refused("revise-says-what", "Revise says what to change: in corrections, or as the reason", IncidentApproval)
async def revise_without_a_word(lab: Lab) -> None:
    await lab.decision(decision="Revise", reason="", corrections=[""])


@refused("verdict-is-final", "a verdict is final", IncidentApproval)
async def refusal_turned_into_acceptance(lab: Lab) -> None:
    stored = await lab.write_status(await lab.decision(), VERDICT, IncidentApproval)
    await lab.write_status(stored, {**VERDICT, "verdict": "Accepted"}, IncidentApproval)


@refused("verdict-is-final", "a verdict is final", IncidentApproval)
async def refusal_wiped(lab: Lab) -> None:
    stored = await lab.write_status(await lab.decision(), VERDICT, IncidentApproval)
    await lab.wipe_status(stored, IncidentApproval)


@refused("verdict-is-final", "a verdict is final", IncidentApproval)
async def refused_for_another_reason(lab: Lab) -> None:
    stored = await lab.write_status(await lab.decision(), VERDICT, IncidentApproval)
    await lab.write_status(stored, {**VERDICT, "reason": "Overruled"}, IncidentApproval)


@refused("verdict-says-why", "a verdict says why", IncidentApproval)
async def verdict_without_a_word(lab: Lab) -> None:
    await lab.write_status(await lab.decision(), {"verdict": "Refused"}, IncidentApproval)


@refused(None, "spec.signature in body should match", IncidentApproval)
async def signature_that_is_none(lab: Lab) -> None:
    await lab.decision(signature="trust me")


@refused("reconciliation-is-final", "a reconciliation never changes", IncidentReconciliation)
async def finding_changed(lab: Lab) -> None:
    await lab.patch_spec(await lab.finding(), IncidentReconciliation, observed="NotApplied")


@refused("verdict-is-final", "a verdict is final", IncidentReconciliation)
async def refused_finding_accepted(lab: Lab) -> None:
    stored = await lab.write_status(await lab.finding(), VERDICT, IncidentReconciliation)
    await lab.write_status(stored, {**VERDICT, "verdict": "Accepted"}, IncidentReconciliation)


@refused("verdict-says-why", "a verdict says why", IncidentReconciliation)
async def finding_refused_without_a_word(lab: Lab) -> None:
    await lab.write_status(await lab.finding(), {"verdict": "Refused"}, IncidentReconciliation)


@allowed
async def verdict_given_once(lab: Lab) -> None:
    await lab.write_status(await lab.decision(), VERDICT, IncidentApproval)


# ---- targets ----


@refused("target-is-final", "a target never changes; declare another one", RemediationTarget)
async def target_pointed_elsewhere(lab: Lab) -> None:
    await lab.patch_spec(await lab.target(), RemediationTarget, functionCompute={"function": "billing"})


@refused("target-is-final", "a target never changes; declare another one", RemediationTarget)
async def target_made_disposable(lab: Lab) -> None:
    await lab.patch_spec(await lab.target(), RemediationTarget, disposable=False)


@refused("plain-http-on-loopback", "http only on loopback", RemediationTarget)
async def plain_http_into_the_world(lab: Lab) -> None:
    await lab.target(endpoint="http://fc.example.com")


@refused("plain-http-on-loopback", "http only on loopback", RemediationTarget)
async def plain_http_to_a_host_that_looks_like_loopback(lab: Lab) -> None:
    await lab.target(endpoint="http://127.0.0.1.example.com")


@allowed
async def https_into_the_world(lab: Lab) -> None:
    await lab.target(endpoint="https://fc.example.com")


@refused(None, 'Unsupported value: "v1": supported values: "LATEST"', RemediationTarget)
async def target_with_a_published_version(lab: Lab) -> None:
    await lab.target(qualifier="v1")


@refused("claimed-anew", "a holder changes only by another claim", RemediationTarget)
async def holder_changed_under_its_intent(lab: Lab) -> None:
    held = await lab.held()
    await lab.write_status(held, {"holder": holder(writer="writer-b")}, RemediationTarget)


@allowed
async def target_claimed_over_a_former_claim(lab: Lab) -> None:
    await lab.write_status(await lab.held(), {"holder": holder("intent-00000002")}, RemediationTarget)


@allowed
async def target_released(lab: Lab) -> None:
    await lab.write_status(await lab.held(), {}, RemediationTarget)
