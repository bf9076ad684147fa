"""Operators and the gateway as processes of their own, on a control plane of their own, to be killed and paused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from praxis.controlplane import ControlPlane
from praxis.demo.stack import QUICK, Service, Stack

SETTINGS = {
    **QUICK,
    "PRAXIS_ACTIONS__VERIFY_DEADLINE": "8",
    "PRAXIS_ACTIONS__DISPATCH_WINDOW": "3",
    "PRAXIS_ACTIONS__REQUEST_TIMEOUT": "3",
}
SERVICES = tuple(Service(f"svc{number}") for number in range(32))


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The installation with gateway, emulator and model, without an operator: each test starts its own."""
    directory = tmp_path_factory.mktemp("house")
    with (
        ControlPlane.start() as plane,
        Stack.up(plane, directory=directory, services=SERVICES, settings=SETTINGS) as stack,
    ):
        yield stack


@pytest.fixture
def stack(house: Stack) -> Iterator[Stack]:
    """The house; operators that a test started are stopped after it."""
    before = len(house.started)
    yield house
    while len(house.started) > before:
        house.started.pop().stop()


@pytest.fixture(scope="session")
def service() -> Callable[[], Service]:
    """A service, with a function and a target of its own, that no test has used yet."""
    unused = iter(SERVICES)
    return lambda: next(unused)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Where a demo writes its report."""
    return tmp_path / "report.json"
