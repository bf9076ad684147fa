"""Building: progress, one at a time, and nothing half-written however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from praxis.controlplane.binaries import NAMES, SOURCES, Binaries, build_directory
from praxis.controlplane.build import PACKAGES, build
from praxis.controlplane.errors import BuildFailed
from tests.controlplane.conftest import ROOT, FakeGo, wait_for_end

SCRIPT = ROOT / "hack" / "controlplane" / "build"


@pytest.fixture
def binaries(cache: Path) -> Binaries:
    """Where the build goes."""
    return Binaries(build_directory())


def names_in(directory: Path) -> set[str]:
    """What is there, hidden or not."""
    return {path.name for path in directory.iterdir()}


def test_all_three_are_built(binaries: Binaries, fake_go: FakeGo) -> None:
    """etcd, kube-apiserver and kubectl, executable, and nothing else in the directory."""
    build(binaries, SOURCES, lambda _: None)

    assert names_in(binaries.directory) == set(NAMES)
    assert fake_go.built() == list(PACKAGES.values())
    assert subprocess.run([binaries.kubectl], capture_output=True, text=True, check=True).stdout == "kubectl\n"


def test_it_says_what_it_does_and_how_far_it_is(binaries: Binaries, fake_go: FakeGo) -> None:
    """Which binary of how many, how many packages of how many, and the seconds that passed."""
    fake_go.scenario(hang="kube-apiserver")
    told: list[str] = []

    def report(line: str) -> None:
        told.append(line)
        if line.startswith("2/3 kube-apiserver: 1 of 3 packages, ") and "released" not in told:
            told.append("released")
            fake_go.arrived.read_text()
            fake_go.release()

    build(binaries, SOURCES, report, interval=0.01)

    assert told[0].startswith("building etcd, kube-apiserver, kubectl of Kubernetes 1.")
    assert "2/3 kube-apiserver: 3 packages to compile" in told
    assert any(line.startswith("2/3 kube-apiserver: 1 of 3 packages, 0 s") for line in told)
    assert [line.split(",")[0] for line in told if "built" in line] == [
        "1/3 etcd: built",
        "2/3 kube-apiserver: built",
        "3/3 kubectl: built",
    ]


def test_the_same_sources_give_the_same_binaries(
    binaries: Binaries, fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller's Go settings do not reach the build, and the version is stamped in, stripped."""
    for name, value in {"GOFLAGS": "-mod=vendor", "GOTOOLCHAIN": "auto", "GOWORK": "/w", "CGO_ENABLED": "1"}.items():
        monkeypatch.setenv(name, value)

    build(binaries, SOURCES, lambda _: None)

    calls = [call for call in fake_go.calls if call["args"][0] in {"list", "build"}]
    assert {tuple(call["env"].items()) for call in calls} == {
        (("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0"), ("GOFLAGS", ""), ("GOWORK", "off"))
    }
    assert {call["cwd"] for call in calls} == {str(SOURCES)}
    flags = next(flag for flag in calls[-1]["args"] if flag.startswith("-ldflags="))
    assert flags.startswith("-ldflags=-s -w ")
    assert "-X k8s.io/component-base/version.gitVersion=v1.37.2" in flags
    assert all(flags in call["args"] and "-trimpath" in call["args"] for call in calls)


def test_an_interrupted_build_goes_on_where_it_stopped(binaries: Binaries, fake_go: FakeGo) -> None:
    """What was whole stays, what was half-written is gone, the rest is built by the next run."""
    fake_go.scenario(hang="kube-apiserver", compiler=True)

    def interrupt(line: str) -> None:
        if line.startswith("2/3 kube-apiserver: 1 of 3"):
            fake_go.arrived.read_text()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(binaries, SOURCES, interrupt, interval=0.01)
    wait_for_end(int((fake_go.directory / "compiler").read_text()))
    assert names_in(binaries.directory) == {"etcd"}

    fake_go.scenario()
    build(binaries, SOURCES, lambda _: None)
    assert names_in(binaries.directory) == set(NAMES)
    assert fake_go.built() == [PACKAGES[name] for name in ("etcd", "kube-apiserver", "kube-apiserver", "kubectl")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_script_is_interrupted_cleanly(binaries: Binaries, fake_go: FakeGo, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM end Go and its compilers, and leave no half-written binary."""
    fake_go.scenario(hang="etcd", compiler=True)
    with subprocess.Popen([SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as script:
        fake_go.arrived.read_text()
        assert names_in(binaries.directory) == {f"partial-{script.pid}"}
        script.send_signal(number)
        output, errors = script.communicate()

    assert script.returncode == 130
    assert output == ""
    assert "run again to go on" in errors
    assert names_in(binaries.directory) == set()
    wait_for_end(int((fake_go.directory / "compiler").read_text()))


def test_what_a_killed_build_left_is_never_run(binaries: Binaries, fake_go: FakeGo) -> None:
    """Killed outright, a build leaves a scratch directory, which the next one removes."""
    fake_go.scenario(hang="etcd")
    with subprocess.Popen([SCRIPT], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as script:
        fake_go.arrived.read_text()
        script.kill()
    fake_go.release()
    assert "etcd" in binaries.missing

    fake_go.scenario()
    build(binaries, SOURCES, lambda _: None)
    assert names_in(binaries.directory) == set(NAMES)


def test_the_script_prints_the_directory_and_then_takes_no_time(binaries: Binaries, fake_go: FakeGo) -> None:
    """The second run prints the same without calling Go at all."""
    first = subprocess.run([SCRIPT], capture_output=True, text=True, check=True)
    calls = len(fake_go.calls)
    second = subprocess.run([SCRIPT], capture_output=True, text=True, check=True)

    assert first.stdout == second.stdout == f"{binaries.directory}\n"
    assert "built" in first.stderr
    assert second.stderr == ""
    assert len(fake_go.calls) == calls


def test_the_script_needs_nothing_but_python(binaries: Binaries, fake_go: FakeGo) -> None:
    """It runs before anything is installed: no third-party package is imported."""
    without_packages = f"{fake_go.directory / 'python'}"
    Path(without_packages).write_text(f'#!/bin/sh\nexec {os.path.realpath("/proc/self/exe")} -S "$@"\n')
    Path(without_packages).chmod(0o755)

    done = subprocess.run(
        [SCRIPT], env={**os.environ, "PYTHON": without_packages}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


def test_a_second_builder_waits_and_says_so(binaries: Binaries, fake_go: FakeGo) -> None:
    """Two at once build everything once: the second waits for the first and finds its work."""
    fake_go.scenario(hang="etcd")
    first = threading.Thread(target=build, args=(binaries, SOURCES, lambda _: None))
    first.start()
    fake_go.arrived.read_text()
    told: list[str] = []

    def report(line: str) -> None:
        told.append(line)
        fake_go.release()

    build(binaries, SOURCES, report)
    first.join()

    assert len(told) == 1
    assert told[0].startswith("another build is under way")
    assert fake_go.built() == list(PACKAGES.values())


def test_a_failing_build_is_shown(binaries: Binaries, fake_go: FakeGo) -> None:
    """The error holds the compiler's words; what was built before stays."""
    fake_go.scenario(fail="kubectl")

    with pytest.raises(BuildFailed, match=r"ended with 1(.|\n)*undefined: everything"):
        build(binaries, SOURCES, lambda _: None)
    assert names_in(binaries.directory) == {"etcd", "kube-apiserver"}


def test_the_script_tells_a_failure_in_words(binaries: Binaries, fake_go: FakeGo) -> None:
    """No traceback: the message, and exit code 1."""
    fake_go.scenario(fail="etcd")

    done = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "undefined: everything" in done.stderr
    assert "Traceback" not in done.stderr
