"""Round approvals and reconciliations: statements and verdicts that never change."""

from __future__ import annotations

from praxis.api.approval import IncidentApproval, IncidentReconciliation
from tests.api.cases.contract import allowed, refused
from tests.api.lab import (
    Lab,
)

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
