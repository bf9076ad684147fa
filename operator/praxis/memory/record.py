"""An incident in words: what is embedded when it is resolved, and what is asked when another one begins.

Both start with the alerts and their classification, as that is all that is known when a memory is asked for; redacted
before anything is cut, as half a token is still a secret.
"""

from __future__ import annotations

from praxis.api.incident import Alert, Incident, Result, Step
from praxis.machine import Phase
from praxis.memory.contract import NAME, SUMMARY, TEXT, MemoryRecord
from praxis.redaction import redact

ALERTS = 8
"""So many alerts of a group describe it; more of them say the same again and would drown the rest."""
VOLATILE = frozenset({"instance", "pod", "pod_name", "container_id", "endpoint", "uid", "prometheus", "replica"})
"""Labels that differ between two occurrences of one fault: they would only push the two apart."""


def recall_text(incident: Incident) -> str:
    """What is asked of the memory at Triaged: alerts and classification, nothing that is found out later."""
    return _bounded("\n".join(_symptoms(incident)), TEXT)


def record_of(incident: Incident) -> MemoryRecord:
    """What is remembered of a resolved incident.

    `incident.metadata.uid` is the id. The service is the classification's, else that of the target or of the alerts.
    """
    status = incident.status
    text = "\n".join([*_symptoms(incident), *_findings(incident)])
    return MemoryRecord(
        id=incident.metadata.uid,
        incident=_bounded(incident.key, NAME),
        namespace=incident.metadata.namespace,
        service=_bounded(_service(incident), NAME),
        category=status.classification.category if status.classification else "",
        text=_bounded(text, TEXT),
        summary=_bounded(_summary(incident), SUMMARY),
        resolved_at=status.phase_times.get(Phase.RESOLVED, ""),
    )


def _symptoms(incident: Incident) -> list[str]:
    lines = []
    if classification := incident.status.classification:
        lines.append(f"{classification.category} ({classification.severity}) of {_service(incident) or 'a service'}")
        lines.append(classification.summary)
    elif incident.spec.summary:
        lines.append(incident.spec.summary)
    described = dict.fromkeys(_alert(alert) for alert in incident.spec.alerts)
    return lines + list(described)[:ALERTS]


def _alert(alert: Alert) -> str:
    labels = sorted(f"{name}={value}" for name, value in alert.labels.items() if name not in VOLATILE)
    notes = [alert.annotations[name] for name in ("summary", "description", "message") if name in alert.annotations]
    return " ".join(["alert", *labels, *notes])


def _findings(incident: Incident) -> list[str]:
    status = incident.status
    lines = []
    if status.diagnosis:
        lines.append(f"cause: {status.diagnosis.summary}")
        lines += [f"claim: {claim.text}" for claim in status.diagnosis.claims]
    lines += [f"action: {_step(incident, step)}" for step in status.steps]
    return [*lines, f"end: {_end(incident)}"]


def _summary(incident: Incident) -> str:
    """What happened and what helped, in a sentence; the action comes before what may have to be cut."""
    status = incident.status
    what = f"{status.classification.category} of " if status.classification else "An incident of "
    acted = "; ".join(_step(incident, step) for step in status.steps) or "nothing was carried out"
    cause = status.diagnosis.summary if status.diagnosis else incident.spec.summary
    return f"{what}{_service(incident) or incident.metadata.name}: {acted}; {_end(incident)}. Cause: {cause}"


def _step(incident: Incident, step: Step) -> str:
    plan = incident.status.plan
    actions = plan.actions if plan and plan.revision == step.revision else []
    action = next((each for each in actions if each.id == step.action), None)
    name = f"{action.type} on {action.target.name}" if action else f"{step.action} of plan {step.revision}"
    if step.outcome is None:
        return f"{name}: outcome not known"
    if step.outcome.result is Result.DRY_RUN:
        return f"{name}: DRY RUN, nothing was sent"
    return f"{name}: {step.outcome.result} ({step.outcome.reason})"


def _end(incident: Incident) -> str:
    if incident.cleared_before_action:
        return "the alert had cleared before the action, which did not help"
    if incident.status.phase is Phase.RESOLVED:
        return "then the alert cleared"
    return f"the incident is {incident.status.phase}"


def _service(incident: Incident) -> str:
    status = incident.status
    if status.classification and status.classification.service:
        return status.classification.service
    labels = incident.spec.alerts[0].labels
    return status.target or labels.get("service") or labels.get("job") or ""


def _bounded(text: str, limit: int) -> str:
    text = redact(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
