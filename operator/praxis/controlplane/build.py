"""Builds the control plane's binaries into the cache: `python -m praxis.controlplane.build`. Standard library only.

One build at a time: a lock beside the directory makes the second builder wait. Each binary is linked in a scratch
directory and moved into place when whole, so an interrupted build leaves none half-written, and the next one goes on
where it stopped (Go's own cache holds what was compiled).
"""

from __future__ import annotations

import fcntl
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from praxis.controlplane import toolchain
from praxis.controlplane.binaries import KUBERNETES_VERSION, Binaries, Report, resolve, to_stderr
from praxis.controlplane.errors import BuildFailed, ControlPlaneError

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
TAIL = 40
"""Lines of a failed command's output that are shown."""


def build(binaries: Binaries, sources: Path, report: Report, *, interval: float = 10.0) -> None:
    """Build those of the binaries that are missing, from the Go module in `sources`.

    `interval` is the time between two progress reports, in seconds. Raises `BuildFailed`.
    """
    directory = binaries.directory
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(directory.with_name(f"{directory.name}.lock"), report):
        missing = binaries.missing
        if not missing:
            return
        report(f"building {', '.join(missing)} of Kubernetes {KUBERNETES_VERSION} into {directory}; minutes, once")
        required = toolchain.required_version((sources / "go.mod").read_text())
        go = toolchain.find_go(required, directory.parent, report)
        builder = _Builder(go, sources, report, interval)
        directory.mkdir(exist_ok=True)
        with _scratch(directory) as scratch:
            for number, name in enumerate(missing, start=1):
                builder.build(f"{number}/{len(missing)} {name}", PACKAGES[name], scratch, directory / name)


@contextmanager
def _one_at_a_time(lock: Path, report: Report) -> Iterator[None]:
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"another build is under way (it holds {lock}); waiting for it to end")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _scratch(directory: Path) -> Iterator[Path]:
    """A directory for what is unfinished; removed in the end, or by the next build when this one is killed outright."""
    for leftover in directory.glob("partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    # By number, since the Go of a build that was killed may still be writing.
    scratch = directory / f"partial-{os.getpid()}"
    scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True)
class _Builder:
    go: Path
    sources: Path
    report: Report
    interval: float

    @property
    def flags(self) -> list[str]:
        """The same for `list` and `build`, as they are part of what makes a package stale."""
        version = "k8s.io/component-base/version"
        major, minor, _ = KUBERNETES_VERSION.split(".")
        values = {"gitVersion": f"v{KUBERNETES_VERSION}", "gitMajor": major, "gitMinor": minor}
        stamps = " ".join(f"-X {version}.{key}={value}" for key, value in values.items())
        return ["-trimpath", "-buildvcs=false", f"-ldflags=-s -w {stamps}"]

    def build(self, title: str, package: str, scratch: Path, binary: Path) -> None:
        """Fetch what modules are missing, compile what packages are not in Go's cache, link them into `binary`."""
        started = time.monotonic()
        form = "-f={{if .Stale}}{{.ImportPath}}{{end}}"
        stale = self._run(
            [str(self.go), "list", *self.flags, "-deps", form, package],
            lambda done, seconds: f"{title}: fetching modules, {done} so far, {seconds:.0f} s",
        )
        total = len(stale.split())
        self.report(f"{title}: {total} packages to compile")
        self._run(
            [str(self.go), "build", "-v", *self.flags, "-o", str(scratch / binary.name), package],
            lambda done, seconds: f"{title}: {min(done, total)} of {total} packages, {seconds:.0f} s",
            # Go leaves its own temporary files where it is interrupted.
            GOTMPDIR=str(scratch),
        )
        (scratch / binary.name).replace(binary)
        size = binary.stat().st_size // 1_000_000
        self.report(f"{title}: built, {size} MB, {time.monotonic() - started:.0f} s")

    def _run(self, command: list[str], progress: Callable[[int, float], str], **environment: str) -> str:
        """Run `go`, which writes a line to stderr for each thing done; report at intervals; return its stdout."""
        started = time.monotonic()
        tail: deque[str] = deque(maxlen=TAIL)
        done = 0
        with tempfile.TemporaryFile("w+") as out:
            # A process group of its own: Ctrl-C then reaches this process alone, which ends compilers and all.
            process = subprocess.Popen(
                command,
                cwd=self.sources,
                env={**toolchain.environment(), **environment},
                stdout=out,
                stderr=subprocess.PIPE,
                process_group=0,
            )
            assert process.stderr is not None
            with process.stderr as stderr:
                try:
                    for line in _lines(stderr, self.interval):
                        if line is None:
                            self.report(progress(done, time.monotonic() - started))
                        else:
                            done += 1
                            tail.append(line)
                    code = process.wait()
                finally:
                    _end(process)
            if code != 0:
                shown = "\n".join(tail)
                raise BuildFailed(
                    f"`{' '.join(command)}` ended with {code} in {self.sources}. Mend this, run again:\n{shown}"
                )
            out.seek(0)
            return out.read()


def _lines(stream: IO[bytes], interval: float) -> Iterator[str | None]:
    """The lines of a pipe as they come, and None each time `interval` seconds are over."""
    rest = b""
    tick = time.monotonic() + interval
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if selector.select(max(0.0, tick - time.monotonic())):
                chunk = os.read(stream.fileno(), 65536)
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
                if not chunk:
                    break
            if time.monotonic() >= tick:
                tick += interval
                yield None
    if rest:
        yield rest.decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a `go` that still runs, and the compilers it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main() -> int:
    """Print the directory that holds the binaries, built now if need be."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        binaries = resolve()
    except ControlPlaneError as error:
        to_stderr(str(error))
        return 1
    except KeyboardInterrupt:
        to_stderr("interrupted; nothing half-built was left, run again to go on")
        return 130
    print(binaries.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
