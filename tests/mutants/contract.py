"""What a mutant is: one guard of an invariant, taken out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One guard of the invariant with this number, replaced in one place by what does not guard.

    `file` is below `operator/praxis`; `guard` stands there exactly once. `tests` are asked until one fails.
    """

    name: str
    invariant: int
    file: str
    guard: str
    without: str
    tests: tuple[str, ...]


APPROVAL = ("tests/approval",)
GATE = ("tests/approval", "tests/phases/test_gate.py")
EXECUTION = (
    "tests/phases/test_executing.py",
    "tests/phases/test_send.py",
    "tests/phases/test_holding.py",
    "tests/phases/test_gate.py",
    "tests/phases/test_endings.py",
    "tests/phases/test_integrity.py",
)
WRITER = ("tests/controller/test_status.py", "tests/controller/test_writer.py")
PLAN = (
    "tests/api/test_plan.py",
    "tests/phases/test_investigated.py",
    "tests/actions/test_catalogue.py",
    "tests/reasoning",
)
FUNCTION = (
    "tests/actions/test_dispatch.py",
    "tests/actions/test_faults.py",
    "tests/actions/test_verification.py",
    "tests/actions/test_observe.py",
)
