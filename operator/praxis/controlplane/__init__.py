"""A real kube-apiserver and etcd on this machine, without containers, for the demo and the tests. Knows no PRAXIS.

`ControlPlane.start()` runs one for as long as a `with` block; `praxis controlplane up` runs one until `down`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from praxis.controlplane.plane import ControlPlane

__all__ = ["ControlPlane"]


def __getattr__(name: str) -> type[ControlPlane]:
    """Import on first use: the build and the supervisor in this package run where nothing is installed."""
    if name != "ControlPlane":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from praxis.controlplane.plane import ControlPlane  # noqa: PLC0415

    return ControlPlane
