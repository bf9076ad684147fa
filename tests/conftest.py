"""What tests share: one real control plane a session, started when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from praxis.controlplane import ControlPlane


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """A real kube-apiserver and etcd, shared: a test keeps to namespaces of its own, and leaves the servers running."""
    with ControlPlane.start() as running:
        yield running
