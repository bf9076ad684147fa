"""A control plane that outlives the command that started it: up, status, down, by state directory.

The directory says whose it is: `state.json` names the owning process beyond doubt (pid, start time, boot). That is
the `up` command while it starts, then the supervisor. Only what is recorded there is ever stopped, and only a
directory that holds such a record is ever removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from praxis.controlplane import pki
from praxis.controlplane.access import Access
from praxis.controlplane.binaries import Binaries
from praxis.controlplane.errors import WrongState
from praxis.controlplane.plane import START_TIMEOUT, ControlPlane
from praxis.controlplane.process import ProcessIdentity
from praxis.controlplane.servers import Layout

GRACE = 25.0
"""Seconds that an owner has to end its servers: longer than a supervisor has for that."""


@dataclass(frozen=True)
class State:
    """What is recorded of one instance."""

    owner: ProcessIdentity
    server: str = ""
    """The API server's URL; empty while `up` is still at it."""
    kubectl: str = ""
    processes: Mapping[str, ProcessIdentity] = field(default_factory=dict)

    @property
    def starting(self) -> bool:
        """Whether `up` has not finished."""
        return not self.server


def default_directory(name: str) -> Path:
    """The state directory of a named instance: under `XDG_STATE_HOME`, else under ~/.local/state."""
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".local" / "state") / "praxis" / "controlplane" / name


def up(directory: Path, binaries: Binaries, *, timeout: float = START_TIMEOUT) -> Access:
    """Start an instance that runs until `down`; it is ready when this returns.

    Raises `WrongState` when one is running or starting there, or when the directory holds anything else, and
    `StartFailed` when a server does not get ready in `timeout` seconds. Nothing is left behind then.
    """
    with _exclusive(directory):
        _claim(directory)
    plane = ControlPlane.start_in(directory, binaries, timeout)
    try:
        processes = plane.processes
        _write(directory, State(processes["supervisor"], plane.server, str(binaries.kubectl), processes))
        plane.detach()
    except BaseException:
        plane.stop()
        raise
    return plane


def down(directory: Path) -> bool:
    """Stop the instance and remove its directory; false when there was none. Harmless when repeated.

    Raises `WrongState` when what is recorded cannot be read.
    """
    with _exclusive(directory):
        state = read(directory)
        if state is None:
            return False
        _clear(directory, state)
        return True


def read(directory: Path) -> State | None:
    """What is recorded in the directory, whether it still runs or not; raises `WrongState` when it is unreadable."""
    path = directory / "state.json"
    try:
        stored = json.loads(path.read_text())
        processes = {name: ProcessIdentity(**process) for name, process in stored.pop("processes").items()}
        return State(owner=ProcessIdentity(**stored.pop("owner")), processes=processes, **stored)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise WrongState(
            f"{path} is damaged ({error}). See what runs with `ps`, stop it, and remove {directory} by hand."
        ) from error


def access(directory: Path) -> Access:
    """Reach the instance in this directory; raises `WrongState` when none runs there."""
    state = read(directory)
    if state is None or not state.owner.alive:
        raise WrongState(f"No control plane runs in {directory}: start one with `praxis controlplane up`.")
    if state.starting:
        raise WrongState(f"The control plane in {directory} is still starting: try again when `up` has returned.")
    return Access(Layout(directory), state.server, Path(state.kubectl))


def _claim(directory: Path) -> None:
    state = read(directory)
    if state is not None and state.owner.alive:
        doing = "is already starting" if state.starting else "already runs"
        raise WrongState(f"A control plane {doing} in {directory}: use it, or stop it with `praxis controlplane down`.")
    if state is not None:
        _clear(directory, state)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise WrongState(f"{directory} is in use and holds no control plane: choose another state directory.")
    directory.mkdir(exist_ok=True)
    directory.chmod(0o700)
    me = ProcessIdentity.of(os.getpid())
    assert me is not None
    _write(directory, State(me))


def _clear(directory: Path, state: State) -> None:
    state.owner.end(GRACE)
    # They end with their owner; this is for the moment in between, should the owner have been killed outright.
    for process in state.processes.values():
        process.end(0)
    shutil.rmtree(directory, ignore_errors=True)


def _write(directory: Path, state: State) -> None:
    pki.write_private(directory / "state.json", json.dumps(asdict(state), indent=2))


@contextmanager
def _exclusive(directory: Path) -> Iterator[None]:
    """One command at a time looks at what a directory holds and changes it. Locks the parent: no file is left over."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
