"""`make mutants`: take each guard of invariants 1 to 6 out, and name the test that notices.

A guard in the code is taken out of a copy of the tree, in which the tests then run. A CEL rule or a validation of a
policy is taken out of a running API server (`test_rules.py`, `test_policies.py`), where an attempt must then pass that
was refused before.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from xml.etree import ElementTree

import click

from tests.mutants.contract import Mutant
from tests.mutants.table import MUTANTS, SERVER

ROOT = Path(__file__).parents[2]
COPIED = ("operator", "tests", "crds", "manifests", "overlays", "docs", "deploy", "pyproject.toml", "README.md")
WORKERS = 2
"""Copies of the tree in which tests run at once."""
MUTANT_SECONDS = 240
"""For the tests of one file; without a guard a program may also never end."""
SERVER_SECONDS = 1800
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    """What became of a mutant: the test that caught it, or None."""

    name: str
    invariant: str
    caught_by: str | None


@click.command()
@click.option("-k", "only", default="", help="Only mutants whose name contains this.")
@click.option("--workers", type=click.IntRange(1), default=WORKERS, show_default=True, help="Test runs at once.")
def main(*, only: str, workers: int) -> None:
    """Take out each guard in turn; exit code 1 when one is not missed."""
    chosen = [each for each in MUTANTS if only in each.name]
    results: list[Result] = []
    with copies(workers) as free, ThreadPoolExecutor(workers) as pool:
        for result in pool.map(lambda mutant: tried(mutant, free), chosen):
            tell(result)
            results.append(result)
    for result in on_the_server(only):
        tell(result)
        results.append(result)
    caught = sum(each.caught_by is not None for each in results)
    click.echo(f"mutants: {caught} of {len(results)} caught")
    sys.exit(0 if caught == len(results) > 0 else 1)


def tell(result: Result) -> None:
    """One line for each."""
    verdict = f"caught by {result.caught_by}" if result.caught_by else "NOT CAUGHT"
    click.echo(f"{result.invariant:>6}  {result.name}: {verdict}")


@contextmanager
def copies(count: int) -> Iterator[SimpleQueue[Path]]:
    """Copies of the tree; whoever takes one gives it back as it was."""
    free: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="praxis-mutants-") as directory:
        for number in range(count):
            copy = Path(directory) / str(number)
            for name in COPIED:
                source = ROOT / name
                if source.is_dir():
                    shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    copy.mkdir(exist_ok=True)
                    shutil.copy(source, copy / name)
            free.put(copy)
        yield free


def tried(mutant: Mutant, free: SimpleQueue[Path]) -> Result:
    """Run the tests without the guard."""
    copy = free.get()
    try:
        file = copy / "operator/praxis" / mutant.file
        whole = file.read_text(encoding="utf-8")
        file.write_text(mutated(whole, mutant), encoding="utf-8")
        try:
            caught_by = failing(copy, mutant.tests)
        finally:
            file.write_text(whole, encoding="utf-8")
    finally:
        free.put(copy)
    return Result(mutant.name, str(mutant.invariant), caught_by)


def mutated(whole: str, mutant: Mutant) -> str:
    """The file without the guard. Raises ValueError: the guard does not stand there exactly once."""
    count = whole.count(mutant.guard)
    if count != 1:
        raise ValueError(f"{mutant.name}: {mutant.file} holds {mutant.guard!r} {count} times")
    return whole.replace(mutant.guard, mutant.without)


def failing(copy: Path, tests: tuple[str, ...]) -> str | None:
    """The first test that fails in a copy, None when all pass."""
    for test in tests:
        try:
            done = pytest(copy, "-x", "-q", "--no-header", "-p", "no:cacheprovider", test, seconds=MUTANT_SECONDS)
        except subprocess.TimeoutExpired:
            return f"{test} (it does not end)"
        found = FAILED.search(done.stdout)
        if done.returncode != 0:
            # A collection that breaks is a catch, too: nothing of the mutant could be installed.
            return found[1] if found else f"{test} (exit code {done.returncode})"
    return None


def pytest(directory: Path, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run tests in a tree, which then is the one that is imported."""
    path = os.pathsep.join([str(directory / "operator"), str(directory)])
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def on_the_server(only: str) -> list[Result]:
    """CEL rules and policies: each test takes one out, and says in `caught_by` which attempt then passed."""
    with tempfile.TemporaryDirectory(prefix="praxis-mutants-") as directory:
        report = Path(directory) / "report.xml"
        done = pytest(ROOT, "-q", f"--junitxml={report}", "-o", "junit_family=xunit1", *SERVER, seconds=SERVER_SECONDS)
        if not report.exists():
            raise click.ClickException(done.stdout + done.stderr)
        cases = ElementTree.parse(report).getroot().iter("testcase")
        results = [result for case in cases if (result := of_case(case)) is not None]
    return [each for each in results if only in each.name]


def of_case(case: ElementTree.Element) -> Result | None:
    """A test of the report; None of one that passed and takes nothing out."""
    properties = {each.get("name"): each.get("value") for each in case.iter("property")}
    failed = case.find("failure") is not None or case.find("error") is not None
    if "guard" not in properties and not failed:
        return None
    name = properties.get("guard") or str(case.get("name"))
    return Result(name, "server", None if failed else properties.get("caught_by"))


if __name__ == "__main__":
    main()
