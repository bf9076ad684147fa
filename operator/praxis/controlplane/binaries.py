"""Where etcd, kube-apiserver and kubectl come from: `KUBEBUILDER_ASSETS`, the cache, or a build into the cache.

Standard library only, like `build` and `toolchain`, so that the binaries can be built before anything is installed.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from praxis.controlplane.errors import BinariesUnavailable

KUBERNETES_VERSION = "1.37.2"
"""The Kubernetes that is built; hack/controlplane/go.mod says the same, which a test checks."""

NAMES = ("etcd", "kube-apiserver", "kubectl")

SOURCES = Path(__file__).parents[3] / "hack" / "controlplane"
"""The Go module, in a checkout of the repository; an installed wheel does not have it."""

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

Report = Callable[[str], None]
"""Told, in one line each, what is being done and how far it is."""


def to_stderr(line: str) -> None:
    """The usual `Report`: one line to stderr, at once."""
    print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Binaries:
    """The three programs of a control plane, in one directory."""

    directory: Path

    @property
    def etcd(self) -> Path:
        """The store."""
        return self.directory / "etcd"

    @property
    def apiserver(self) -> Path:
        """The API server."""
        return self.directory / "kube-apiserver"

    @property
    def kubectl(self) -> Path:
        """The client, of the same version as the server."""
        return self.directory / "kubectl"

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of those that are not there or may not be executed."""
        return tuple(name for name in NAMES if not os.access(self.directory / name, os.X_OK))


def cache_directory() -> Path:
    """Where builds are kept: `PRAXIS_CACHE_DIR`, else `praxis` under `XDG_CACHE_HOME`, else under ~/.cache."""
    if own := os.environ.get("PRAXIS_CACHE_DIR"):
        return Path(own).absolute() / "controlplane"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification has relative paths ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "praxis" / "controlplane"


def build_directory() -> Path:
    """The directory of this version's binaries for this machine, whether built yet or not."""
    machine = platform.machine().lower()
    name = f"v{KUBERNETES_VERSION}-{platform.system().lower()}-{ARCHITECTURES.get(machine, machine)}"
    return cache_directory() / name


def resolve(report: Report = to_stderr) -> Binaries:
    """The binaries to run; builds them when neither `KUBEBUILDER_ASSETS` nor the cache has them (minutes, once).

    Raises `BinariesUnavailable` when `KUBEBUILDER_ASSETS` is incomplete, or when there is nothing to build from, and
    `BuildFailed` when the build fails.
    """
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        return _provided(Path(assets).absolute())
    binaries = Binaries(build_directory())
    if not binaries.missing:
        return binaries
    if not (SOURCES / "go.mod").is_file():
        raise BinariesUnavailable(
            f"No etcd, kube-apiserver and kubectl in {binaries.directory}, and no sources to build them from: this "
            "praxis was installed without its repository. Set KUBEBUILDER_ASSETS to a directory that holds all three, "
            "or run from a checkout of the repository."
        )
    # Imported here because `build` imports this module.
    from praxis.controlplane.build import build  # noqa: PLC0415

    build(binaries, SOURCES, report)
    return binaries


def _provided(directory: Path) -> Binaries:
    binaries = Binaries(directory)
    if binaries.missing:
        raise BinariesUnavailable(
            f"KUBEBUILDER_ASSETS is {directory}, which has no executable {', '.join(binaries.missing)}. It must hold "
            f"all of {', '.join(NAMES)}; unset it to use those that praxis builds itself."
        )
    return binaries
