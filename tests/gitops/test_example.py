"""The example repository: its signed decision verifies, and only within its hour."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from praxis.cli import main

EXAMPLE = Path(__file__).parents[2] / "manifests/examples/gitops"


@pytest.mark.parametrize(("at", "exit_code"), [("2026-12-01T05:30:00Z", 0), ("2026-12-01T06:00:00Z", 1)])
def test_the_example_verifies(at: str, exit_code: int) -> None:
    """As the README says."""
    files = [str(each) for each in sorted((EXAMPLE / "approvals").glob("*-approve.yaml"))]
    lists = ["--allowed-signers", str(EXAMPLE / "allowed_signers"), "--revoked-keys", str(EXAMPLE / "revoked_keys")]
    result = CliRunner().invoke(main, ["approval", "verify", *files, *lists, "--at", at])
    assert result.exit_code == exit_code, result.output
    assert len(files) == 1
