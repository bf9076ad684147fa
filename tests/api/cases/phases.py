"""Round the transitions: an edge that is not there, a phase without what it needs."""

from __future__ import annotations

from tests.api.cases.contract import refused
from tests.api.lab import (
    CLASSIFICATION,
    DIAGNOSIS,
    EVIDENCE,
    FOREIGN,
    TIME,
    Lab,
)


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
