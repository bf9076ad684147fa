"""Servers end with whoever asked for them, however that goes. The servers here are programs that wait to be stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from praxis.controlplane.errors import StartFailed
from praxis.controlplane.process import ProcessIdentity
from praxis.controlplane.supervisor import Supervisor
from tests.controlplane.conftest import script, wait_for_end

WAITS = [sys.executable, "-SEc", "import signal; signal.pause()"]
PARENT = """
import json, sys
from pathlib import Path
from praxis.controlplane.supervisor import Supervisor

directory = Path(sys.argv[1])
supervisor = Supervisor(directory)
servers = [supervisor.run(json.loads(sys.argv[2]), directory / "log").pid for _ in range(2)]
if "detach" in sys.argv:
    supervisor.detach()
print(json.dumps([supervisor.identity.pid, *servers]), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The directory that a supervisor is given, with something in it."""
    directory = tmp_path / "plane"
    (directory / "data").mkdir(parents=True)
    (directory / "data" / "file").write_text("anything")
    return directory


@pytest.fixture
def supervisor(directory: Path) -> Iterator[Supervisor]:
    """A supervisor of this process."""
    supervisor = Supervisor(directory)
    yield supervisor
    supervisor.end()


@contextmanager
def parent(directory: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process with a supervisor and two servers, and their pids, the supervisor's first."""
    with script(PARENT, str(directory), json.dumps(WAITS), *args) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())


def test_a_server_runs_until_the_end(supervisor: Supervisor, directory: Path) -> None:
    """Ending it ends the servers and removes the directory; a second time does nothing."""
    servers = [supervisor.run(WAITS, directory / "log") for _ in range(2)]
    assert all(server.alive for server in servers)

    supervisor.end()

    assert not any(server.alive for server in servers)
    assert not directory.exists()
    supervisor.end()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_servers_end_with_their_parent(directory: Path, number: signal.Signals) -> None:
    """A parent that is killed outright had no time to stop anything: all is stopped and removed all the same."""
    with parent(directory) as (process, pids):
        process.send_signal(number)
        process.wait()

        for pid in pids:
            wait_for_end(pid)
    assert not directory.exists()


def test_servers_end_with_their_supervisor(directory: Path) -> None:
    """Should the supervisor itself be killed, the kernel kills its servers, also of a detached one."""
    with parent(directory, "detach") as (_, (supervising, *servers)):
        os.kill(supervising, signal.SIGKILL)

        for pid in servers:
            wait_for_end(pid)


def test_servers_outlive_the_thread_that_started_them(supervisor: Supervisor, directory: Path) -> None:
    """The kernel's death signal counts threads; a test may start a control plane in one that ends."""
    started: list[ProcessIdentity] = []
    thread = threading.Thread(target=lambda: started.append(supervisor.run(WAITS, directory / "log")))
    thread.start()
    thread.join()

    supervisor.run(WAITS, directory / "log")
    assert started[0].alive


def test_a_detached_one_outlives_its_parent(directory: Path) -> None:
    """Only SIGTERM ends it then, and that ends all of it."""
    with parent(directory, "detach") as (process, pids):
        process.kill()
        process.wait()
        identities = [ProcessIdentity.of(pid) for pid in pids]
        assert all(identity is not None and identity.alive for identity in identities)
        assert directory.exists()

        os.kill(pids[0], signal.SIGTERM)
        for pid in pids:
            wait_for_end(pid)
    assert not directory.exists()


def test_the_terminal_cannot_reach_them(supervisor: Supervisor, directory: Path) -> None:
    """Ctrl-C goes to a session's foreground processes: the servers are in a session of their own."""
    server = supervisor.run(WAITS, directory / "log")

    assert os.getsid(server.pid) == os.getsid(supervisor.identity.pid) == supervisor.identity.pid
    assert os.getsid(0) != supervisor.identity.pid


def test_a_server_that_ended_leaves_no_zombie(supervisor: Supervisor, directory: Path) -> None:
    """The supervisor reaps what ends early, and can start it again."""
    server = supervisor.run(WAITS, directory / "log")
    server.end(60)

    # An answer says that what the supervisor had to do before is done.
    again = supervisor.run(WAITS, directory / "log")
    assert again.alive
    assert not Path(f"/proc/{server.pid}").exists()


def test_a_server_writes_to_its_log(supervisor: Supervisor, directory: Path) -> None:
    """Both streams, after what is there; its input is empty and it works in the directory."""
    code = "import os, sys; print(repr(input and sys.stdin.read()), os.getcwd()); sys.stderr.write('!')"
    (directory / "log").write_text("before\n")
    server = supervisor.run([sys.executable, "-SEc", code], directory / "log")
    wait_for_end(server.pid)

    assert sorted((directory / "log").read_text()) == sorted(f"before\n'' {directory}\n!")


def test_what_cannot_be_started_is_told(supervisor: Supervisor, directory: Path) -> None:
    """The error names the program and what the system said; the supervisor goes on."""
    with pytest.raises(StartFailed, match=r"Could not start /nowhere/etcd: .*No such file"):
        supervisor.run(["/nowhere/etcd"], directory / "log")
    assert supervisor.run(WAITS, directory / "log").alive


def test_a_supervisor_that_is_gone_is_told(supervisor: Supervisor, directory: Path) -> None:
    """Asking it for anything is an error that names its log, not a hang."""
    pid = supervisor.identity.pid
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)

    with pytest.raises(StartFailed, match="The supervisor ended by itself; see"):
        supervisor.run(WAITS, directory / "log")
    with pytest.raises(StartFailed, match="The supervisor ended by itself; see"):
        _ = supervisor.identity
