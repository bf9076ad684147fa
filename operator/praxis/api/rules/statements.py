"""What holds of what people say and of what admins declare."""

from __future__ import annotations

from praxis.api.rules.vocabulary import Rule, unchanged

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
