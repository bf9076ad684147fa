"""`praxis gateway` as a command and as a process."""

from __future__ import annotations

import json
import signal
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from praxis.cli.gateway import command
from praxis.controlplane import ControlPlane
from praxis.demo.processes import start
from praxis.settings import GatewaySettings
from tests.intake.conftest import NAMES
from tests.intake.notifications import payload
from tests.intake.test_authentication import TOKEN


def test_help_names_every_setting() -> None:
    """--help says of every setting what it is for, its environment variable and its default."""
    text = " ".join(CliRunner().invoke(command, ["--help"], terminal_width=200).output.split())
    for name, field in GatewaySettings.model_fields.items():
        assert f"--{name.replace('_', '-')}" in text
        assert f"PRAXIS_GATEWAY_{name.upper()}" in text
        assert field.description
        assert field.description in text


def test_without_authentication() -> None:
    """Without a secret it ends with 1 and a sentence that says what to set."""
    done = CliRunner().invoke(command, [])
    assert done.exit_code == 1
    assert done.output.startswith("praxis gateway: no sender could be authenticated. Set PRAXIS_GATEWAY_BEARER_TOKEN_F")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--receiver", "Not A Label"], "PRAXIS_GATEWAY_RECEIVER"),
        (["--receiver", "x" * 33], "at most 32 characters"),
        (["--receiver", "webhook"], "must differ"),
        (["--replay-window", "301"], "less than or equal to 300"),
        (["--concurrency", "0"], "greater than or equal to 1"),
        (["--body-limit", "1048577"], "less than or equal to 1048576"),
    ],
)
def test_settings_out_of_bounds(options: list[str], said: str) -> None:
    """A setting that cannot be is refused with the bound."""
    done = CliRunner().invoke(command, options)
    assert done.exit_code == 2
    assert said in done.output


def test_without_a_cluster(tmp_path: Path) -> None:
    """Outside a pod and without a kubeconfig it ends with 1 and says what to set."""
    (tmp_path / "token").write_text(TOKEN)
    done = CliRunner().invoke(command, ["--bearer-token-file", str(tmp_path / "token")])
    assert done.exit_code == 1
    assert "PRAXIS_GATEWAY_KUBECONFIG" in done.output


@pytest.mark.controlplane
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_process(installed: ControlPlane, tmp_path: Path, signum: signal.Signals) -> None:
    """It takes a notification, tells of it in JSON lines, and ends with 0 when it is told to stop."""
    (tmp_path / "token").write_text(TOKEN)
    running = start(
        "gateway",
        [sys.executable, "-m", "praxis", "gateway", "--port", "0", "--port-file", str(tmp_path / "port")],
        directory=tmp_path,
        environment={
            "PRAXIS_GATEWAY_KUBECONFIG": str(
                installed.service_account_kubeconfig(NAMES.namespace, NAMES.gateway_account)
            ),
            "PRAXIS_GATEWAY_BEARER_TOKEN_FILE": str(tmp_path / "token"),
            "PRAXIS_GATEWAY_HOST": "127.0.0.1",
            "PRAXIS_GATEWAY_PORT": "1",
        },
        port_file=tmp_path / "port",
    )
    try:
        request = urllib.request.Request(
            f"http://127.0.0.1:{running.port}/v1/alertmanager",
            data=json.dumps(payload(key=str(tmp_path))).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            incident = json.load(reply)["incident"]
        running.send(signum)
        assert running.popen.wait(30) == 0
    finally:
        running.kill()
    assert incident.startswith("default/alertmanager-")
    lines = [json.loads(line) for line in running.log.read_text().splitlines()]
    told = next(line for line in lines if line["message"] == "notification")
    assert (told["reason"], told["incident"], told["authentication"]) == ("FirstEpisode", incident, "bearer")
    assert lines[-1]["message"].startswith("stopping")
    assert TOKEN not in running.log.read_text()
