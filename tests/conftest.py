"""What tests share: one real control plane a session, started when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from praxis.controlplane import ControlPlane

# How long an example takes says how busy the machine is, and nothing about the program.
settings.register_profile("praxis", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("praxis")


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """A real kube-apiserver and etcd, shared: a test keeps to namespaces of its own, and leaves the servers running."""
    with ControlPlane.start() as running:
        yield running
