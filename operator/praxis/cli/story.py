"""An incident, told for a terminal: what happened, what was seen, what is claimed, what is proposed, what was done."""

from __future__ import annotations

from praxis.api.incident import Incident, Step
from praxis.api.plan import Action, Plan, Tier
from praxis.cli.cluster import Found
from praxis.cli.integrity import faults
from praxis.cli.terminal import Screen, line, moment, plain
from praxis.machine import Phase

TIER_STYLES = {Tier.SAFE: "green", Tier.CAUTION: "yellow", Tier.DANGEROUS: "bold red"}
RESULT_STYLES = {"Applied": "green", "NotApplied": "yellow", "Unknown": "bold red", "DryRun": "cyan"}
EXCERPT_LINES = 12


def tell(screen: Screen, found: Found, *, wide: bool = False) -> None:
    """The whole incident."""
    incident = found.incident
    overview(screen, incident)
    alerts(screen, incident, wide=wide)
    reasoning(screen, incident, wide=wide)
    if incident.status.plan is not None:
        plan(screen, incident.status.plan, wide=wide)
    approvals(screen, incident)
    steps(screen, incident)
    trail(screen, found, wide=wide)
    for fault in faults(found):
        screen.warn(fault)


def proposal(screen: Screen, found: Found) -> None:
    """What a person must have seen before they decide about the plan."""
    overview(screen, found.incident)
    alerts(screen, found.incident, wide=False)
    reasoning(screen, found.incident, wide=False)
    if found.incident.status.plan is not None:
        plan(screen, found.incident.status.plan, wide=True)
    for fault in faults(found):
        screen.warn(fault)


def overview(screen: Screen, incident: Incident) -> None:
    """Name, phase and why it stands there."""
    status = incident.status
    screen.heading(f"Incident {incident.metadata.namespace}/{incident.metadata.name}")
    screen.field("summary", incident.spec.summary)
    severity = status.classification.severity if status.classification else incident.spec.severity
    screen.field("severity", severity, style="bold")
    screen.field("phase", f"{status.phase}{f', {status.reason}' if status.reason else ''}", style="bold")
    screen.field("", status.message or "")
    screen.field("target", status.target or "")
    screen.field("waiting", f"since {moment(status.waiting_since)}" if status.waiting_since else "")
    if status.usage is not None:
        dollars = status.usage.cost_micro_usd / 1_000_000
        screen.field(
            "models",
            f"{status.usage.model_calls} answers, {status.usage.input_tokens} tokens in, "
            f"{status.usage.output_tokens} out, {dollars:.4f} USD",
        )
    for condition in status.conditions:
        screen.field(condition.type, f"{condition.status}, {condition.reason}: {condition.message}")


def alerts(screen: Screen, incident: Incident, *, wide: bool) -> None:
    """The alerts, in their own words."""
    spec = incident.spec
    screen.heading(f"Alerts ({len(spec.alerts)}), from {line(spec.source.receiver)} by {spec.source.authentication}")
    for alert in spec.alerts if wide else spec.alerts[:8]:
        name = line(alert.labels.get("alertname", alert.fingerprint))
        style = "bold red" if alert.firing else "green"
        screen.paragraph(f"{name}: {alert.status} since {moment(alert.starts_at)}", style=style)
        labels = ", ".join(f"{key}={value}" for key, value in alert.labels.items() if key != "alertname")
        screen.quote(line(labels))
        for key, value in alert.annotations.items():
            screen.quote(f"{key}: {value}")
    if not wide and len(spec.alerts) > 8:
        screen.paragraph(f"… {len(spec.alerts) - 8} more; praxis show -o wide shows them")
    if spec.truncated_alerts:
        screen.warn(f"{spec.truncated_alerts} more alerts were truncated by the sender; they count as firing")


def reasoning(screen: Screen, incident: Incident, *, wide: bool) -> None:
    """Classification, diagnosis, what it cites, and what was recalled."""
    status = incident.status
    if status.classification is not None:
        seen = status.classification
        screen.heading("Classification")
        screen.field("category", f"{seen.category}, {seen.severity}, service {seen.service or 'unknown'}")
        screen.field("model", seen.model)
        screen.quote(seen.summary)
    if status.diagnosis is not None:
        screen.heading(f"Diagnosis (confidence {status.diagnosis.confidence}; by {line(status.diagnosis.model)})")
        screen.quote(status.diagnosis.summary)
        known = {each.id for each in status.evidence}
        for claim in status.diagnosis.claims:
            cited = ", ".join(f"{each}" if each in known else f"{each} (NOT FOUND)" for each in claim.evidence)
            screen.quote(f"{claim.text}  [{cited or 'no evidence'}]")
    _evidence(screen, incident, wide=wide)
    if status.recalled:
        screen.heading("Recalled from past incidents")
        for memory in status.recalled:
            screen.paragraph(f"{line(memory.id)}  {line(memory.incident)}  score {memory.score:.2f}")
            screen.quote(memory.summary)
    if status.corrections:
        screen.heading("Corrections that people asked for")
        for correction in status.corrections:
            screen.quote(correction)


def plan(screen: Screen, proposed: Plan, *, wide: bool) -> None:
    """The plan: each action with its risk, its target, and literally what it does."""
    screen.heading(f"Plan, revision {proposed.revision}, risk {proposed.tier}")
    screen.field("digest", proposed.digest, style="bold")
    screen.field("model", proposed.model)
    screen.field("proposed", moment(proposed.proposed_at))
    screen.quote(proposed.summary)
    if proposed.rationale and wide:
        screen.quote(proposed.rationale)
    for number, action in enumerate(proposed.actions, start=1):
        _action(screen, number, action)


def approvals(screen: Screen, incident: Incident) -> None:
    """The approvals that the plan runs on."""
    if incident.status.approvals:
        screen.heading("Approvals that it runs on")
    for each in incident.status.approvals:
        screen.paragraph(f"{line(each.approver)}  {line(each.name)}  until {moment(each.expires_at)}")


def steps(screen: Screen, incident: Incident) -> None:
    """What was done: intent, outcome, proof."""
    if incident.status.steps:
        screen.heading("Steps")
    for step in incident.status.steps:
        _step(screen, step)


def trail(screen: Screen, found: Found, *, wide: bool) -> None:
    """The chain of decisions, and whether it holds."""
    entries = found.incident.status.trail
    if not entries:
        return
    screen.heading(f"Trail ({len(entries)} entries)")
    for entry in entries:
        screen.paragraph(
            f"{entry.seq:>2}  {moment(entry.time)}  {entry.kind}  {entry.phase}  {line(entry.reason)}  "
            f"{line(entry.actor)}"
        )
        if wide:
            screen.paragraph(f"hash {entry.hash}{f'  of {line(entry.digest)}' if entry.digest else ''}", indent=6)
    screen.field("head", found.incident.status.head or "")


def _evidence(screen: Screen, incident: Incident, *, wide: bool) -> None:
    if incident.status.evidence:
        screen.heading(f"Evidence ({len(incident.status.evidence)}), read only")
    for each in incident.status.evidence:
        screen.paragraph(f"{line(each.id)}  {line(each.tool)}: {line(each.query)}  ({moment(each.time)})")
        screen.quote(each.excerpt, limit=None if wide else EXCERPT_LINES)
        if each.truncated:
            screen.paragraph("│ … the source had more than is kept", indent=6)
        if wide:
            screen.paragraph(f"digest {line(each.digest)}", indent=6)


def _action(screen: Screen, number: int, action: Action) -> None:
    mark = "REAL" if action.real else "DRY RUN, changes nothing"
    screen.paragraph(f"{number}. {action.type}  [{action.tier}]  {mark}", style=TIER_STYLES[action.tier])
    screen.field("   target", f"{action.target.name}, uid {action.target.uid}, generation {action.target.generation}")
    for key, value in action.parameters.items():
        screen.field("   parameter", f"{key} = {value}")
    screen.field("   does", action.effect)
    screen.field("   undo", action.rollback)


def _step(screen: Screen, step: Step) -> None:
    result = step.outcome.result if step.outcome else "in flight: the outcome is not known yet"
    style = RESULT_STYLES.get(str(result), "bold yellow")
    screen.paragraph(f"revision {step.revision}, {line(step.action)}: {result}", style=style)
    if step.intent is not None:
        screen.field("   intent", f"{step.intent.id}, at {moment(step.intent.time)} by {step.intent.writer}")
        before = ", ".join(each.id for each in step.intent.baseline.instances)
        screen.field("   before", before)
    if step.outcome is not None:
        screen.field("   outcome", f"{step.outcome.reason}: {step.outcome.message}")
        screen.field("   proof", step.outcome.proof)
        screen.field("   after", ", ".join(each.id for each in step.outcome.instances_after))
        screen.field("   concluded", f"at {moment(step.outcome.time)} by {step.outcome.writer}")


def consequence(incident: Incident) -> list[str]:
    """What approving the plan will do, literally, and what it takes."""
    status, proposed = incident.status, incident.status.plan
    assert proposed is not None, "a decision is on a plan"
    needed = status.approvals_required or 1
    people = "one person must approve it" if needed == 1 else f"{needed} distinct people must approve it"
    numbered = [f"{number}. {_marked(each)}" for number, each in enumerate(proposed.actions, start=1)]
    order = "once" if len(numbered) == 1 else "in this order, each once"
    nothing = [] if proposed.real_action else ["Every action is a DRY RUN: the incident will not end as remediated."]
    counted = next((f"So far: {plain(each.message)}." for each in status.conditions if each.type == "Approved"), "")
    return [
        f"If approved, the operator does this, {order}:",
        *numbered,
        *nothing,
        f"Of risk {proposed.tier}, {people}. {counted}".strip(),
    ]


def _marked(action: Action) -> str:
    effect = line(action.effect)
    return effect if action.real or effect.startswith("DRY RUN") else f"DRY RUN: {effect}"


def waits_for_decision(incident: Incident) -> bool:
    """Whether a plan is there and people are asked about it."""
    return incident.status.phase is Phase.AWAITING_APPROVAL and incident.status.plan is not None
