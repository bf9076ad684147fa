"""What a case is, and where each module of this folder registers its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from praxis.api.base import Resource
from praxis.api.incident import Incident
from tests.api.lab import Lab

Attempt = Callable[[Lab], Awaitable[Any]]


@dataclass(frozen=True)
class Case:
    """An attempt that must be refused."""

    name: str
    rule: str | None
    says: str
    attempt: Attempt
    kind: type[Resource] = Incident


@dataclass(frozen=True)
class Allowed:
    """An attempt that must pass: the rules forbid no more than they say."""

    name: str
    attempt: Attempt


REFUSED: list[Case] = []
ALLOWED: list[Allowed] = []


def refused(rule: str | None, says: str, kind: type[Resource] = Incident) -> Callable[[Attempt], Attempt]:
    """Register a coroutine as a case, under its own name."""

    def register(attempt: Attempt) -> Attempt:
        REFUSED.append(Case(attempt.__name__, rule, says, attempt, kind))
        return attempt

    return register


def allowed(attempt: Attempt) -> Attempt:
    """Register a coroutine as an attempt that passes."""
    ALLOWED.append(Allowed(attempt.__name__, attempt))
    return attempt
