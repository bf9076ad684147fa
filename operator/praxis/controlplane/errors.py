"""What can go wrong with the embedded control plane, by who can mend it. Each message says what to do next.

ControlPlaneError
├── BinariesUnavailable  there is nothing to run, and nothing to build it from
├── BuildFailed          the Go toolchain could not be had, or a build with it failed
├── StartFailed          a server ended or did not get ready; the message ends with the tail of its log
├── WrongState           asked to start what runs, or to use what does not
├── RequestRefused       the API server answered a request of ours with an error
└── KubectlFailed        kubectl ended with an error that the caller did not expect
"""

from __future__ import annotations


class ControlPlaneError(Exception):
    """The root of the tree."""


class BinariesUnavailable(ControlPlaneError):
    """No binaries, and no sources to build them from."""


class BuildFailed(ControlPlaneError):
    """The binaries could not be built."""


class StartFailed(ControlPlaneError):
    """A server ended early or was not ready in time."""


class WrongState(ControlPlaneError):
    """The control plane is running when it should not be, or the other way round."""


class Unreachable(ControlPlaneError):
    """No answer came from the API server."""


class RequestRefused(ControlPlaneError):
    """The API server refused; `status` is the HTTP status."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class KubectlFailed(ControlPlaneError):
    """kubectl ended with a non-zero exit code; the message holds what it wrote to stderr."""
