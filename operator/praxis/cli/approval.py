"""`praxis approval verify`: whether signed decisions hold, for who reviews them in Git, without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
from pydantic import ValidationError

from praxis.api.approval import IncidentApproval
from praxis.approval.signature import Finding, Verified
from praxis.cli.documents import objects
from praxis.cli.statement import fail
from praxis.cli.terminal import line
from praxis.clock import parse_rfc3339, rfc3339
from praxis.errors import PraxisError
from praxis.kube import Document
from praxis.signing.decisions import found
from praxis.signing.signers import AllowedSigners

HOLDS, REFUSED, USAGE = 0, 1, 2
EXIT_CODES = f"""\b
Exit codes:
  {HOLDS}  every decision is signed by its approver, and not expired
  {REFUSED}  one is not
  {USAGE}  wrong usage: a file that cannot be read, or no IncidentApproval in it
"""
File = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def command() -> None:
    """Verify signed decisions in files, as the operator will."""


@command.command(epilog=EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=File)
@click.option(
    "--allowed-signers", "allowed", required=True, type=File, help="File of OpenSSH's allowed signers: who, which key."
)
@click.option("--revoked-keys", "revoked", type=File, help="File of public keys, one a line, that are revoked.")
@click.option("--at", help="RFC 3339 time at which keys must be valid and decisions not expired; else now.")
def verify(*, files: tuple[Path, ...], allowed: Path, revoked: Path | None, at: str | None) -> None:
    """Verify every IncidentApproval in FILES: signed, by its approver, over exactly what it says, and in time.

    That the plan it speaks of is the one that waits, only the operator can tell: praxis show INCIDENT.
    """
    moment = moment_of(at)
    signers = AllowedSigners(allowed=read(allowed), revoked=read(revoked) if revoked else "")
    approvals = [approval for path in files for approval in approvals_in(path)]
    if not approvals:
        fail("there is no IncidentApproval in these files", USAGE)
    faults = 0
    for approval in approvals:
        said, holds = report(approval, signers, moment)
        faults += not holds
        click.echo(line(f"{'ok' if holds else 'REFUSED'} {approval.key}: {said}"))
    raise SystemExit(REFUSED if faults else HOLDS)


def report(approval: IncidentApproval, signers: AllowedSigners, at: datetime) -> tuple[str, bool]:
    """A sentence on one decision, and whether it holds."""
    spec = approval.spec
    try:
        if spec.signature is None:
            return "it is not signed; sign it with: praxis approve --sign KEY -o yaml", False
        if parse_rfc3339(spec.expires_at) <= at:
            return f"it expired at {spec.expires_at}", False
        finding: Finding = found(approval, signers, at=at)
    except (PraxisError, ValueError) as error:
        return f"it cannot be checked: {error}", False
    if not isinstance(finding, Verified):
        return finding.why, False
    incident = f"{approval.metadata.namespace}/{spec.incident_ref.name}"
    said = f"{spec.decision} of plan {spec.plan_digest} of incident {incident}, signed by {spec.approver.username} "
    return f"{said}with {finding.key}, until {spec.expires_at}", True


def approvals_in(path: Path) -> list[IncidentApproval]:
    """Every IncidentApproval in a file; other objects are passed over."""
    try:
        documents: list[Document] = objects(read(path))
        return [
            IncidentApproval.model_validate(each) for each in documents if each.get("kind") == IncidentApproval.kind
        ]
    except ValidationError as error:
        first = error.errors()[0]
        fail(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}", USAGE)
    except ValueError as error:
        fail(f"{path}: {error}", USAGE)


def read(path: Path) -> str:
    """A file's text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{path} cannot be read: {error}", USAGE)


def moment_of(at: str | None) -> datetime:
    """The time that is asked for, or now."""
    try:
        return parse_rfc3339(at) if at else datetime.now(UTC)
    except ValueError:
        raise click.UsageError(f"--at {at!r} is no RFC 3339 time such as {rfc3339(datetime.now(UTC))}") from None
