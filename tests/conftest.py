"""What tests share: one real control plane a session, started when the first test asks for it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from praxis.controlplane import ControlPlane

# How long an example takes says how busy the machine is, and nothing about the program.
settings.register_profile("praxis", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("praxis")

# A shell starts what it puts into the background with SIGINT ignored, and everything started from there inherits that:
# tests that interrupt a program would wait for it forever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """A real kube-apiserver and etcd, shared: a test keeps to namespaces of its own, and leaves the servers running."""
    with ControlPlane.start() as running:
        yield running
