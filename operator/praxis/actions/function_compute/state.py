"""The digest of a function's configuration: what a plan pins, and what must not have changed at the send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from praxis.api import bounds
from praxis.digest import canonical, keyed_digest

VOLATILE: Final = frozenset(
    {
        "requestId",
        "lastModifiedTime",
        "lastUpdateStatus",
        "lastUpdateStatusReason",
        "lastUpdateStatusReasonCode",
        "state",
        "stateReason",
        "stateReasonCode",
    }
)
"""Fields of GetFunction that change without anybody changing the configuration. All others count, known to us or not:
a field that a newer service adds may void a plan, never slip past one."""
ENVIRONMENT: Final = "environmentVariables"
PART_NAME: Final = 120
PART_DIGITS: Final = 16
"""Hex digits of a part's digest: enough to see that it changed; whether anything did is the whole digest's to say."""


def environment_digests(key: bytes, environment: Mapping[str, str]) -> dict[str, str]:
    """Each variable's value as a keyed digest."""
    return {name: keyed_digest(key, value) for name, value in environment.items()}


def configuration_digest(key: bytes, function: Mapping[str, Any]) -> str:
    """A keyed digest of a GetFunction answer without its volatile fields.

    The marker of an earlier restart counts like any other variable. So a plan that was drafted before somebody else's
    restart drifts (what it rests on is gone), and an earlier request of ours that lands late, between the last look and
    the send, is seen. Keyed as a whole, since more than the environment may hold secrets: a registry's password is part
    of a custom container's configuration.

    Raises:
        ValueError: the answer has no canonical form.
    """
    return keyed_digest(key, canonical(_configuration(key, function)).decode())


def configuration_parts(key: bytes, function: Mapping[str, Any]) -> list[str]:
    """`NAME=DIGITS` for each field of the configuration and each variable of its environment, sorted and bounded.

    Raises:
        ValueError: as `configuration_digest`.
    """
    configuration = _configuration(key, function)
    environment = configuration.pop(ENVIRONMENT)
    parts = {**configuration, **{f"{ENVIRONMENT}.{name}": value for name, value in environment.items()}}
    # With the name in it: two variables of the same value must not show that they are.
    digits = {
        name: keyed_digest(key, canonical([name, value]).decode()).partition(":")[2] for name, value in parts.items()
    }
    return [f"{name[:PART_NAME]}={digits[name][:PART_DIGITS]}" for name in sorted(parts)][: bounds.PARTS]


def _configuration(key: bytes, function: Mapping[str, Any]) -> dict[str, Any]:
    document = {name: value for name, value in function.items() if name not in VOLATILE}
    document[ENVIRONMENT] = environment_digests(key, function.get(ENVIRONMENT) or {})
    return document
