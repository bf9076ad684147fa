"""What `make chaos` prints."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from itertools import product

from tests.chaos.lab import Result
from tests.chaos.matrix import Behaviour, Part
from tests.chaos.tracing import ROOT, Fault

COLUMNS = ("Observing", "Investigated", "ReconciliationRequired", "Stalled")
CLIENT = "kube.py:"
SHOWN_VIOLATIONS = 50


def outcomes(results: Sequence[Result]) -> str:
    """A row for each fault and behaviour of the service: where incidents ended, what was dispatched, what was wrong."""
    titles = f"{'fault':<10} {'the service':<19} {'runs':>6} {'missed':>6} {'Observing':>9} {'Investigated':>12}"
    more = f"{'ReconciliationRequired':>22} {'Stalled':>7} {'other':>5} {'dispatches 0':>12} {'1':>6} {'>1':>4}"
    lines = [f"{titles} {more} {'violations':>10}"]
    for fault, behaviour in product(Fault, Behaviour):
        of = [each for each in results if each.case.fault is fault and each.case.behaviour is behaviour]
        if of:
            lines.append(f"{fault:<10} {behaviour:<19} {_counts(of)}")
    lines.append(f"{'all':<10} {'':<19} {_counts(results)}")
    for part in Part:
        of = [each for each in results if each.case.part is part]
        if of:
            lines.append(f"{'part':<10} {part:<19} {_counts(of)}")
    for replicas in sorted({each.case.replicas for each in results}):
        of = [each for each in results if each.case.replicas == replicas]
        lines.append(f"{f'{replicas} replica' + 's' * (replicas > 1):<30} {_counts(of)}")
    claims = sum(each.foreign_claim for each in results)
    lines.append(
        f"missed: the point was not reached that often this time; claims that never became an intent: {claims}"
    )
    return "\n".join(lines)


def _counts(of: Sequence[Result]) -> str:
    places = Counter(each.place for each in of)
    sent = Counter(min(each.dispatches, 2) for each in of)
    missed = sum(each.case.fault is not None and not each.struck for each in of)
    other = sum(count for place, count in places.items() if place not in COLUMNS)
    return (
        f"{len(of):>6} {missed:>6} {places['Observing']:>9} {places['Investigated']:>12} "
        f"{places['ReconciliationRequired']:>22} {places['Stalled']:>7} {other:>5} {sent[0]:>12} {sent[1]:>6} "
        f"{sent[2]:>4} {sum(len(each.violations) for each in of):>10}"
    )


def points(recorded: Sequence[Result], results: Sequence[Result]) -> str:
    """Every await point that was found, how often it was struck, and what was never waited at."""
    chains = {point: chain for each in recorded for point, chain in each.chains.items()}
    struck = Counter(each.case.place.point for each in results if each.struck and each.case.place)
    lines = ["", "await points found (struck so often):"]
    lines += [f"{struck[point]:>6}  {point}  {where(chain)}" for point, chain in sorted(chains.items(), key=_place)]
    never = [point for point in chains if not struck[point]]
    lines.append(f"{len(chains)} await points, {len(never)} of them never struck{': ' * bool(never)}{', '.join(never)}")
    unseen = never_waited_at(list(chains.values()))
    lines.append(f"awaits in the same files at which no undisturbed run in Executing waited: {', '.join(unseen)}")
    return "\n".join(lines)


def where(chain: str) -> str:
    """`phases/gate.py:72 installation_differs > controller/cluster.py:158 KubeCluster._installed`."""
    frames = [each for each in chain.split(" > ") if not each.startswith(CLIENT)]
    return " > ".join(frames[-3:])


def _place(item: tuple[str, str]) -> str:
    return where(item[1])


def never_waited_at(chains: Sequence[str]) -> list[str]:
    """The `await`s, by file and line, of the files that the chains lead through, at which none of them waited."""
    waited: dict[str, set[int]] = {}
    for frame in {frame for chain in chains for frame in chain.split(" > ") if frame}:
        file, _, line = frame.split(" ")[0].partition(":")
        waited.setdefault(file, set()).add(int(line))
    return [
        f"{file}:{node.lineno}"
        for file, lines in sorted(waited.items())
        for node in ast.walk(ast.parse((ROOT / file).read_text()))
        if isinstance(node, ast.Await) and not lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    ]


def violations(wrong: Sequence[Result], seed: int) -> str:
    """Each with the case that shows it again."""
    lines: list[str] = []
    for each in wrong[:SHOWN_VIOLATIONS]:
        again = f'make chaos ARGS="--case {each.case.id} --runs 20"'
        lines += [f"VIOLATION {each.case.id} (seed {seed}; again: {again})"]
        lines += [f"    {text}" for text in [*each.violations, *each.story]]
    if len(wrong) > SHOWN_VIOLATIONS:
        lines.append(f"… and {len(wrong) - SHOWN_VIOLATIONS} more runs with violations")
    return "\n".join(lines)
