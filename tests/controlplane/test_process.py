"""A process is known by more than its number, and only that process is ever signalled."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from praxis.controlplane.process import ProcessIdentity

DEAF = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
signal.pause()
"""


def identity_of(pid: int) -> ProcessIdentity:
    """The identity of a process that runs."""
    identity = ProcessIdentity.of(pid)
    assert identity is not None
    return identity


def test_a_running_process_is_alive(bystander: subprocess.Popen[bytes]) -> None:
    """Its identity stays the same for as long as it runs."""
    assert identity_of(bystander.pid).alive
    assert identity_of(bystander.pid) == identity_of(bystander.pid)


def test_a_process_that_ended_is_not_alive(bystander: subprocess.Popen[bytes]) -> None:
    """Neither as a zombie, before its parent has looked, nor after."""
    identity = identity_of(bystander.pid)

    bystander.kill()
    os.waitid(os.P_PID, bystander.pid, os.WEXITED | os.WNOWAIT)
    assert not identity.alive
    assert ProcessIdentity.of(bystander.pid) is None
    assert ProcessIdentity.of_child(bystander.pid) == identity
    bystander.wait()
    assert not identity.alive
    identity.end(0)


@pytest.mark.parametrize("other", [{"started": 1}, {"boot": "another boot"}])
def test_another_process_with_the_number_is_left_alone(
    other: dict[str, int | str], bystander: subprocess.Popen[bytes]
) -> None:
    """A record of a process that was started earlier, or before a reboot, is no reason to signal this one."""
    stale = replace(identity_of(bystander.pid), **other)  # type: ignore[arg-type]

    assert not stale.alive
    stale.end(0)
    assert identity_of(bystander.pid).alive


def test_ending_returns_when_it_has_ended(bystander: subprocess.Popen[bytes]) -> None:
    """SIGTERM is enough for a process that takes it."""
    identity_of(bystander.pid).end(60)

    assert bystander.poll() == -15


def test_a_process_that_ignores_sigterm_is_killed() -> None:
    """After the grace, SIGKILL."""
    with subprocess.Popen([sys.executable, "-SEc", DEAF], stdout=subprocess.PIPE) as deaf:
        assert deaf.stdout is not None
        deaf.stdout.readline()

        identity_of(deaf.pid).end(0.01)

        assert deaf.poll() == -9


def test_a_name_with_parentheses_and_spaces_is_read() -> None:
    """The kernel writes a process's name unescaped before its start time."""
    script = "open('/proc/self/comm', 'w').write('a) S 1 (b'); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-SEc", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as odd:
        assert odd.stdout is not None
        odd.stdout.readline()

        assert identity_of(odd.pid).started > identity_of(os.getpid()).started
        odd.communicate(b"\n")
