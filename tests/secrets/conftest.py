"""A house in which everything was said that must not be repeated, on a control plane of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from praxis.controlplane import ControlPlane
from tests.secrets.life import House, lived


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """After every life, still running."""
    with ControlPlane.start() as plane, lived(plane, tmp_path_factory.mktemp("secrets")) as house:
        yield house
