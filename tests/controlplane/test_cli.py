"""`praxis controlplane`: each command is a process of its own, as a person runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from praxis.controlplane import instance
from praxis.controlplane.errors import WrongState
from praxis.controlplane.process import ProcessIdentity
from tests.controlplane.conftest import ROOT, executable, wait_for_end

COMMAND = [sys.executable, "-m", "praxis", "controlplane"]
ANNOUNCES = "import os, sys, signal; open({fifo!r}, 'w').write(str(os.getpid())); signal.pause()"


def environment() -> dict[str, str]:
    """This one's, with the sources importable."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "operator")}


def praxis(*args: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*COMMAND, *args], env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def rows(output: str) -> dict[str, str]:
    """The table that `up` and `status` print."""
    return {line[:15].strip(): line[15:].strip() for line in output.splitlines()}


@pytest.fixture
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home for named instances, with none in it; what a failing test left running is stopped."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    home = tmp_path / "s" / "praxis" / "controlplane"
    yield home
    for directory in home.iterdir() if home.exists() else ():
        praxis("down", "--name", directory.name)


def recorded(directory: Path) -> instance.State:
    """What is recorded there."""
    state = instance.read(directory)
    assert state is not None
    return state


@pytest.mark.controlplane
def test_up_status_kubeconfig_down(state_home: Path) -> None:
    """It runs after `up` has returned, says so, serves the identities asked for, and is gone after `down`."""
    up = praxis("up")
    assert up.returncode == 0, up.stderr
    processes = recorded(state_home / "default").processes.values()
    assert all(process.alive for process in processes)

    status = praxis("status")
    assert status.returncode == 0
    assert rows(status.stdout)["status"] == "ready"
    assert rows(status.stdout)["server"] == rows(up.stdout)["server"]

    reached = instance.access(state_home / "default")
    for options, name, group in (
        ((), "admin", "system:masters"),
        (("--user", "alice", "--group", "a", "--group", "b"), "alice", "b"),
        (("--service-account", "default/robot"), "system:serviceaccount:default:robot", "system:serviceaccounts"),
    ):
        reached.create_service_account("default", "robot")
        printed = praxis("kubeconfig", *options)
        path = state_home / "printed.yaml"
        path.write_text(printed.stdout)
        answer = json.loads(reached.kubectl("auth", "whoami", "-o", "json", kubeconfig=path).stdout)
        path.unlink()
        assert answer["status"]["userInfo"]["username"] == name
        assert group in answer["status"]["userInfo"]["groups"]
    missing = praxis("kubeconfig", "--service-account", "default/nobody")
    assert missing.returncode == 1
    assert missing.stderr.endswith('serviceaccounts "nobody" not found\n')

    again = praxis("up")
    assert again.returncode == 0
    assert "already running" in again.stderr
    assert rows(again.stdout)["server"] == rows(up.stdout)["server"]

    assert praxis("down").returncode == 0
    assert not any(process.alive for process in processes)
    assert list(state_home.iterdir()) == []


@pytest.mark.controlplane
def test_two_names_run_side_by_side(state_home: Path) -> None:
    """Stopping one leaves the other."""
    first, second = praxis("up", "--name", "one"), praxis("up", "--name", "two")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert rows(first.stdout)["server"] != rows(second.stdout)["server"]

    assert praxis("down", "--name", "one").returncode == 0
    assert rows(praxis("status", "--name", "two").stdout)["status"] == "ready"
    assert praxis("status", "--name", "one").returncode == 1


@pytest.mark.controlplane
def test_one_that_lost_its_supervisor_is_told_and_replaced(state_home: Path) -> None:
    """After a reboot, say: `status` says that it is gone, `up` starts afresh over what is left."""
    assert praxis("up").returncode == 0
    lost = recorded(state_home / "default")
    os.kill(lost.owner.pid, signal.SIGKILL)
    for process in lost.processes.values():
        wait_for_end(process.pid)

    status = praxis("status")
    assert status.returncode == 1
    assert rows(status.stdout)["status"].startswith("gone without having been stopped")
    assert praxis("kubeconfig").returncode == 1
    assert praxis("up").returncode == 0
    assert recorded(state_home / "default").owner != lost.owner
    assert rows(praxis("status").stdout)["status"] == "ready"


@pytest.mark.controlplane
def test_a_dead_api_server_is_told(state_home: Path) -> None:
    """`status` names what ended and where its log is; a command that needs it fails in one sentence."""
    assert praxis("up").returncode == 0
    recorded(state_home / "default").processes["kube-apiserver"].end(0)

    status = praxis("status")
    assert status.returncode == 1
    assert rows(status.stdout)["status"].startswith("not ready: no answer")
    assert rows(status.stdout)["kube-apiserver"].startswith("ended; see the log in")
    failed = praxis("kubeconfig", "--service-account", "default/robot")
    assert "no answer from https://127.0.0.1:" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_nothing_running_is_said_plainly(state_home: Path) -> None:
    """`down` is harmless, `status` has exit code 1, `kubeconfig` says what to do first."""
    down, status, kubeconfig = praxis("down"), praxis("status"), praxis("kubeconfig")

    assert (down.returncode, down.stdout) == (0, f"no control plane in {state_home / 'default'}\n")
    assert (status.returncode, rows(status.stdout)) == (1, {"status": "not running"})
    assert kubeconfig.returncode == 1
    assert "start one with `praxis controlplane up`" in kubeconfig.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_up_leaves_nothing(
    assets: Path, state_home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """A signal while the API server is getting ready: what was started is stopped, and `status` says so."""
    fifo = tmp_path / "arrived"
    os.mkfifo(fifo)
    executable(assets / "kube-apiserver", f"#!{sys.executable} -SE\n{ANNOUNCES.format(fifo=str(fifo))}\n")
    with subprocess.Popen(
        [*COMMAND, "up"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as up:
        server = int(fifo.read_text())
        supervisor = int(Path(f"/proc/{server}/stat").read_text().split()[3])
        assert rows(praxis("status").stdout)["status"] == "starting"
        second = praxis("up")
        assert second.returncode == 1
        assert "already starting" in second.stderr
        up.send_signal(number)
        up.communicate()
        for pid in (server, supervisor):
            wait_for_end(pid)

    assert up.returncode != 0
    assert rows(praxis("status").stdout)["status"] == "not running"
    assert list(state_home.iterdir()) == []


def test_down_ends_an_up_that_is_under_way(assets: Path, state_home: Path, tmp_path: Path) -> None:
    """Whoever waits too long for `up` in another terminal can end it from this one."""
    fifo = tmp_path / "arrived"
    os.mkfifo(fifo)
    executable(assets / "kube-apiserver", f"#!{sys.executable} -SE\n{ANNOUNCES.format(fifo=str(fifo))}\n")
    with subprocess.Popen(
        [*COMMAND, "up"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as up:
        server = int(fifo.read_text())
        assert praxis("down").returncode == 0
        wait_for_end(server)
        up.communicate()

    assert list(state_home.iterdir()) == []


def test_a_failed_up_leaves_nothing(assets: Path, state_home: Path) -> None:
    """The message ends with the server's log, and there is no traceback."""
    executable(assets / "kube-apiserver", "#!/bin/sh\necho bad flag >&2\nexit 1\n")

    failed = praxis("up")

    assert failed.returncode == 1
    assert failed.stderr.endswith("kube-apiserver ended by itself. The end of its log:\nbad flag\n")
    assert "Traceback" not in failed.stderr
    assert list(state_home.iterdir()) == []


def test_incomplete_assets_are_said_plainly(assets: Path, state_home: Path) -> None:
    """The same sentence as in Python."""
    (assets / "etcd").unlink()

    failed = praxis("up")

    assert failed.returncode == 1
    assert failed.stderr.startswith(f"Error: KUBEBUILDER_ASSETS is {assets}, which has no executable etcd.")


def test_a_directory_with_anything_else_is_left_alone(assets: Path, tmp_path: Path) -> None:
    """`up` does not take it and `down` does not remove it."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")

    up = praxis("up", "--state-dir", str(tmp_path / "mine"))
    down = praxis("down", "--state-dir", str(tmp_path / "mine"))

    assert up.returncode == 1
    assert "holds no control plane: choose another state directory" in up.stderr
    assert down.returncode == 0
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter"]


@pytest.mark.parametrize("other", [{"started": 1}, {"boot": "another boot"}])
def test_down_never_stops_another_process(
    other: dict[str, int | str], tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    """A record whose numbers belong to other processes by now: only the files are removed."""
    directory = tmp_path / "stale"
    directory.mkdir()
    running = ProcessIdentity.of(bystander.pid)
    assert running is not None
    reused = {"pid": running.pid, "started": running.started, "boot": running.boot, **other}
    state = {"owner": reused, "server": "https://127.0.0.1:1", "kubectl": "", "processes": {"etcd": reused}}
    (directory / "state.json").write_text(json.dumps(state))

    assert praxis("down", "--state-dir", str(directory)).returncode == 0
    assert running.alive
    assert not directory.exists()


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"owner": {"pid": 1}, "processes": {}}'])
def test_a_damaged_record_is_not_guessed_at(content: str, tmp_path: Path) -> None:
    """Nothing is stopped or removed by it; the message says what to do by hand."""
    (tmp_path / "state.json").write_text(content)

    with pytest.raises(WrongState, match=r"is damaged .* by hand"):
        instance.down(tmp_path)
    assert (tmp_path / "state.json").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--group", "a"], "--group needs --user"),
        (["--user", "alice", "--service-account", "a/b"], "leave --user and --group out"),
        (["--name", "../other"], "only letters, digits, dots, dashes and underscores"),
        (["--lifetime", "1"], "--lifetime"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: list[str], message: str, state_home: Path) -> None:
    """Exit code 2 and a sentence, before anything is looked at."""
    refused = praxis("kubeconfig", *options)

    assert refused.returncode == 2
    assert message in refused.stderr


@pytest.mark.parametrize("command", ["up", "down", "status", "kubeconfig"])
def test_every_command_explains_itself(command: str) -> None:
    """`--help` names the way to tell instances apart."""
    shown = praxis(command, "--help")

    assert shown.returncode == 0
    assert "--state-dir" in shown.stdout


@pytest.mark.parametrize(
    ("variable", "expected"),
    [("/state", "/state/praxis/controlplane/x"), ("relative", "/home/u/.local/state/praxis/controlplane/x")],
)
def test_named_instances_are_where_the_environment_says(
    variable: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XDG_STATE_HOME, if absolute, else ~/.local/state."""
    monkeypatch.setenv("HOME", "/home/u")
    monkeypatch.setenv("XDG_STATE_HOME", variable)

    assert instance.default_directory("x") == Path(expected)


def test_a_record_can_be_read_again(tmp_path: Path, bystander: subprocess.Popen[bytes]) -> None:
    """What `up` writes is what the other commands read."""
    process = ProcessIdentity.of(bystander.pid)
    assert process is not None
    state = instance.State(process, "https://127.0.0.1:1", "/bin/kubectl", {"etcd": process})

    instance._write(tmp_path, state)

    assert recorded(tmp_path) == state
    assert yaml.safe_load((tmp_path / "state.json").read_text())["owner"]["pid"] == bystander.pid
