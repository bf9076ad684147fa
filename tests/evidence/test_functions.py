"""Function status: only named fields, never a value of the environment, only declared targets."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from praxis.api.target import RemediationTarget
from praxis.errors import DefinitelyNotApplied, NeedsPerson, PraxisError, RetryLater
from praxis.evidence import toolbox as tools
from praxis.evidence.contract import Observation, Scope
from praxis.evidence.reader import ReadOnlyKube
from praxis.evidence.toolbox import EvidenceToolbox
from praxis.machine import Phase
from tests import builders
from tests.evidence.clocks import StillClock

CREATED = 1769860800000 - 3_600_000
"""An hour before noon, milliseconds since 1970."""


class Reader:
    """Answers `known`, or raises it; `asked` is who was asked for, on which thread."""

    def __init__(self, known: Mapping[str, Any] | Exception) -> None:
        self.known = known
        self.asked: list[tuple[str, bool]] = []

    def describe(self, target: RemediationTarget) -> Mapping[str, Any]:
        """What the test says."""
        self.asked.append((target.metadata.name, threading.current_thread() is threading.main_thread()))
        if isinstance(self.known, Exception):
            raise self.known
        return self.known


KNOWN = {
    "state": "Active",
    "stateReason": "",
    "lastUpdateStatus": "Successful",
    "lastModifiedTime": "2026-01-31T10:00:00Z",
    "environmentNames": ["MODE", "DB_PASSWORD"],
    "environmentVariables": {"DB_PASSWORD": "hunter2"},
    "code": {"ossObjectName": "not-to-be-shown"},
    "instances": [{"id": "c-2", "created": CREATED + 1000}, {"id": "c-1", "created": CREATED}],
    "allInstancesListed": True,
}


def _scope(*targets: RemediationTarget) -> Scope:
    return Scope(incident=builders.incident(Phase.TRIAGED), targets=targets)


async def _status(reader: Reader, kube: ReadOnlyKube, scope: Scope, **arguments: str) -> Observation:
    box = EvidenceToolbox(kube=kube, functions=reader, clock=StillClock())
    return await box.call(scope, "function_status", json.dumps(arguments))


async def test_shows_state_names_and_instances(no_cluster: ReadOnlyKube) -> None:
    """The oldest instance first, with its age; names of the environment, and no field that is not named."""
    reader = Reader(KNOWN)

    seen = await _status(reader, no_cluster, _scope(builders.target()))

    assert seen.excerpt == (
        "function checkout in ap-southeast-1, qualifier LATEST\n"
        "state: Active\n"
        "lastUpdateStatus: Successful\n"
        "lastModifiedTime: 2026-01-31T10:00:00Z\n"
        "environment names: DB_PASSWORD, MODE\n"
        "active instances: 2\n"
        "  c-1 created 2026-01-31T11:00:00Z age 3600s\n"
        "  c-2 created 2026-01-31T11:00:01Z age 3599s"
    )
    assert seen.truncated is False
    assert reader.asked == [("checkout-fn", False)], "asked on a thread of its own"


async def test_no_function_has_neither_names_nor_instances(no_cluster: ReadOnlyKube) -> None:
    """Absent fields are left out, not invented."""
    seen = await _status(Reader({}), no_cluster, _scope(builders.target()))
    assert seen.excerpt == (
        "function checkout in ap-southeast-1, qualifier LATEST\nenvironment names: none\nactive instances: 0"
    )


async def test_an_incomplete_listing_says_so(no_cluster: ReadOnlyKube) -> None:
    """A count that is only a lower bound is not told as a count."""
    seen = await _status(Reader({**KNOWN, "allInstancesListed": False}), no_cluster, _scope(builders.target()))
    assert "active instances: 2 or more\n" in seen.excerpt
    assert seen.truncated


@pytest.mark.parametrize(("count", "shown"), [(63, 63), (64, 64), (65, 64)])
async def test_instances_are_bounded(no_cluster: ReadOnlyKube, count: int, shown: int) -> None:
    """Below, at and above the bound; the oldest stay."""
    instances = [{"id": f"c-{number:03}", "created": CREATED + number} for number in range(count)]

    seen = await _status(Reader({**KNOWN, "instances": instances}), no_cluster, _scope(builders.target()))

    assert seen.excerpt.count(" age ") == shown
    assert f"active instances: {count}\n" in seen.excerpt
    assert seen.truncated is (count > shown)


async def test_one_of_several_targets_must_be_named(no_cluster: ReadOnlyKube) -> None:
    """The name chooses; without it, or with another, nobody is asked."""
    reader = Reader(KNOWN)
    scope = _scope(builders.target(), builders.target("other-fn"))

    assert (await _status(reader, no_cluster, scope)).excerpt == (
        "error: name one of the incident's targets: checkout-fn, other-fn"
    )
    assert (await _status(reader, no_cluster, scope, target="third-fn")).excerpt.startswith("error: name one of")
    assert (await _status(reader, no_cluster, scope, target="other-fn")).excerpt.startswith("function checkout")
    assert [name for name, _ in reader.asked] == ["other-fn"]


async def test_a_target_of_another_namespace_is_out_of_scope(no_cluster: ReadOnlyKube) -> None:
    """Even if somebody put it into the scope."""
    reader = Reader(KNOWN)
    seen = await _status(reader, no_cluster, _scope(builders.target(namespace="bank")), target="checkout-fn")
    assert seen.excerpt == "error: name one of the incident's targets: none"
    assert reader.asked == []


@pytest.mark.parametrize(
    "error",
    [RetryLater("throttled"), NeedsPerson("the key is refused"), DefinitelyNotApplied("no such function")],
    ids=lambda error: type(error).__name__,
)
async def test_what_the_reader_raises_is_an_error_to_read(no_cluster: ReadOnlyKube, error: PraxisError) -> None:
    """An outage of the service does not end the diagnosis."""
    seen = await _status(Reader(error), no_cluster, _scope(builders.target()))
    assert seen.excerpt == f"error: {error}"


async def test_one_that_never_answers_is_given_up(no_cluster: ReadOnlyKube, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the tool's time limit; the thread ends on its own."""
    monkeypatch.setattr(tools, "FUNCTION_SECONDS", 0.05)
    released = threading.Event()

    class Slow(Reader):
        def describe(self, target: RemediationTarget) -> Mapping[str, Any]:
            released.wait(30)
            return super().describe(target)

    seen = await _status(Slow(KNOWN), no_cluster, _scope(builders.target()))
    released.set()
    await asyncio.get_running_loop().shutdown_default_executor()

    assert seen.excerpt == "error: no answer within 0.05 s"
