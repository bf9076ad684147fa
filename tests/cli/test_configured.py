"""Configuration that does not hold is told in sentences, by the names of its variables."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from praxis.cli import main


@pytest.mark.parametrize(
    ("command", "environment", "says"),
    [
        ("operator", {"PRAXIS_WORKERS": "0"}, "PRAXIS_WORKERS: Input should be greater than or equal to 1"),
        (
            "operator",
            {"PRAXIS_QUORUM__DANGEROUS": "0", "PRAXIS_WORKERS": "0"},
            "PRAXIS_QUORUM__DANGEROUS: Input should be greater than or equal to 1; PRAXIS_WORKERS: Input should be",
        ),
        ("operator", {"PRAXIS_SIGNING_ACCOUNTS": "all"}, 'for field "signing_accounts"'),
        ("gateway", {"PRAXIS_GATEWAY_PORT": "b4nana"}, "PRAXIS_GATEWAY_PORT: Input should be a valid integer"),
    ],
)
def test_what_does_not_hold_is_named_and_not_quoted(command: str, environment: dict[str, str], says: str) -> None:
    """Wrong usage, without a stack of pydantic's words; the value may be a secret in the wrong place."""
    result = CliRunner().invoke(main, [command], env={"KUBECONFIG": "", **environment})
    assert result.exit_code == 2
    assert f"Error: configuration: {says}" in result.output or says in result.output
    assert "pydantic" not in result.output
    assert "b4nana" not in result.output


@pytest.mark.parametrize("content", ["a: b: c\n", "{}\n"])
def test_an_operator_that_cannot_connect(content: str, tmp_path: Path) -> None:
    """A kubeconfig that is none."""
    file = tmp_path / "kubeconfig"
    file.write_text(content)
    result = CliRunner().invoke(main, ["operator", "--kubeconfig", str(file)])
    assert result.exit_code == 1
    assert "praxis operator: no connection to an API server: " in result.output
