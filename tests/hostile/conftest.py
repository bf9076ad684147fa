"""The installation with its gateway and an operator, on a control plane of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from praxis.controlplane import ControlPlane
from praxis.demo.stack import Service, Stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Everything at work."""
    directory = tmp_path_factory.mktemp("hostile")
    services = [Service("hostile"), Service("spared")]
    with ControlPlane.start() as plane, Stack.up(plane, directory=directory, services=services) as running:
        running.start_operator()
        yield running
