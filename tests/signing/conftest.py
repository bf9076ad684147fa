"""Keys that OpenSSH makes, in a directory of their own for each test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Keygen = Callable[..., Path]


@pytest.fixture
def keygen(tmp_path: Path) -> Keygen:
    """Makes an SSH key; the path of the private one, beside which its `.pub` lies."""

    def make(name: str, *options: str) -> Path:
        path = tmp_path / name
        command = ["ssh-keygen", "-q", "-N", "", "-C", name, "-f", str(path), *(options or ("-t", "ed25519"))]
        subprocess.run(command, check=True, capture_output=True)
        return path

    return make


def public(key: Path) -> str:
    """`type base64`, as it stands in a list."""
    return " ".join(key.with_suffix(".pub").read_text().split()[:2])
