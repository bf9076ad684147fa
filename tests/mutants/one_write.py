"""Guards of invariant 6: one real write."""

from __future__ import annotations

from tests.mutants.contract import EXECUTION, FUNCTION, PLAN, Mutant

ONE_WRITE = (
    Mutant(
        "a real action on what is disposable, at the gate",
        6,
        "phases/gate.py",
        "    if not target.spec.disposable:\n",
        "    if False:\n",
        EXECUTION,
    ),
    Mutant(
        "a real action on what is disposable, when planned",
        6,
        "actions/catalogue.py",
        "if entry.real and not target.spec.disposable:",
        "if False:",
        PLAN,
    ),
    Mutant(
        "a real action on what is disposable, when sent",
        6,
        "actions/function_compute/adapter.py",
        "        if not target.spec.disposable:\n",
        "        if False:\n",
        FUNCTION,
    ),
    Mutant(
        "one real type",
        6,
        "api/plan.py",
        "REAL = frozenset({ActionType.RESTART_FUNCTION})",
        "REAL = frozenset({ActionType.RESTART_FUNCTION, ActionType.UPDATE_CONFIG})",
        ("tests/actions/test_catalogue.py", "tests/phases/test_executing.py", "tests/phases"),
    ),
    Mutant(
        "one real action in a plan",
        6,
        "api/plan.py",
        "if sum(action.real for action in self.actions) > 1:",
        "if False:",
        ("tests/api", *PLAN),
    ),
    Mutant(
        "real as the catalogue says",
        6,
        "api/plan.py",
        "if self.real != (self.type in REAL):",
        "if False:",
        ("tests/api", *PLAN),
    ),
    Mutant(
        "the tier as the catalogue says",
        6,
        "api/plan.py",
        "if self.tier != TIERS[self.type]:",
        "if False:",
        ("tests/api", *PLAN),
    ),
    Mutant(
        "the tier as proposed", 6, "actions/catalogue.py", "    if tier is not entry.tier:\n", "    if False:\n", PLAN
    ),
    Mutant(
        "a dry run sends nothing",
        6,
        "phases/executing.py",
        "    if not following.real:\n        return dry_run(incident, following, tools)\n",
        "",
        EXECUTION,
    ),
    Mutant(
        "dry runs are no remedy",
        6,
        "phases/executing.py",
        "    if Result.APPLIED in results:\n        return Transition(\n            to=Phase.OBSERVING",
        "    if True:\n        return Transition(\n            to=Phase.OBSERVING",
        EXECUTION,
    ),
    Mutant(
        "a declared target of this namespace",
        6,
        "phases/investigated.py",
        "target = by_name.get(each.target)",
        "target = by_name.get(each.target, targets[0])",
        PLAN,
    ),
    Mutant("a dry run says so", 6, "actions/catalogue.py", 'f"DRY RUN: would {clause}', 'f"Would {clause}', PLAN),
)
