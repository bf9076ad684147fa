"""What holds of the plan, of the door into Executing, and of the steps that carry it out."""

from __future__ import annotations

from praxis.api.incident import Result
from praxis.api.plan import REAL, TIERS, Tier
from praxis.api.reasons import Reason
from praxis.api.rules.vocabulary import (
    CURRENT,
    PROPOSING,
    Rule,
    entering,
    leaving,
    literal,
    result_in,
    unchanged,
)
from praxis.machine import Phase

PLAN = (
    Rule(
        "one-real-action",
        "status.plan.actions",
        "self.filter(a, a.real).size() <= 1",
        "one real action at most",
    ),
    Rule(
        "catalogue",
        "status.plan.actions",
        "self.all(a, a.real == (a.type in "
        + literal(sorted(REAL))
        + ") && a.tier == {"
        + ", ".join(f"'{kind}': '{tier}'" for kind, tier in TIERS.items())
        + "}[a.type])",
        "an action's tier, and whether it is real, are what the catalogue says",
    ),
    Rule(
        "plan-tier",
        "status.plan",
        f"self.tier == (self.actions.exists(a, a.tier == '{Tier.DANGEROUS}') ? '{Tier.DANGEROUS}'"
        f" : self.actions.exists(a, a.tier == '{Tier.CAUTION}') ? '{Tier.CAUTION}' : '{Tier.SAFE}')",
        "a plan's tier is the highest of its actions",
    ),
    Rule(
        "plan-short",
        "status.plan",
        "self.digest.startsWith('sha256:' + self.short)",
        "short is the beginning of the digest",
    ),
    Rule(
        "plan-changes",
        "status",
        "has(self.plan) ? (has(oldSelf.plan) && self.plan == oldSelf.plan) || "
        f"({PROPOSING} && self.plan.revision == (has(oldSelf.plan) ? oldSelf.plan.revision + 1 : 1)"
        " && (!has(oldSelf.plan) || self.plan.digest != oldSelf.plan.digest)) : !has(oldSelf.plan)",
        "a plan changes only on the way into AwaitingApproval, and its revision rises by one",
    ),
    Rule(
        "plan-needed",
        "status",
        f"self.phase != '{Phase.AWAITING_APPROVAL}' || has(self.plan)",
        "AwaitingApproval needs a plan",
    ),
    Rule(
        "plan-new",
        "status",
        f"!{PROPOSING} || !has(oldSelf.plan) || !has(self.plan) || self.plan.revision > oldSelf.plan.revision",
        "a new round needs a new revision",
    ),
    Rule(
        "plan-evidence",
        "status",
        f"!has(self.plan) || ({unchanged('plan')})"
        " || (has(self.evidenceDigest) && self.plan.evidenceDigest == self.evidenceDigest)",
        "a plan rests on the evidence that stands",
    ),
    Rule(
        "guards-change",
        "status",
        f"self.guards == oldSelf.guards || {PROPOSING}",
        "guards change only on the way into AwaitingApproval",
    ),
    Rule(
        "guards-needed",
        "status",
        f"self.phase != '{Phase.AWAITING_APPROVAL}' || self.guards.size() > 0",
        "AwaitingApproval needs the guards under which people approve",
    ),
    Rule(
        "quorum-changes",
        "status",
        f"{unchanged('approvalsRequired')} || {PROPOSING}",
        "the number of approvals changes only with the plan",
    ),
    Rule(
        "quorum-needed",
        "status",
        f"self.phase != '{Phase.AWAITING_APPROVAL}' || has(self.approvalsRequired)",
        "AwaitingApproval needs the number of approvals",
    ),
)

DOOR = (
    Rule(
        "approvals-bound",
        "status",
        f"self.approvals == oldSelf.approvals || {leaving(Phase.AWAITING_APPROVAL, Phase.EXECUTING)}",
        "approvals are bound only on the way into Executing",
    ),
    Rule(
        "approvals-needed",
        "status",
        f"!{entering(Phase.EXECUTING)} || (has(self.plan) && self.approvals.size() > 0"
        " && self.approvals.all(a, a.planDigest == self.plan.digest"
        " && !oldSelf.approvals.exists(o, o.uid == a.uid)))",
        "Executing needs approvals of this very plan that were never used before",
    ),
    Rule(
        "approvers-distinct",
        "status.approvals",
        "self.all(a, self.exists_one(b, b.approver == a.approver))",
        "approvals come from distinct people",
    ),
    Rule(
        "approvals-of-people",
        "status.approvals",
        "self.all(a, !a.approver.startsWith('system:'))",
        "only people approve",
    ),
    Rule(
        "quorum-reached",
        "status",
        f"!{entering(Phase.EXECUTING)} || !has(self.approvalsRequired)"
        " || self.approvals.size() >= self.approvalsRequired",
        "Executing needs as many approvals as the plan asks for",
    ),
)

STEPS = (
    Rule(
        "step-stays",
        "status.steps",
        "oldSelf.all(o, self.exists(s, s.revision == o.revision && s.action == o.action))",
        "a step is never removed",
    ),
    Rule(
        "intent-is-final",
        "status.steps[]",
        "!has(oldSelf.intent) || (has(self.intent) && self.intent == oldSelf.intent)",
        "an intent never changes",
    ),
    Rule(
        "outcome-is-final",
        "status.steps[]",
        "!has(oldSelf.outcome) || (has(self.outcome) && self.outcome == oldSelf.outcome)",
        "an outcome never changes",
    ),
    Rule(
        "dry-run-without-intent",
        "status.steps",
        f"self.all(s, !has(s.outcome) || has(s.intent) == (s.outcome.result != '{Result.DRY_RUN}'))",
        "a dry run has no intent, any other outcome has one",
    ),
    Rule(
        "applied-proof",
        "status.steps",
        f"self.all(s, !{result_in(Result.APPLIED)} || s.outcome.proof != '')",
        "Applied needs a proof",
    ),
    Rule(
        "not-applied-by-writer",
        "status.steps",
        f"self.all(s, !{result_in(Result.NOT_APPLIED)} || !has(s.intent) || s.outcome.writer == s.intent.writer)",
        "only the process that wrote an intent may conclude NotApplied",
    ),
    Rule(
        "one-open-intent",
        "status",
        f"self.steps.filter(s, has(s.intent) && !has(s.outcome)).size() <= (self.phase == '{Phase.EXECUTING}' ? 1 : 0)",
        "one open intent at most, and none outside Executing",
    ),
    Rule(
        "steps-change",
        "status",
        f"self.steps == oldSelf.steps || (oldSelf.phase == '{Phase.EXECUTING}' && has(self.plan)"
        " && self.trail.size() > oldSelf.trail.size() && self.steps.all(s, oldSelf.steps.exists(o, o == s)"
        " || (s.revision == self.plan.revision"
        f" && (has(s.outcome) && s.outcome.result != '{Result.DRY_RUN}'"
        " ? oldSelf.steps.exists(o, o.revision == s.revision && o.action == s.action && has(o.intent))"
        " : self.plan.actions.exists(a, a.id == s.action && a.real == has(s.intent))"
        " && (has(s.outcome) || has(s.intent))))))",
        "steps change only from Executing, with a trail entry, for actions of the approved revision: a dry run, an "
        "intent, or the outcome of a stored intent",
    ),
    Rule(
        "intent-id-once",
        "status.steps",
        "self.all(s, !has(s.intent) || self.exists_one(t, has(t.intent) && t.intent.id == s.intent.id))",
        "an intent id is used once",
    ),
    Rule(
        "observing-needs-applied",
        "status",
        f"!{entering(Phase.OBSERVING)} || (has(self.plan) && self.plan.actions.all(a, {CURRENT}.exists(s,"
        f" s.action == a.id && {result_in(Result.APPLIED, Result.DRY_RUN)}))"
        f" && {CURRENT}.exists(s, {result_in(Result.APPLIED)}))",
        "Observing needs every action applied or dry-run, and one applied",
    ),
    Rule(
        "reconciliation-needs-unknown",
        "status",
        f"!{entering(Phase.RECONCILIATION_REQUIRED)}"
        f" || (has(self.plan) && {CURRENT}.exists(s, {result_in(Result.UNKNOWN)}))",
        "ReconciliationRequired needs an unknown outcome",
    ),
    Rule(
        "no-walking-back",
        "status",
        f"!{leaving(Phase.EXECUTING, Phase.INVESTIGATED, Phase.CLOSED)} || !has(self.plan)"
        f" || !{CURRENT}.exists(s, {result_in(Result.APPLIED, Result.UNKNOWN)})",
        "what was applied or unknown cannot be walked back",
    ),
    Rule(
        "closed-before-intent",
        "status",
        f"!{leaving(Phase.EXECUTING, Phase.CLOSED)} || !has(self.plan) || !{CURRENT}.exists(s, has(s.intent))",
        "Executing is closed only before an intent",
    ),
    Rule(
        "dry-run-only",
        "status",
        f"!{entering(Phase.CLOSED)} || !has(self.reason) || self.reason != '{Reason.DRY_RUN_ONLY}'"
        f" || (oldSelf.phase == '{Phase.EXECUTING}' && has(self.plan) && self.plan.actions.all(a, {CURRENT}.exists(s,"
        f" s.action == a.id && {result_in(Result.DRY_RUN)})))",
        "DryRunOnly needs a dry run of every action",
    ),
)
