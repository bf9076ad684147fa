"""What is real here: processes, signals, sockets, pip, etcd, kube-apiserver and kubectl.

Only Go is replaced, by a program that takes its arguments and keeps to its files (`fake_go`): a real build takes
minutes, and cannot be held still half-way.
"""

from __future__ import annotations

import json
import os
import select
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FAKE_GO = Path(__file__).parent / "fake_go.py"


def executable(path: Path, text: str) -> Path:
    """A program with this text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def wait_for_end(pid: int) -> None:
    """Return when the process has ended, whoever its parent is; fail when it runs on."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        assert poll.poll(60_000), f"process {pid} still runs"
    finally:
        os.close(handle)


@contextmanager
def script(text: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process of its own, with pipes; killed in the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-c", text, *args],
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@dataclass(frozen=True)
class FakeGo:
    """A Go on PATH that does as `scenario` says, and writes down how it was called."""

    directory: Path

    @property
    def gate(self) -> Path:
        """A FIFO: a build told to hang waits until something is written to it."""
        return self.directory / "gate"

    @property
    def arrived(self) -> Path:
        """A FIFO: reading it returns when a build hangs, half of its binary written."""
        return self.directory / "arrived"

    def scenario(self, **values: Any) -> None:
        """See fake_go.py for what there is."""
        (self.directory / "scenario.json").write_text(json.dumps(values))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Each call: `args`, `env`, `cwd`."""
        log = self.directory / "calls"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def built(self) -> list[str]:
        """The packages that `go build` was called for, in order."""
        return [call["args"][-1] for call in self.calls if call["args"][0] == "build"]

    def release(self) -> None:
        """Let a hanging build go on."""
        self.gate.write_text("go on")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory, and no KUBEBUILDER_ASSETS."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("PRAXIS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "controlplane"


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """A new enough Go, first on PATH."""
    go = FakeGo(tmp_path / "fake")
    install_fake_go(go.directory / "go")
    os.mkfifo(go.gate)
    os.mkfifo(go.arrived)
    monkeypatch.setenv("PATH", f"{go.directory}{os.pathsep}{os.environ['PATH']}")
    go.scenario()
    return go


def install_fake_go(path: Path) -> None:
    """Put the fake there, run by this Python."""
    executable(path, f"#!{sys.executable} -SE\n{FAKE_GO.read_text()}")


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for the three programs that do nothing until they are stopped, by KUBEBUILDER_ASSETS."""
    directory = tmp_path / "assets"
    for name in ("etcd", "kube-apiserver", "kubectl"):
        executable(directory / name, f"#!{sys.executable} -SE\nimport signal\nsignal.pause()\n")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(directory))
    return directory


@pytest.fixture
def own_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory in which nothing else is made: what is in it afterwards was left behind."""
    directory = tmp_path / "t"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr("tempfile.tempdir", None)
    return directory


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that nobody here may touch."""
    process = subprocess.Popen([sys.executable, "-SEc", "import signal; signal.pause()"])
    with process:
        try:
            yield process
        finally:
            process.kill()


def mode(path: Path) -> int:
    """The permission bits."""
    return stat.S_IMODE(path.stat().st_mode)
