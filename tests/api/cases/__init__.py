"""Every way round every rule, each as one attempt on a real API server, and what the server says to it.

`rule` names the rule that must refuse (None: the schema itself does); `says` is what it says. For every rule there is
at least one case which nothing else refuses: `test_rules.py` drops the rule and sees the case pass.
"""

from __future__ import annotations

from tests.api.cases import decisions, door, phases, plan, spec, steps, targets, trail
from tests.api.cases.contract import ALLOWED, REFUSED, Allowed, Attempt, Case

__all__ = [
    "ALLOWED",
    "REFUSED",
    "Allowed",
    "Attempt",
    "Case",
    "decisions",
    "door",
    "phases",
    "plan",
    "spec",
    "steps",
    "targets",
    "trail",
]
