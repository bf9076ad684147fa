"""`praxis reconcile INCIDENT`: a person's finding on an outcome that the operator could not establish."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import click
from pydantic import ValidationError

from praxis.api.approval import IncidentReconciliation, IncidentReconciliationSpec, IncidentRef, Observed, Person
from praxis.api.base import IncidentUid, IntentId
from praxis.api.incident import Incident
from praxis.api.reasons import ConditionType
from praxis.api.target import Holder, RemediationTarget
from praxis.approval.reconciliation import unknown_intent
from praxis.cli.cluster import Found, UserCluster
from praxis.cli.statement import (
    EXIT_CODES,
    Connection,
    Manner,
    await_verdict,
    confirmed,
    create,
    fail,
    manifest,
    named,
    statement_options,
    write,
)
from praxis.cli.story import overview, steps
from praxis.cli.terminal import Screen, line, moment
from praxis.digest import Digest, genesis
from praxis.errors import Refused
from praxis.machine import Phase

OBSERVED = {"applied": Observed.APPLIED, "not-applied": Observed.NOT_APPLIED}


@click.command(epilog=EXIT_CODES)
@click.argument("incident")
@click.option("--observed", type=click.Choice(list(OBSERVED)), required=True, help="What you found to have happened.")
@click.option("--note", required=True, help="How you found it; it is recorded.")
@statement_options
def command(
    *,
    incident: str,
    observed: str,
    note: str,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
    output: str | None,
    yes: bool,
    timeout: float,
) -> None:
    """Record what you found on an incident whose outcome is unknown, in your own name.

    The first valid finding stands; it frees the target for other incidents. The incident stays in
    ReconciliationRequired, marked as reconciled.
    """
    manner = Manner(output=output, yes=yes, timeout=timeout)
    with Connection(kubeconfig, context, namespace).open() as cluster:
        found = subject(cluster, incident)
        username = cluster.whoami().username
        if isinstance(found, Holder):
            uid, intent, head = explain_vanished(manner.screen, found)
        else:
            uid, intent, head = explain(manner.screen, found.incident)
        screen = manner.screen
        screen.heading(f"{OBSERVED[observed]}, found by {line(username)}")
        screen.quote(note)
        screen.paragraph("This is final, and frees the target: other incidents may act on the function again.")
        if output is None:
            confirmed(f"Record that intent {intent} was {OBSERVED[observed]}?", manner)
        try:
            spec = IncidentReconciliationSpec(
                incident_ref=IncidentRef(name=incident, uid=uid),
                intent_id=intent,
                trail_head=head,
                observed=OBSERVED[observed],
                note=note,
                observer=Person(username=username),
            )
        except ValidationError as error:
            first = error.errors()[0]
            raise click.UsageError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        document = manifest(IncidentReconciliation, named(incident, "reconciliation"), cluster.namespace, spec)
        if output is not None:
            write(document, output)
            raise SystemExit(0)
        create(cluster, IncidentReconciliation, document)
        conclude(cluster, document["metadata"]["name"], manner, vanished=isinstance(found, Holder))


def subject(cluster: UserCluster, name: str) -> Found | Holder:
    """The incident, or, when it is gone, the target's holder that still remembers its intent."""
    try:
        return cluster.incident(name)
    except Refused as error:
        if not error.not_found:
            raise
        targets = [RemediationTarget.model_validate(each) for each in cluster.items(RemediationTarget)]
        holder = next(
            (each.status.holder for each in targets if each.status.holder and each.status.holder.incident_name == name),
            None,
        )
        if holder is None:
            raise
        return holder


def explain(screen: Screen, incident: Incident) -> tuple[IncidentUid, IntentId, Digest]:
    """What is unknown, and where to look; the incident's uid, the intent and the trail's head that are spoken of."""
    intent = unknown_intent(incident)
    if incident.status.phase is not Phase.RECONCILIATION_REQUIRED or intent is None or incident.status.head is None:
        fail(f"{incident.metadata.name} is in phase {incident.status.phase}: there is nothing to reconcile")
    reconciled = incident.status.condition(ConditionType.RECONCILED)
    if reconciled is not None and reconciled.status == "True":
        fail(f"{incident.metadata.name} is reconciled already: {reconciled.message}")
    overview(screen, incident)
    steps(screen, incident)
    _look(screen, intent)
    return IncidentUid(incident.metadata.uid), IntentId(intent), Digest(incident.status.head)


def explain_vanished(screen: Screen, holder: Holder) -> tuple[IncidentUid, IntentId, Digest]:
    """The same of an incident that is gone: without a trail, the chain's first link stands for its head."""
    screen.heading(f"Incident {holder.incident_name} is gone, and its target is still held")
    screen.field("held since", moment(holder.claimed_at))
    _look(screen, holder.intent_id)
    return IncidentUid(holder.incident_uid), IntentId(holder.intent_id), genesis(holder.incident_uid)


def conclude(cluster: UserCluster, name: str, manner: Manner, *, vanished: bool) -> NoReturn:
    """Wait for the verdict; there is none on an incident that is gone, and the finding counts without."""
    if vanished:
        manner.screen.paragraph(f"Recorded as {name}; the target is free for the next incident.", style="green")
        raise SystemExit(0)
    await_verdict(cluster, IncidentReconciliation, name, manner)


def _look(screen: Screen, intent: str) -> None:
    screen.heading("Where to look")
    screen.paragraph(f"If the function's environment has PRAXIS_RESTART_ID={line(intent)}, the request was applied.")
    screen.paragraph("If it has another value, or none, and the function was not changed since, it was not.")
