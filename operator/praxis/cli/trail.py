"""`praxis trail export|verify`: an incident's chain of decisions, taken out of the cluster and proved without it.

The full records are in the operator's flight recorder, a file in its pod: `praxis records export` writes them out
there, and both commands take what it wrote, or a copy of the file itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import GROUP, Resource
from praxis.api.incident import Incident
from praxis.cli.bindings import State, mapping
from praxis.cli.cluster import UserCluster
from praxis.cli.documents import objects, yaml_text
from praxis.cli.record_files import imported, is_store, stored, stores_in
from praxis.cli.statement import Connection, connection_options, fail
from praxis.cli.terminal import Screen, line, moment
from praxis.cli.verification import Report, Verified, verify
from praxis.errors import Refused
from praxis.kube import Document
from praxis.recorder.contract import Record

HOLDS, BROKEN, USAGE = 0, 1, 2
STATEMENTS: tuple[type[Resource], ...] = (IncidentApproval, IncidentReconciliation)
EXPORT_EXIT_CODES = """\b
Exit codes:
  0  written
  1  not found, not allowed, or the API server could not be asked
  2  wrong usage
"""
VERIFY_EXIT_CODES = f"""\b
Exit codes:
  {HOLDS}  every trail holds; records that are absent are named
  {BROKEN}  a trail is broken, a record differs from what its entry binds, or, with --require-records, one is absent
  {USAGE}  wrong usage: a file that cannot be read, or no Incident in it
"""

records_option = click.option(
    "--records",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Full records: a copy of the flight recorder's file, what `praxis records export` wrote, or a directory of "
    "these. Give it again for each replica.",
)


@click.group()
def command() -> None:
    """Export an incident's trail, and verify exported ones offline."""


@command.command(epilog=EXPORT_EXIT_CODES)
@click.argument("incident")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    default="-",
    help="Write to this file, as JSON when it ends with .json; else YAML to stdout.",
)
@records_option
@connection_options
def export(
    *,
    incident: str,
    target: Path,
    records: Sequence[Path],
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Write a List of the incident, of what people said about it, and of its records: all that the trail binds.

    What you may not read is left out and named on stderr. The records are in the operator's flight recorder: give what
    `kubectl exec -n praxis-system OPERATOR-POD -- praxis records export UID` wrote, or a copy of its file.
    """
    with Connection(kubeconfig, context, namespace).open() as cluster:
        items = exported(cluster, incident)
    uid = items[0]["metadata"]["uid"]
    kept = [each for each in read_records(records, uid) if each.incident == uid]
    if not kept:
        click.echo(
            f"Note: the full records are left out: model runs, and plans that were replaced; give them with --records. "
            f"In the operator's pod: praxis records export {uid}",
            err=True,
        )
    items += [each.exported() for each in kept]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    text = json.dumps(document, indent=2) + "\n" if target.suffix == ".json" else yaml_text(document)
    try:
        with click.open_file(str(target), "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        fail(f"{target} cannot be written: {error.strerror}")


@command.command("verify", epilog=VERIFY_EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--head", help="The hash of the last entry as it was noted elsewhere; for one incident.")
@records_option
@click.option("--require-records", is_flag=True, help="An absent record is a failure.")
def verify_command(*, files: Sequence[Path], head: str | None, records: Sequence[Path], require_records: bool) -> None:
    """Recompute every hash of the trails in FILES, and compare the records that are there with what the entries bind.

    Takes what `praxis trail export`, `praxis records export` or `kubectl get incident NAME -o yaml` wrote, several
    documents, Lists; - is stdin. Needs no cluster. One line for each entry, then one for each absent record.
    """
    found = [each for file in files for each in read(file)]
    kept = [*records_among(found, files), *read_records(records)]
    incidents = [each for each in found if of_kind(each, Incident)]
    statements = [each for each in found if any(of_kind(each, kind) for kind in STATEMENTS)]
    if not incidents:
        fail(f"there is no Incident of {GROUP} in {', '.join(map(str, files))}", USAGE)
    if head is not None and len(incidents) != 1:
        raise click.UsageError(f"--head is the head of one incident; there are {len(incidents)}")
    screen = Screen()
    reports = [verify(each, statements, kept) for each in incidents]
    good = [tell(screen, each, head) for each in reports]
    absent = require_records and any(each.missing for each in reports)
    sys.exit(HOLDS if all(good) and not absent else BROKEN)


def exported(cluster: UserCluster, name: str) -> list[Document]:
    """The incident and the statements on it. Raises Refused when the incident cannot be read, RetryLater."""
    # Statements first: a verdict follows the entry that records it, so no entry can be missing for what was read here.
    listed = [each for kind in STATEMENTS for each in readable(cluster, kind)]
    incident = cluster.incident(name).document
    uid = incident["metadata"]["uid"]
    items = [incident, *(each for each in listed if mapping(each["spec"].get("incidentRef")).get("uid") == uid)]
    for each in items:
        each.get("metadata", {}).pop("managedFields", None)
    return items


def readable(cluster: UserCluster, kind: type[Resource]) -> list[Document]:
    """Every object of a kind, with its kind named; none when the user may not read them, which is said."""
    try:
        items = cluster.items(kind)
    except Refused as error:
        click.echo(f"Note: {kind.plural} are left out: {line(str(error))}", err=True)
        return []
    # The API server leaves kind and version out of the items of a list.
    return [{"apiVersion": f"{GROUP}/v1alpha1", "kind": kind.kind, **each} for each in items]


def read(file: Path) -> list[dict[str, Any]]:
    """The objects in a file; ends the command when it cannot be read."""
    try:
        with click.open_file(str(file), encoding="utf-8") as stream:
            return objects(stream.read())
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}", USAGE)
    except ValueError as error:
        fail(f"{file} cannot be read: {error}", USAGE)


def read_records(paths: Sequence[Path], uid: str | None = None) -> list[Record]:
    """The records in stores and exported files, of one incident or of all; ends the command when one cannot be read."""
    found: list[Record] = []
    for path in paths:
        try:
            for each in stores_in(path):
                found += stored(each, uid) if is_store(each) else records_among(read(each), [each])
        except OSError as error:
            fail(f"{path} cannot be read: {error.strerror}", USAGE)
        except ValueError as error:
            fail(str(error), USAGE)
    return found


def records_among(objects: Sequence[Document], files: Sequence[Path]) -> list[Record]:
    """The records among the objects of files; ends the command when one is none, though it says so."""
    try:
        return imported(objects)
    except ValueError as error:
        fail(f"{', '.join(map(str, files))}: {error}", USAGE)


def of_kind(document: Document, kind: type[Resource]) -> bool:
    """Whether it is an object of this kind, of any version."""
    return document.get("kind") == kind.kind and str(document.get("apiVersion")).split("/")[0] == GROUP


def tell(screen: Screen, report: Report, head: str | None) -> bool:
    """One line for each entry, then what came out; whether it holds."""
    screen.paragraph(f"{line(report.key)}, uid {line(report.uid)}", indent=0)
    for entry in report.entries:
        screen.paragraph(entry_line(entry), style="" if entry.vouched and not entry.problem else "bold red")
    problems = report.problems
    if head is not None and head != report.head:
        problems = [*problems, f"the head is {report.head or 'absent'}, not {head}: entries were dropped or added"]
    if problems:
        for each in problems:
            screen.paragraph(f"BROKEN  {line(report.key)}: {line(each)}", style="bold red", indent=0)
        return False
    for each in report.missing:
        screen.paragraph(f"absent  {line(each)}", style="yellow", indent=0)
    counts = f"{report.count(State.MATCHES)} records match, {len(report.missing)} are absent"
    screen.paragraph(
        f"HOLDS  {line(report.key)}: {len(report.entries)} entries, {counts}; head {line(report.head) or 'none'}",
        style="green",
        indent=0,
    )
    return True


def entry_line(verified: Verified) -> str:
    """`3  time  kind  phase  reason  actor  ok, matches: plan 0123456789ab`."""
    entry = verified.entry
    fields = [line(str(entry.get(name, "?"))) for name in ("kind", "phase", "reason", "actor")]
    if not verified.vouched:
        said = "not vouched for: the chain is broken before it"
    elif verified.problem:
        said = f"BROKEN: {verified.problem}"
    else:
        said = f"ok, {verified.binding}"
    return "  ".join([f"{verified.index:>2}", moment(str(entry.get("time", "?"))), *fields, line(said)])
