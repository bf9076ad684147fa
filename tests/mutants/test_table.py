"""The table of mutants is about the code as it stands; `make mutants` runs it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import COPIED, mutated
from tests.mutants.contract import Mutant
from tests.mutants.table import MUTANTS, SERVER

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.name)
def test_a_mutant_applies(mutant: Mutant) -> None:
    """Its guard stands exactly once where it says, and what is left without it is still a program."""
    whole = (ROOT / "operator/praxis" / mutant.file).read_text(encoding="utf-8")
    ast.parse(mutated(whole, mutant))
    assert mutant.tests


def test_names() -> None:
    """Every mutant has a name of its own, and invariants 1 to 6 have some each."""
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)
    assert {each.invariant for each in MUTANTS} == {1, 2, 3, 4, 5, 6}


def test_paths() -> None:
    """What is copied and run is there."""
    for path in (*COPIED, *SERVER, *(test for each in MUTANTS for test in each.tests)):
        assert (ROOT / path.split("::")[0]).exists(), path


def test_a_guard_that_is_not_there() -> None:
    """A mutant that has nothing to take out is an error, not a catch."""
    mutant = Mutant("m", 1, "machine.py", "no such guard", "", ("tests/api",))
    with pytest.raises(ValueError, match=r"m: machine.py holds 'no such guard' 0 times"):
        mutated("TRANSITIONS", mutant)
