"""`make faults`: incidents live through storms on the API, and every life is checked.

Ends with the line `faults: N runs, V violations`; the exit code is 1 when there is a violation.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from pathlib import Path

import click

from praxis.controlplane import ControlPlane
from praxis.demo.stack import install
from tests.faults.campaign import campaign


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--runs", type=click.IntRange(1), default=64, show_default=True, help="How many incidents' lives.")
@click.option("--seed", type=int, default=1, show_default=True, help="Which faults are drawn.")
@click.option("-v", "--verbose", is_flag=True, help="Show what operators log.")
def main(*, runs: int, seed: int, verbose: bool) -> None:
    """Spoil what passes between operators and the API server, and check what must hold after every incident's life."""
    logging.basicConfig(level=logging.WARNING if verbose else logging.CRITICAL)
    began = time.monotonic()
    with ControlPlane.start() as plane, tempfile.TemporaryDirectory(prefix="praxis-faults-") as directory:
        install(plane)
        outcome = asyncio.run(campaign(plane, Path(directory), runs=runs, seed=seed))
    for title, counted in (("faults", outcome.hits), ("ends", outcome.ends)):
        click.echo(title)
        for what, count in sorted(counted.items()):
            click.echo(f"  {count:6}  {what}")
    seconds = time.monotonic() - began
    click.echo(f"{outcome.dispatches} dispatches, {outcome.restarts} restarts of operators, {seconds:.0f} s")
    for each in outcome.violations:
        click.echo(f"VIOLATION {each}")
    click.echo(f"faults: {outcome.runs} runs, {len(outcome.violations)} violations")
    sys.exit(1 if outcome.violations else 0)


if __name__ == "__main__":
    main()
