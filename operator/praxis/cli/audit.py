"""`praxis audit`: whether the API server's audit log and the trails agree on who decided.

The two are written by different programs and kept by different people: the operator writes the trail from what is
stored, the API server its log from whom it authenticated. Level Metadata is enough (https://kubernetes.io/docs/tasks/
debug/debug-cluster/audit/): who created the object that a trail entry binds.

An entry's digest is over the object's uid and spec. Its name, by which a log of that level knows it, is covered by
nothing, so more than the name must fit before a creation vouches for an entry: its time, the uid where the log has it,
and that no other entry leans on it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from praxis.api.admission import APPROVAL_HOURS
from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import GROUP
from praxis.api.incident import EntryKind, Incident
from praxis.api.records import statement_digest
from praxis.cli.documents import objects
from praxis.cli.statement import fail
from praxis.cli.terminal import Screen, line, moment
from praxis.clock import parse_rfc3339

Document = Mapping[str, Any]
AGREE, DISAGREE, USAGE, UNKNOWN = 0, 1, 2, 3
KINDS = {EntryKind.DECIDED.value: IncidentApproval, EntryKind.RECONCILED.value: IncidentReconciliation}
PLURALS = frozenset(kind.plural for kind in KINDS.values())
VERBS = frozenset({"create", "patch", "update"})
"""All three create: Argo CD, Flux and `kubectl apply --server-side` patch what is not there. The code tells."""
CREATED = 201
STAMPED = timedelta(seconds=2)
"""The API server writes an object's creationTimestamp in whole seconds, by the clock that its log has."""
CLOCKS = timedelta(minutes=5)
"""How far its clock and the operator's, which times the entries, may be apart."""
EXIT_CODES = f"""\b
Exit codes:
  {AGREE}  of every decision the log says that the person made it whom the trail names,
     or that an account of --passed-on-by passed it on, signed
  {DISAGREE}  of one the log says that somebody else did, or somebody acting as the person; one that
     is signed was passed on by an account that is not named; or two lean on one creation
  {USAGE}  wrong usage: a file that cannot be read, or no Incident in it
  {UNKNOWN}  of one the log says nothing, the statement that the entry binds is not in FILES,
     or an incident has no trail that can be read
"""


class Finding(StrEnum):
    """What the log says of a trail entry."""

    AGREES = "agrees"
    DIFFERS = "DIFFERS"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Creation:
    """That somebody created an approval or a reconciliation; `actual` is who sent the request, if as another.

    `began` and `ended` are when the request came and was answered, `uid` the object's: empty where the log has it not.
    """

    plural: str
    namespace: str
    name: str
    username: str
    actual: str = ""
    began: str = ""
    ended: str = ""
    uid: str = ""


@dataclass(frozen=True)
class Compared:
    """A trail entry of a person's statement, and what the log says of it; no entry: the trail cannot be read.

    `leans_on` are the creations that may be the statement's, and `key` tells the entry from all others.
    """

    entry: Document
    finding: Finding
    detail: str
    leans_on: tuple[Creation, ...] = ()
    key: tuple[str, ...] = ()


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
@click.option(
    "--passed-on-by",
    "passed_on_by",
    metavar="ACCOUNT",
    multiple=True,
    help="An account that may pass on decisions that carry their approver's signature, such as that of Argo CD or "
    "Flux: system:serviceaccount:NAMESPACE:NAME. Again for each. `praxis approval verify` verifies the signatures.",
)
def command(*, files: Sequence[Path], logs: Sequence[Path], passed_on_by: Sequence[str]) -> None:
    """Compare the trails in FILES, as `praxis trail export` wrote them, with the API server's audit log.

    Needs no cluster. One line for each decision and each reconciliation: who made it by the trail, and by the log.
    """
    found = [each for file in files for each in _read(file)]
    incidents = [each for each in found if _is(each, Incident.kind)]
    if not incidents:
        fail(f"there is no Incident of {GROUP} in {', '.join(map(str, files))}", USAGE)
    created = [each for log in logs for each in _logged(log)]
    by_incident = [compare(each, found, created, passed_on_by=passed_on_by) for each in incidents]
    # Entries of two incidents must not lean on one creation either.
    told = iter(_once([each for compared in by_incident for each in compared]))
    screen, findings = Screen(), []
    for incident, compared in zip(incidents, by_incident, strict=True):
        meta = _mapping(incident.get("metadata"))
        screen.paragraph(line(f"{meta.get('namespace')}/{meta.get('name')}, uid {meta.get('uid')}"), indent=0)
        for _ in compared:
            each = next(told)
            findings.append(each.finding)
            screen.paragraph(_told(each), style="" if each.finding is Finding.AGREES else "bold red")
    if Finding.DIFFERS in findings:
        sys.exit(DISAGREE)
    sys.exit(UNKNOWN if Finding.UNKNOWN in findings else AGREE)


def compare(
    incident: Document,
    statements: Iterable[Document],
    created: Sequence[Creation],
    *,
    passed_on_by: Collection[str] = (),
) -> list[Compared]:
    """What the log says of each entry of the incident's trail that records a person's statement."""
    by_digest: dict[str, list[Document]] = {}
    for each in statements:
        if any(_is(each, kind.kind) for kind in KINDS.values()) and (digest := _digest(each)):
            by_digest.setdefault(digest, []).append(each)
    entries = _entries(incident)
    if not entries:
        return [Compared({}, Finding.UNKNOWN, "it has no trail that can be read, so nothing was compared")]
    names = _names(incident)
    uid = str(_mapping(incident.get("metadata")).get("uid"))
    return _once(
        [
            replace(
                _compared(each, by_digest.get(str(each.get("digest")), []), names, created, passed_on_by),
                key=(uid, str(index), str(each.get("digest"))),
            )
            for index, each in enumerate(entries)
            if each.get("kind") in KINDS
        ]
    )


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
            str(event.get("verb")) not in VERBS
            or about.get("apiGroup") != GROUP
            or str(about.get("resource")) not in PLURALS
            or about.get("subresource")
            or _mapping(event.get("responseStatus")).get("code") != CREATED
            or "dryRun=" in str(event.get("requestURI"))
        ):
            continue
        user, shown = _mapping(event.get("user")), _mapping(event.get("impersonatedUser"))
        answered = _mapping(_mapping(event.get("responseObject")).get("metadata"))  # from level RequestResponse on
        yield Creation(
            plural=str(about["resource"]),
            namespace=str(about.get("namespace")),
            name=str(about.get("name") or answered.get("name")),
            username=str((shown or user).get("username")),
            actual=str(user.get("username")) if shown else "",
            began=str(event.get("requestReceivedTimestamp") or ""),
            ended=str(event.get("stageTimestamp") or ""),
            uid=str(answered.get("uid") or ""),
        )


def _entries(incident: Document) -> list[Document]:
    """The entries of the trail; none when one of them is no entry, as nobody knows what it was."""
    trail = _mapping(incident.get("status")).get("trail")
    entries = [_mapping(each) for each in trail] if isinstance(trail, list) else []
    known = frozenset(kind.value for kind in EntryKind)
    return entries if all(str(each.get("kind")) in known for each in entries) else []


def _names(incident: Document) -> dict[str, str]:
    """The names of the approvals that status holds, by uid: an entry of the trail binds these."""
    approvals = _mapping(incident.get("status")).get("approvals")
    copied = [_mapping(each) for each in approvals] if isinstance(approvals, list) else []
    return {str(each.get("uid")): str(each.get("name")) for each in copied}


def _compared(
    entry: Document,
    statements: Sequence[Document],
    names: Mapping[str, str],
    created: Sequence[Creation],
    passed_on_by: Collection[str],
) -> Compared:
    kind, actor = KINDS[str(entry.get("kind"))], str(entry.get("actor"))
    if not statements:
        return Compared(entry, Finding.UNKNOWN, f"the {kind.kind} that it binds is not in the files")
    meta, *others = [_mapping(each.get("metadata")) for each in statements]
    where = (kind.plural, str(meta.get("namespace")), str(meta.get("name")))
    named = f"{kind.kind} {meta.get('name')}"
    stamped = meta.get("creationTimestamp")
    for other in others:
        if (other.get("namespace"), other.get("name"), other.get("creationTimestamp")) != (
            meta.get("namespace"), meta.get("name"), stamped,
        ):  # fmt: skip
            return Compared(entry, Finding.UNKNOWN, f"{named} is in the files under two names or times of creation")
    uid = str(meta.get("uid"))
    if names.get(uid, where[-1]) != where[-1]:
        return Compared(
            entry, Finding.DIFFERS, f"{named} was renamed in the files: the incident has it as {names[uid]}"
        )
    same = [each for each in created if each.plural == kind.plural and each.uid == uid]
    there = same or [
        each for each in created if not each.uid and (each.plural, each.namespace, each.name) == where
    ]  # fmt: skip
    if not there:
        return Compared(entry, Finding.UNKNOWN, f"the log does not hold the creation of {named}")
    spec = _mapping(statements[0].get("spec"))
    by = [each for each in there if _in_time(each, stamped, entry.get("time"), spec.get("expiresAt"))]
    if not by:
        but = f"one at {there[0].began or there[0].ended} by {there[0].username}, which is another's by its time"
        return Compared(entry, Finding.UNKNOWN, f"the log does not hold the creation of {named}, but {but}")
    signed = bool(spec.get("signature"))
    found = [_by_whom(each, actor, named, signed=signed, passed_on_by=passed_on_by) for each in by]
    finding, detail = next((each for each in found if each[0] is not Finding.AGREES), found[0])
    return Compared(entry, finding, detail, tuple(by))


def _by_whom(
    creation: Creation, actor: str, named: str, *, signed: bool, passed_on_by: Collection[str]
) -> tuple[Finding, str]:
    """What one creation says of an entry with this actor."""
    by = f"{creation.actual}, acting as {creation.username}" if creation.actual else creation.username
    if creation.username == actor:
        return Finding.DIFFERS if creation.actual else Finding.AGREES, f"{named} was created by {by}"
    if not signed:
        return Finding.DIFFERS, f"{named} was created by {by}"
    unnamed = [each for each in (creation.actual, creation.username) if each and each not in passed_on_by]
    if not unnamed:
        return Finding.AGREES, f"{named}, signed, was passed on by {by} for {actor}"
    give = " ".join(f"--passed-on-by {each}" for each in unnamed)
    account = f"{named}, signed, was passed on for {actor} by {by}, an account that is not named"
    return Finding.DIFFERS, f"{account}; if it may, give {give}"


def _in_time(creation: Creation, stamped: Any, recorded: Any, expires: Any) -> bool:
    """Whether it may be of an object with this creationTimestamp, in an entry of that time, as far as each is known.

    Who renames a statement in a file can write another creationTimestamp too. When a decision expires is in its digest,
    and the admission policy lets nobody create one that expires later than within these hours.
    """
    began, ended = _time(creation.began), _time(creation.ended)
    first, last = began or ended, ended or began
    if first is None or last is None:
        return True
    at, entry, end = _time(stamped), _time(recorded), _time(expires)
    return (
        (at is None or (first - at <= STAMPED and at - last <= STAMPED))
        and (entry is None or first - entry <= CLOCKS)
        and (end is None or (first - end <= STAMPED and end - last <= STAMPED + timedelta(hours=APPROVAL_HOURS)))
    )


def _once(compared: list[Compared]) -> list[Compared]:
    """The same, but that no two entries lean on one creation: which of them it vouches for, nobody can tell."""
    taken: dict[Creation, tuple[str, ...]] = {}
    doubtful: set[Creation] = set()
    for each in sorted(compared, key=lambda found: len(found.leans_on)):
        free = next((one for one in each.leans_on if taken.get(one, each.key) == each.key), None)
        if free is not None:
            taken[free] = each.key
        else:
            doubtful.update(each.leans_on)
    return [
        replace(each, finding=Finding.DIFFERS, detail=f"{each.detail}, and another decision leans on that creation too")
        if each.finding is Finding.AGREES and doubtful.intersection(each.leans_on)
        else each
        for each in compared
    ]


def _told(compared: Compared) -> str:
    entry, finding = compared.entry, f"{compared.finding}: {line(compared.detail)}"
    if not entry:
        return finding
    fields = [moment(str(entry.get("time"))), *(line(str(entry.get(name))) for name in ("kind", "reason", "actor"))]
    return "  ".join([*fields, finding])


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


def _time(text: Any) -> datetime | None:
    try:
        return parse_rfc3339(str(text))
    except ValueError:
        return None


def _mapping(value: Any) -> Document:
    return value if isinstance(value, Mapping) else {}
