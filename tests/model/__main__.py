"""`python -m tests.model`: explore with more faults than the tests do, and print how much that was.

Ends with `model: S states, V violations`, and fails where there is one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from tests.model.explorer import Explored, Scenario, explore
from tests.model.looks import deterministic
from tests.model.scenarios import SCENARIOS


def main(arguments: Sequence[str]) -> int:
    """Returns how many violations there are, at most 1."""
    options = parsed(arguments)
    states = violations = 0
    for scenario in SCENARIOS:
        if options.only not in scenario.name:
            continue
        began = time.monotonic()
        with deterministic():
            found = explore(enlarged(scenario, options), most=options.states, deepest=options.depth)
        print(line(scenario, found, time.monotonic() - began), *found.violations, sep="\n", flush=True)
        states, violations = states + found.states, violations + len(found.violations)
    print(f"model: {states} states, {violations} violations")
    return min(violations, 1)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The bounds; what is not given is as in the tests."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--faults", type=int, help="how much may go wrong on one way, all in all")
    for name, what in (
        ("kills", "processes killed"),
        ("fates", "status writes lost, or their answers"),
        ("events", "changes by people and others"),
        ("jumps", "times that much time passes at once"),
    ):
        parser.add_argument(f"--{name}", type=int, help=what)
    parser.add_argument("--processes", type=int, choices=(1, 2), help="operators")
    parser.add_argument("--depth", type=int, help="steps on one way")
    parser.add_argument("--states", type=int, help="states of one scenario")
    parser.add_argument("--only", default="", help="scenarios whose names contain this")
    return parser.parse_args(arguments)


def enlarged(scenario: Scenario, options: argparse.Namespace) -> Scenario:
    """The scenario with the bounds that were given."""
    given = {
        name: value
        for name in ("faults", "kills", "fates", "events", "jumps")
        if (value := getattr(options, name)) is not None
    }
    processes = options.processes or scenario.processes
    return replace(scenario, processes=processes, budget=replace(scenario.budget, **given))


def line(scenario: Scenario, found: Explored, seconds: float) -> str:
    """What became of one scenario."""
    end = "" if found.whole else ", not all of it"
    return (
        f"{scenario.name}: {found.states} states, {found.transitions} transitions, depth {found.depth}, "
        f"{seconds:.0f} s, {len(found.violations)} violations{end}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
