"""`make chaos`: kill, break, cancel and pause the controller at every point at which it waits, and check every run.

Ends with the line `chaos: N runs, V violations`; the exit code is 1 when there is a violation.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice

import click

from praxis.controlplane import ControlPlane
from praxis.demo.stack import install
from tests.chaos import table
from tests.chaos.lab import Result
from tests.chaos.matrix import Case, cases, recorded, recordings, size
from tests.chaos.workers import results

RUNS = 10_000
PROGRESS_SECONDS = 1.0


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--runs", type=click.IntRange(1), help=f"How many runs; {RUNS}, or 1 of a --case.")
@click.option("--seed", type=int, default=1, show_default=True, help="Which cases, and in which order.")
@click.option("--case", "case_id", help="Run this one case, as a violation names it.")
@click.option("--only", default="", help="Only cases whose id contains this: paused, heir/3, goes-dark …")
@click.option("--workers", type=click.IntRange(1, 16), default=2, show_default=True, help="Processes that run cases.")
def main(*, runs: int | None, seed: int, case_id: str | None, only: str, workers: int) -> None:
    """Strike the controller at every await point in Executing, and check what must hold after every run."""
    with ControlPlane.start() as plane:
        click.echo("installing CRDs, policies and roles", err=True)
        install(plane)
        found = list(results(plane, recordings(), workers))
        if case_id is not None:
            chosen = [Case.parse(case_id)] * (runs or 1)
        elif any(each.violations for each in found):
            click.echo("undisturbed runs are wrong already: nothing is struck", err=True)
            chosen = []
        else:
            chosen = choose(found, runs or RUNS, seed, only)
        began = time.monotonic()
        struck = list(progress(results(plane, chosen, workers), len(chosen)))
        seconds = time.monotonic() - began
    wrong = [each for each in [*found, *struck] if each.violations]
    click.echo(table.outcomes(struck))
    click.echo(table.points(found, struck))
    click.echo(f"{len(found)} undisturbed runs; then {len(struck)} in {seconds:.0f} s")
    click.echo(table.violations(wrong, seed))
    click.echo(f"chaos: {len(struck) or len(found)} runs, {sum(len(each.violations) for each in wrong)} violations")
    sys.exit(1 if wrong else 0)


def choose(found: Sequence[Result], runs: int, seed: int, only: str) -> list[Case]:
    """The first so many of the matrix, in the order of the seed."""
    places = recorded(found)
    click.echo(f"{size(places)} cases from {len(found)} kinds of undisturbed runs; seed {seed}", err=True)
    if not any(only in each.id for each in islice(cases(places, seed), size(places))):
        raise click.BadParameter("no case is called so", param_hint="--only")
    return list(islice((each for each in cases(places, seed) if only in each.id), runs))


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
