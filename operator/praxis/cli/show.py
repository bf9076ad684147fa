"""`praxis show INCIDENT`: everything that is known of an incident, for a terminal or as the stored document."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from praxis.cli.integrity import faults
from praxis.cli.statement import Connection, connection_options, write
from praxis.cli.story import tell
from praxis.cli.terminal import Screen

EXIT_CODES = """\b
Exit codes:
  0  shown
  1  not found, not allowed, or the incident is not what its digests and trail say
  2  wrong usage
"""


@click.command(epilog=EXIT_CODES)
@click.argument("incident")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["wide", "json", "yaml"]),
    help="wide: whole excerpts and every digest; json, yaml: the stored document.",
)
@connection_options
def command(
    *, incident: str, output: str | None, namespace: str | None, kubeconfig: Path | None, context: str | None
) -> None:
    """Show an incident: alerts, evidence, diagnosis, plan, steps with their proof, and the trail.

    Recomputes the plan's digest and the trail's hashes, and says where they do not hold.
    """
    with Connection(kubeconfig, context, namespace).open() as cluster:
        found = cluster.incident(incident)
    if output in ("json", "yaml"):
        found.document.get("metadata", {}).pop("managedFields", None)
        write(found.document, output)
    else:
        tell(Screen(), found, wide=output == "wide")
    sys.exit(1 if faults(found) else 0)
