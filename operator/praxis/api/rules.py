"""What the API server itself holds, as CEL rules of the CRDs: named, placed and worded.

The transition table is one of them (`praxis.machine.transition_rule`); everything else that an incident's history must
obey stands here. `self` and `oldSelf` are the value at the rule's place after and before a write; a rule that names
`oldSelf` is not asked on creation. CEL cannot hash and has no clock: it sees that the trail is linked, not that a hash
is right, and never that an approval expired. Those are the operator's.

Rules on an item of a list cost about 80 microseconds an item and write (kube-apiserver 1.37), rules on the whole list a
microsecond an item: long lists have rules on the list only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from praxis.api.incident import EntryKind, Result
from praxis.api.plan import REAL, TIERS, Tier
from praxis.api.reasons import ConditionType, Reason
from praxis.machine import TERMINAL, TRANSITIONS, Phase, transition_rule


@dataclass(frozen=True)
class Rule:
    """A CEL rule and what a writer is told whom it refuses.

    `at` is the place in the object: names joined by dots, `[]` for each item of a list, empty for the whole object.
    """

    name: str
    at: str
    rule: str
    message: str
    message_expression: str | None = None

    def rendered(self) -> dict[str, str]:
        """An entry of `x-kubernetes-validations`."""
        entry = {"rule": self.rule, "message": self.message}
        return {**entry, "messageExpression": self.message_expression} if self.message_expression else entry


def literal(values: Sequence[str] | frozenset[str]) -> str:
    """A CEL list of strings, in a stable order."""
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


def entering(phase: Phase) -> str:
    """This write enters the phase."""
    return f"(self.phase == '{phase}' && oldSelf.phase != '{phase}')"


def leaving(phase: Phase, *destinations: Phase) -> str:
    """This write leads from the phase to one of the others."""
    return f"(oldSelf.phase == '{phase}' && self.phase in {literal(destinations)})"


def unchanged(*fields: str) -> str:
    """Each of these optional fields is as it was, absent or equal.

    CEL's optional types (`self.?field == oldSelf.?field`) would say it shorter, but the cost estimate takes them for
    unbounded, and the API server refuses the CRD.
    """
    return " && ".join(
        f"(has(self.{field}) ? has(oldSelf.{field}) && self.{field} == oldSelf.{field} : !has(oldSelf.{field}))"
        for field in fields
    )


FIRING = "(self.spec.truncatedAlerts > 0 || self.spec.alerts.exists(a, a.status == 'firing'))"
OLD_FIRING = FIRING.replace("self.", "oldSelf.")
CURRENT = "self.steps.filter(s, s.revision == self.plan.revision)"
"""The steps of the plan that stands."""
INTENTS = "steps.filter(s, has(s.intent)).size()"
PROPOSING = leaving(Phase.INVESTIGATED, Phase.AWAITING_APPROVAL)
LAPSED = (Reason.APPROVAL_EXPIRED, Reason.DRY_RUN_ONLY)
"""Reasons of a closed episode that answered nothing: the next alert opens another one."""
CLOSED = (Reason.SELF_RESOLVED, Reason.DISMISSED, *LAPSED)


def result_in(*results: Result) -> str:
    """The step `s` has one of these outcomes."""
    return f"(has(s.outcome) && s.outcome.result in {literal(results)})"


SPEC = (
    Rule("source-is-final", "spec.source", "self == oldSelf", "where an incident came from never changes"),
    Rule(
        "resolved-when-clear",
        "",
        f"self.status.phase == oldSelf.status.phase || self.status.phase != '{Phase.RESOLVED}' || !{FIRING}",
        "not Resolved while an alert fires; truncated alerts never count as cleared",
    ),
    Rule(
        "self-resolved-when-clear",
        "",
        f"self.status.phase == oldSelf.status.phase || !has(self.status.reason)"
        f" || self.status.reason != '{Reason.SELF_RESOLVED}'"
        f" || !{FIRING}",
        "not SelfResolved while an alert fires; truncated alerts never count as cleared",
    ),
    Rule(
        "intent-when-firing",
        "",
        f"self.status.{INTENTS} == oldSelf.status.{INTENTS} || {FIRING}",
        "no intent when nothing fires",
    ),
    Rule(
        "ended-episode",
        "",
        f"!(oldSelf.status.phase in {literal(sorted(TERMINAL))}) || {OLD_FIRING} || self.spec == oldSelf.spec",
        "an ended episode takes no more alerts: every alert of it had cleared",
    ),
    Rule(
        "lapsed-episode",
        "",
        f"!(oldSelf.status.phase == '{Phase.FAILED}' || (oldSelf.status.phase == '{Phase.CLOSED}'"
        f" && has(oldSelf.status.reason) && oldSelf.status.reason in {literal(LAPSED)}))"
        " || (self.spec.truncatedAlerts <= oldSelf.spec.truncatedAlerts && self.spec.alerts.all(a, a.status != 'firing'"
        " || oldSelf.spec.alerts.exists(o, o.fingerprint == a.fingerprint && o.status == 'firing')))",
        "an incident that failed or lapsed takes no more firing alerts: they open another one",
    ),
)

TRAIL = (
    Rule(
        "trail-append-only",
        "status.trail",
        "self.filter(e, e.seq < oldSelf.size()) == oldSelf",
        "trail entries never change and are never dropped",
    ),
    Rule(
        "trail-linked",
        "status.trail",
        "self.all(i, e, e.seq == i && (i == 0 || self[i - 1].hash == e.prev))",
        "trail entries are numbered from 0 and linked",
    ),
    Rule(
        "head",
        "status",
        "self.trail.size() == 0 ? !has(self.head)"
        " : has(self.head) && self.head == self.trail[self.trail.size() - 1].hash",
        "head is the hash of the last entry",
    ),
    Rule(
        "transition-recorded",
        "status",
        f"self.trail.filter(e, e.seq >= oldSelf.trail.size() && e.kind == '{EntryKind.PHASE_CHANGED}').size()"
        " == (self.phase == oldSelf.phase ? 0 : 1)",
        "a transition leaves a trail entry, and nothing else leaves one that says PhaseChanged",
    ),
    Rule(
        "trail-phase",
        "status",
        "self.trail.size() <= oldSelf.trail.size() || self.trail[self.trail.size() - 1].phase == self.phase",
        "the last trail entry names the phase",
    ),
    Rule(
        "intents-recorded",
        "status",
        f"self.trail.filter(e, e.kind == '{EntryKind.INTENT_RECORDED}').size() == self.{INTENTS}",
        "every intent has its trail entry, and every such entry its intent",
    ),
    Rule(
        "outcomes-recorded",
        "status",
        f"self.trail.filter(e, e.kind == '{EntryKind.OUTCOME_RECORDED}').size()"
        " == self.steps.filter(s, has(s.outcome)).size()",
        "every outcome has its trail entry, and every such entry its outcome",
    ),
    Rule(
        "decisions-recorded",
        "status",
        f"!{entering(Phase.EXECUTING)} || self.approvals.all(a, self.trail.exists(e, e.seq >= oldSelf.trail.size()"
        f" && e.kind == '{EntryKind.DECIDED}' && e.actor == a.approver))",
        "every approver's decision has its trail entry",
    ),
    Rule(
        "reconciled-once",
        "status",
        f"self.trail.filter(e, e.kind == '{EntryKind.RECONCILED}').size()"
        f" <= (self.phase == '{Phase.RECONCILIATION_REQUIRED}' ? 1 : 0)",
        "one reconciliation at most, and only in ReconciliationRequired",
    ),
    Rule(
        "reconciled-condition",
        "status",
        f"!self.conditions.exists(c, c.type == '{ConditionType.RECONCILED}' && c.status == 'True')"
        f" || self.trail.exists(e, e.kind == '{EntryKind.RECONCILED}')",
        "reconciled only by a finding that the trail records",
    ),
)

PHASES = (
    Rule(
        "transition",
        "status",
        transition_rule(),
        "no such transition",
        "'no transition from ' + oldSelf.phase + ' to ' + self.phase",
    ),
    Rule(
        "phase-time",
        "status",
        "self.phase == oldSelf.phase || self.phase in self.phaseTimes",
        "entering a phase sets its time",
    ),
    Rule(
        "phase-time-keys",
        "status.phaseTimes",
        f"self.all(p, p in {literal(list(TRANSITIONS))})",
        "phaseTimes has phases as keys",
    ),
    Rule(
        "closed-reason",
        "status",
        f"self.phase != '{Phase.CLOSED}' || (has(self.reason) && self.reason in {literal(CLOSED)})",
        f"Closed has a reason: {', '.join(CLOSED)}",
    ),
    Rule(
        "closed-reason-is-final",
        "status",
        f"oldSelf.phase != '{Phase.CLOSED}' || {unchanged('reason')}",
        "why an incident was closed never changes",
    ),
    Rule(
        "classified-once",
        "status",
        f"oldSelf.phase == '{Phase.NEW}' || {unchanged('classification')}",
        "the classification changes only in New",
    ),
    Rule(
        "triaged-needs-classification",
        "status",
        f"self.phase != '{Phase.TRIAGED}' || has(self.classification)",
        "Triaged needs a classification",
    ),
    Rule(
        "evidence-gathered-once",
        "status",
        f"oldSelf.phase == '{Phase.TRIAGED}'"
        f" || (self.evidence == oldSelf.evidence && {unchanged('evidenceDigest', 'diagnosis')})",
        "evidence and diagnosis change only in Triaged",
    ),
    Rule(
        "investigated-needs-diagnosis",
        "status",
        f"self.phase != '{Phase.INVESTIGATED}' || (has(self.diagnosis) && has(self.evidenceDigest))",
        "Investigated needs a diagnosis and the digest of its evidence",
    ),
    Rule(
        "corrections-append-only",
        "status.corrections",
        "self.size() >= oldSelf.size() && oldSelf.all(i, c, self[i] == c)",
        "corrections never change and are never dropped",
    ),
    Rule(
        "corrections-by-people",
        "status",
        f"self.corrections == oldSelf.corrections || {entering(Phase.INVESTIGATED)}",
        "corrections are added only on the way back into Investigated",
    ),
    Rule(
        "usage-only-grows",
        "status",
        "!has(oldSelf.usage) || (has(self.usage) && self.usage.modelCalls >= oldSelf.usage.modelCalls"
        " && self.usage.inputTokens >= oldSelf.usage.inputTokens"
        " && self.usage.outputTokens >= oldSelf.usage.outputTokens"
        " && self.usage.costMicroUSD >= oldSelf.usage.costMicroUSD)",
        "what the models have cost only grows",
    ),
)

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

INCIDENT: tuple[Rule, ...] = (*PHASES, *TRAIL, *PLAN, *DOOR, *STEPS, *SPEC)

VERDICT = (
    Rule(
        "verdict-is-final",
        "status",
        f"!has(oldSelf.verdict) || ({unchanged('verdict', 'reason')})",
        "a verdict is final",
    ),
    Rule(
        "verdict-says-why",
        "status",
        "!has(self.verdict) || (has(self.reason) && has(self.message))",
        "a verdict says why",
    ),
)

APPROVAL: tuple[Rule, ...] = (
    Rule("approval-is-final", "spec", "self == oldSelf", "an approval never changes"),
    Rule(
        "approval-expires",
        "spec.expiresAt",
        "timestamp(self) == timestamp(self)",
        "expiresAt is a moment",
    ),
    Rule(
        "revise-says-what",
        "spec",
        "self.decision != 'Revise' || self.corrections.exists(c, c != '') || self.reason != ''",
        "Revise says what to change: in corrections, or as the reason",
    ),
    *VERDICT,
)

RECONCILIATION: tuple[Rule, ...] = (
    Rule("reconciliation-is-final", "spec", "self == oldSelf", "a reconciliation never changes"),
    *VERDICT,
)

TARGET: tuple[Rule, ...] = (
    Rule("target-is-final", "spec", "self == oldSelf", "a target never changes; declare another one"),
    Rule(
        "plain-http-on-loopback",
        "spec.functionCompute.endpoint",
        "self.startsWith('https://') || self.matches('^http://(127[.]0[.]0[.]1|localhost)(:[0-9]+)?$')",
        "http only on loopback: the request carries the function's environment",
    ),
    Rule(
        "claimed-anew",
        "status",
        "!has(oldSelf.holder) || !has(self.holder) || self.holder == oldSelf.holder"
        " || self.holder.intentId != oldSelf.holder.intentId",
        "a holder changes only by another claim, with an intent of its own",
    ),
)
