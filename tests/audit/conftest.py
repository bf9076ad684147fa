"""A house with an audit log, in which everything was done that PRAXIS' roles are for, each by whom it is meant for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from praxis.controlplane import ControlPlane
from praxis.demo.stack import Service, Stack
from tests.audit.lives import SERVICES, SETTINGS, Done, everything


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """After it, with nobody at work."""
    with ExitStack() as opened:
        plane = opened.enter_context(ControlPlane.start())
        directory = tmp_path_factory.mktemp("audit")
        stack = opened.enter_context(
            Stack.up(plane, directory=directory, services=[Service(each) for each in SERVICES], settings=SETTINGS)
        )
        yield everything(stack)
