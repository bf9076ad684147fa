"""Every guard that is taken out."""

from __future__ import annotations

from tests.mutants.approved_plan import APPROVED_PLAN
from tests.mutants.contract import Mutant
from tests.mutants.intent import INTENT
from tests.mutants.one_door import ONE_DOOR
from tests.mutants.one_write import ONE_WRITE
from tests.mutants.outcomes import OUTCOMES
from tests.mutants.people import PEOPLE

MUTANTS: tuple[Mutant, ...] = (*ONE_DOOR, *APPROVED_PLAN, *PEOPLE, *INTENT, *OUTCOMES, *ONE_WRITE)
SERVER = ("tests/api/test_rules.py::test_nothing_else_refuses", "tests/api/test_policies.py")
"""Tests that take the API server's own guards out, one each."""
