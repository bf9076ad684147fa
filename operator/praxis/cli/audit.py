"""`praxis audit`: whether the API server's audit log and the trails agree on who decided.

The two are written by different programs and kept by different people: the operator writes the trail from what is
stored, the API server its log from whom it authenticated. Level Metadata is enough (https://kubernetes.io/docs/tasks/
debug/debug-cluster/audit/): who created the object that a trail entry binds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import GROUP
from praxis.api.incident import EntryKind, Incident
from praxis.api.records import statement_digest
from praxis.cli.documents import objects
from praxis.cli.statement import fail
from praxis.cli.terminal import Screen, line, moment

Document = Mapping[str, Any]
AGREE, DISAGREE, USAGE, UNKNOWN = 0, 1, 2, 3
KINDS = {EntryKind.DECIDED.value: IncidentApproval, EntryKind.RECONCILED.value: IncidentReconciliation}
PLURALS = frozenset(kind.plural for kind in KINDS.values())
CREATED = 201
EXIT_CODES = f"""\b
Exit codes:
  {AGREE}  of every decision the log says that the person made it whom the trail names
  {DISAGREE}  of one the log says that somebody else did, or somebody acting as the person
  {USAGE}  wrong usage: a file that cannot be read, or no Incident in it
  {UNKNOWN}  of one the log says nothing, or the statement that the entry binds is not in FILES
"""


class Finding(StrEnum):
    """What the log says of a trail entry."""

    AGREES = "agrees"
    DIFFERS = "DIFFERS"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Creation:
    """That somebody created an approval or a reconciliation; `actual` is who sent the request, if as another."""

    plural: str
    namespace: str
    name: str
    username: str
    actual: str = ""


@dataclass(frozen=True)
class Compared:
    """A trail entry of a person's statement, and what the log says of it."""

    entry: Document
    finding: Finding
    detail: str


@click.command(epilog=EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--audit-log",
    "logs",
    multiple=True,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The API server's audit log, one JSON object a line; again for each of its files.",
)
def command(*, files: Sequence[Path], logs: Sequence[Path]) -> None:
    """Compare the trails in FILES, as `praxis trail export` wrote them, with the API server's audit log.

    Needs no cluster. One line for each decision and each reconciliation: who made it by the trail, and by the log.
    """
    found = [each for file in files for each in _read(file)]
    incidents = [each for each in found if _is(each, Incident.kind)]
    if not incidents:
        fail(f"there is no Incident of {GROUP} in {', '.join(map(str, files))}", USAGE)
    created = [each for log in logs for each in _logged(log)]
    screen, findings = Screen(), []
    for incident in incidents:
        meta = _mapping(incident.get("metadata"))
        screen.paragraph(line(f"{meta.get('namespace')}/{meta.get('name')}, uid {meta.get('uid')}"), indent=0)
        for compared in compare(incident, found, created):
            findings.append(compared.finding)
            screen.paragraph(_told(compared), style="" if compared.finding is Finding.AGREES else "bold red")
    if Finding.DIFFERS in findings:
        sys.exit(DISAGREE)
    sys.exit(UNKNOWN if Finding.UNKNOWN in findings else AGREE)


def compare(incident: Document, statements: Iterable[Document], created: Sequence[Creation]) -> list[Compared]:
    """What the log says of each entry of the incident's trail that records a person's statement."""
    by_digest: dict[str, Document] = {}
    for each in statements:
        if any(_is(each, kind.kind) for kind in KINDS.values()) and (digest := _digest(each)):
            by_digest[digest] = each
    trail = _mapping(incident.get("status")).get("trail")
    entries = [_mapping(each) for each in trail] if isinstance(trail, list) else []
    return [
        _compared(each, by_digest.get(str(each.get("digest"))), created)
        for each in entries
        if str(each.get("kind")) in KINDS
    ]


def creations(lines: Iterable[str]) -> Iterator[Creation]:
    """The creations of approvals and reconciliations in an audit log. Lines that are no audit events are passed over:
    a log that is shipped often has others between them."""
    for text in lines:
        try:
            event = _mapping(json.loads(text))
        except (ValueError, RecursionError):
            continue
        about = _mapping(event.get("objectRef"))
        if (
            event.get("verb") != "create"
            or about.get("apiGroup") != GROUP
            or about.get("resource") not in PLURALS
            or about.get("subresource")
            or _mapping(event.get("responseStatus")).get("code") != CREATED
            or "dryRun=" in str(event.get("requestURI"))
        ):
            continue
        user, shown = _mapping(event.get("user")), _mapping(event.get("impersonatedUser"))
        yield Creation(
            plural=str(about["resource"]),
            namespace=str(about.get("namespace")),
            name=str(about.get("name")),
            username=str((shown or user).get("username")),
            actual=str(user.get("username")) if shown else "",
        )


def _compared(entry: Document, statement: Document | None, created: Sequence[Creation]) -> Compared:
    kind, actor = KINDS[str(entry.get("kind"))], str(entry.get("actor"))
    if statement is None:
        return Compared(entry, Finding.UNKNOWN, f"the {kind.kind} that it binds is not in the files")
    meta = _mapping(statement.get("metadata"))
    where = (kind.plural, str(meta.get("namespace")), str(meta.get("name")))
    named = f"{kind.kind} {meta.get('name')}"
    by = [each for each in created if (each.plural, each.namespace, each.name) == where]
    if not by:
        return Compared(entry, Finding.UNKNOWN, f"the log does not hold the creation of {named}")
    for each in by:
        if each.actual:
            return Compared(entry, Finding.DIFFERS, f"{named} was created by {each.actual}, acting as {each.username}")
        if each.username != actor:
            return Compared(entry, Finding.DIFFERS, f"{named} was created by {each.username}")
    return Compared(entry, Finding.AGREES, f"{named} was created by {actor}")


def _told(compared: Compared) -> str:
    entry = compared.entry
    fields = [moment(str(entry.get("time"))), *(line(str(entry.get(name))) for name in ("kind", "reason", "actor"))]
    return "  ".join([*fields, f"{compared.finding}: {line(compared.detail)}"])


def _logged(log: Path) -> list[Creation]:
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            return list(creations(lines))
    except OSError as error:
        fail(f"{log} cannot be read: {error.strerror}", USAGE)


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        with click.open_file(str(file), encoding="utf-8") as stream:
            return objects(stream.read())
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}", USAGE)
    except ValueError as error:
        fail(f"{file} cannot be read: {error}", USAGE)


def _is(document: Document, kind: str) -> bool:
    return document.get("kind") == kind and str(document.get("apiVersion")).split("/")[0] == GROUP


def _digest(document: Document) -> str | None:
    try:
        return statement_digest(document)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _mapping(value: Any) -> Document:
    return value if isinstance(value, Mapping) else {}
