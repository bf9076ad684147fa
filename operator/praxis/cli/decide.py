"""`praxis approve|reject|revise|dismiss INCIDENT`: a person's decision on the plan that waits, bound to its digest."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click
from pydantic import ValidationError

from praxis.api import bounds
from praxis.api.approval import Decision, IncidentApproval, IncidentApprovalSpec, IncidentRef, Person, signed_content
from praxis.api.incident import Incident
from praxis.api.plan import Plan
from praxis.api.reasons import ConditionType
from praxis.cli.cluster import Found, UserCluster
from praxis.cli.integrity import faults
from praxis.cli.statement import (
    EXIT_CODES,
    Command,
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
from praxis.cli.story import consequence, proposal, waits_for_decision
from praxis.cli.terminal import Screen, line
from praxis.clock import rfc3339
from praxis.digest import PREFIX, same
from praxis.machine import Phase
from praxis.signing.openssh import sign

DURATION = re.compile(r"^(?:(?P<hours>\d{1,4})h)?(?:(?P<minutes>\d{1,5})m)?(?:(?P<seconds>\d{1,6})s)?$")
EFFECTS = {
    Decision.REJECT: [
        "Nothing of this plan is carried out, and every approval of it is refused.",
        f"The operator drafts another plan, {bounds.PLANS} in all at most, and people are asked again.",
    ],
    Decision.REVISE: [
        "Nothing of this plan is carried out, and every approval of it is refused.",
        "The operator drafts another plan that must heed the corrections, and people are asked again.",
    ],
    Decision.DISMISS: [
        "Nothing is carried out, and the incident is closed.",
        "As long as its alert goes on firing, it joins this incident: no new one is opened for it.",
    ],
}


class Duration(click.ParamType[timedelta]):
    """`1h`, `30m`, `1h30m`, `90s`; more than nothing."""

    name = "duration"

    def convert(self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The duration, or a usage error."""
        if isinstance(value, timedelta):
            return value
        found = DURATION.match(value)
        duration = timedelta(**{unit: int(n) for unit, n in found.groupdict().items() if n}) if found else timedelta()
        if not duration:
            self.fail(f"{value!r} is no duration; write 1h, 30m or 1h30m", param, ctx)
        return duration


class DigestPrefix(click.ParamType[str]):
    """The beginning of a plan's digest, with or without `sha256:`; at least six hex digits."""

    name = "digest"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The hex digits, or a usage error."""
        digits = value.lower().removeprefix(PREFIX)
        if not re.fullmatch("[0-9a-f]{6,64}", digits):
            self.fail(f"{value!r} is no plan digest; give at least six of its hex digits", param, ctx)
        return digits


def decision_options(command: Command) -> Command:
    """What every decision takes."""
    options: list[Callable[[Command], Command]] = [
        click.argument("incident"),
        click.option("--reason", default="", help="Why; it is recorded."),
        click.option(
            "--expires-in",
            type=Duration(),
            default="1h",
            show_default=True,
            help="It is not acted on after that; the cluster's policy bounds it.",
        ),
        click.option(
            "--plan", type=DigestPrefix(), help="Digest (or its beginning) of the plan you read; refused if it changed."
        ),
        click.option(
            "--sign",
            "key",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="KEY",
            help="Sign it with this SSH key: a private one, or a public one whose private half is in an agent or on "
            "hardware. For decisions that a GitOps controller applies; with -o yaml.",
        ),
        statement_options,
    ]
    for option in reversed(options):
        command = option(command)
    return command


decision_command = partial(click.command, epilog=EXIT_CODES)


@decision_command()
@decision_options
def approve(**options: Any) -> None:
    """Approve the plan of an incident, in your own name.

    Shows the plan and its evidence, says what approving will do, asks, and waits for the operator's verdict. The
    approval binds the digest of exactly what was shown.
    """
    decide(Decision.APPROVE, **options)


@decision_command()
@decision_options
def reject(**options: Any) -> None:
    """Reject the plan of an incident: nothing of it runs, another is drafted."""
    decide(Decision.REJECT, **options)


@decision_command()
@click.option(
    "--correction", "corrections", multiple=True, required=True, help="What the next plan must heed; repeat for more."
)
@decision_options
def revise(**options: Any) -> None:
    """Ask for another plan, with corrections."""
    decide(Decision.REVISE, **options)


@decision_command()
@decision_options
def dismiss(**options: Any) -> None:
    """Dismiss an incident: nothing is done, and it is closed."""
    decide(Decision.DISMISS, **options)


def decide(
    decision: Decision,
    *,
    incident: str,
    reason: str,
    expires_in: timedelta,
    plan: str | None,
    key: Path | None,
    corrections: tuple[str, ...] = (),
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
    output: str | None,
    yes: bool,
    timeout: float,
) -> NoReturn:
    """Show, ask, create, wait."""
    manner = Manner(output=output, yes=yes, timeout=timeout)
    with Connection(kubeconfig, context, namespace).open() as cluster:
        found = cluster.incident(incident)
        shown = decidable(found, decision, expected=plan)
        username = cluster.whoami().username
        explain(manner.screen, found, decision, username, corrections)
        refuse_unsound(found, decision)
        if output is None:
            confirmed(f"{decision} plan {shown.short} as {line(username)}?", manner)
            unchanged(cluster, found.incident, shown, decision)
        spec = statement(
            cluster,
            found.incident,
            shown,
            decision=decision,
            reason=reason,
            expires_in=expires_in,
            corrections=corrections,
        )
        if key is not None:
            spec = spec.replace(signature=sign(signed_content(cluster.namespace, spec), key))
        document = manifest(IncidentApproval, named(incident, decision.lower()), cluster.namespace, spec)
        if output is not None:
            write(document, output)
            raise SystemExit(0)
        # Whoever is counted already will be told that this one is a duplicate: for that verdict it is waited.
        counts = decision is Decision.APPROVE and others_needed(cluster, incident, username) is None
        create(cluster, IncidentApproval, document)
        await_verdict(
            cluster,
            IncidentApproval,
            document["metadata"]["name"],
            manner,
            still_needed=lambda: others_needed(cluster, incident, username) if counts else None,
        )
    raise AssertionError("await_verdict does not return")


def decidable(found: Found, decision: Decision, *, expected: str | None) -> Plan:
    """The plan that is decided about, if there is one to decide about, and it is the one that was meant."""
    incident = found.incident
    status = incident.status
    # A no still counts while the plan runs: it is heeded before the next action.
    stoppable = status.phase is Phase.EXECUTING and decision is not Decision.APPROVE
    if status.plan is None or not (waits_for_decision(incident) or stoppable):
        fail(
            f"{incident.metadata.name} is in phase {status.phase}: no plan waits for a decision. {status.message or ''}"
        )
    if expected is not None and not status.plan.digest.removeprefix(PREFIX).startswith(expected):
        fail(
            f"the plan is now {status.plan.digest}, not {expected}…: it was replaced since you read it; "
            f"read it again: praxis show {incident.metadata.name} -n {incident.metadata.namespace}"
        )
    return status.plan


def explain(screen: Screen, found: Found, decision: Decision, username: str, corrections: tuple[str, ...]) -> None:
    """Everything that the decision is about, and what it will do."""
    proposal(screen, found)
    screen.heading(f"{decision}, as {line(username)}")
    effects = consequence(found.incident) if decision is Decision.APPROVE else EFFECTS[decision]
    for effect in effects:
        screen.paragraph(effect, style="bold" if decision is Decision.APPROVE else "")
    for correction in corrections:
        screen.quote(correction)
    if found.incident.status.phase is Phase.EXECUTING:
        screen.warn("The plan is being carried out already: this is heeded only as long as nothing was applied.")


def refuse_unsound(found: Found, decision: Decision) -> None:
    """Nobody signs off what is not what it claims to be; saying no to it stays possible."""
    wrong = faults(found)
    if wrong and decision is Decision.APPROVE:
        fail(f"not approved: {'; '.join(wrong)}. Ask for another plan: praxis revise {found.incident.metadata.name}")


def unchanged(cluster: UserCluster, shown_on: Incident, shown: Plan, decision: Decision) -> None:
    """Read again after the answer: people take their time. The operator would refuse it too; this says so at once."""
    now = cluster.incident(shown_on.metadata.name)
    plan = decidable(now, decision, expected=None)
    if now.incident.metadata.uid != shown_on.metadata.uid or not same(plan.digest, shown.digest):
        fail(
            f"the plan changed while you read it: it is now {plan.digest}; nothing was created. Read it again: "
            f"praxis show {shown_on.metadata.name} -n {shown_on.metadata.namespace}"
        )


def statement(
    cluster: UserCluster,
    incident: Incident,
    plan: Plan,
    *,
    decision: Decision,
    reason: str,
    expires_in: timedelta,
    corrections: tuple[str, ...],
) -> IncidentApprovalSpec:
    """What is said. It expires by the API server's clock: the user's own may be wrong, and the policy uses that one."""
    identity = cluster.whoami()
    try:
        return IncidentApprovalSpec(
            incident_ref=IncidentRef(name=incident.metadata.name, uid=incident.metadata.uid),
            plan_digest=plan.digest,
            decision=decision,
            reason=reason,
            corrections=list(corrections),
            approver=Person(username=identity.username),
            expires_at=rfc3339((identity.server_time or datetime.now(UTC)) + expires_in),
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise click.UsageError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def others_needed(cluster: UserCluster, incident: str, username: str) -> str | None:
    """What is still missing, once the operator has counted this approval among others that are too few."""
    current = cluster.incident(incident).incident
    counted = current.status.condition(ConditionType.APPROVED)
    if counted is None or counted.status == "True" or current.status.phase is not Phase.AWAITING_APPROVAL:
        return None
    _, _, people = counted.message.partition(" approved by ")
    return f"{counted.message}; others must approve too." if username in people.split(", ") else None
