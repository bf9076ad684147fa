"""`make chaos`: kill, break, cancel and pause the controller at every point at which it waits, and check every run.

Ends with the line `chaos: N runs, V violations`; the exit code is 1 when there is a violation.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice

import click

from praxis.controlplane import ControlPlane
from praxis.demo.stack import install
from tests.chaos import table
from tests.chaos.lab import Result
from tests.chaos.matrix import Case, cases, recorded, recordings, size
from tests.chaos.workers import results

RECORDINGS = 2
"""Undisturbed runs of each kind: how often a read of the network waits is not always the same."""
PROGRESS_SECONDS = 1.0


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--runs", type=click.IntRange(1), default=10_000, show_default=True, help="How many runs.")
@click.option("--seed", type=int, default=1, show_default=True, help="Which cases, and in which order.")
@click.option("--case", "case_id", help="Run this one case, as a violation names it, --runs times (default 1).")
@click.option("--workers", type=click.IntRange(1, 16), default=2, show_default=True, help="Processes that run cases.")
@click.pass_context
def main(context: click.Context, runs: int, seed: int, case_id: str | None, workers: int) -> None:
    """Strike the controller at every await point in Executing, and check what must hold after every run."""
    with ControlPlane.start() as plane:
        click.echo("installing CRDs, policies and roles", err=True)
        install(plane)
        found = list(results(plane, recordings() * RECORDINGS, workers))
        if case_id is not None:
            given = context.get_parameter_source("runs") is not click.core.ParameterSource.DEFAULT
            chosen = [Case.parse(case_id)] * (runs if given else 1)
        else:
            places = recorded(found)
            click.echo(
                f"{size(places)} cases from {len(recordings())} kinds of undisturbed runs; seed {seed}", err=True
            )
            chosen = list(islice(cases(places, seed), runs))
        began = time.monotonic()
        struck = list(progress(results(plane, chosen, workers), len(chosen)))
        seconds = time.monotonic() - began
    wrong = [each for each in [*found, *struck] if each.violations]
    click.echo(table.outcomes(struck))
    click.echo(table.points(found, struck))
    click.echo(f"{len(struck) / seconds:.2f} runs a second")
    click.echo(table.violations(wrong, seed))
    click.echo(f"chaos: {len(struck)} runs, {sum(len(each.violations) for each in wrong)} violations")
    sys.exit(1 if wrong else 0)


def progress(given: Iterator[Result], total: int) -> Iterator[Result]:
    """Show on a terminal how far it is."""
    began = shown = time.monotonic()
    wrong = 0
    for number, result in enumerate(given, 1):
        wrong += len(result.violations)
        now = time.monotonic()
        if sys.stderr.isatty() and (now - shown > PROGRESS_SECONDS or number == total):
            shown = now
            left = (total - number) * (now - began) / number
            click.echo(f"\r{number}/{total} runs, {wrong} violations, {left / 60:.0f} min left   ", nl=False, err=True)
        yield result
    if sys.stderr.isatty():
        click.echo("", err=True)


if __name__ == "__main__":
    main()
