"""What holds when an Incident changes its phase, and of the trail that tells it."""

from __future__ import annotations

from praxis.api.incident import EntryKind
from praxis.api.reasons import ConditionType, Reason
from praxis.api.rules.vocabulary import CLOSED, FIRING, INTENTS, LAPSED, OLD_FIRING, Rule, entering, literal, unchanged
from praxis.machine import TERMINAL, TRANSITIONS, Phase, transition_rule

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
