"""`praxis records export`: an incident's full records out of the flight recorder's file, for `praxis trail`.

It runs where the file is, in the operator's pod. The operator serves no records over HTTP: its probes and metrics ask
for no identity, and records tell what a model was told.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from praxis.cli.record_files import stored
from praxis.cli.statement import fail
from praxis.settings import OperatorSettings

USAGE = 2


@click.group()
def command() -> None:
    """Read the operator's flight recorder."""


@command.command()
@click.argument("uid")
@click.option("--path", type=click.Path(path_type=Path, dir_okay=False), help="Else PRAXIS_RECORDER__PATH.")
def export(*, uid: str, path: Path | None) -> None:
    """Write the records of the incident with this UID as one JSON List, for `praxis trail export|verify`.

    Damaged records are written too: verifying names them. Each replica of the operator has a file of its own.
    """
    file = path or OperatorSettings().recorder.path
    try:
        records = stored(file, uid)
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    except ValueError as error:
        fail(str(error))
    if not records:
        fail(f"{file} holds no records of incident {uid}")
    items = [each.exported() for each in records]
    click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
