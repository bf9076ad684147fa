"""The disposable function answers as the adapter asks, and the deploy script creates, updates and never takes over."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from praxis.api.target import RemediationTarget
from praxis.demo.function_compute import CredentialSeed, EmulatorServer

DIRECTORY = Path(__file__).parents[2] / "deploy" / "target-function"
KEYS = {"ALIBABA_CLOUD_ACCESS_KEY_ID": "LTAIdeployer", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "secret-of-the-deployer"}


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The function's source, loaded as the runtime would, in an instance that was restarted by intent-1."""
    monkeypatch.setenv("FC_INSTANCE_ID", "c-123")
    monkeypatch.setenv("PRAXIS_RESTART_ID", "intent-1")
    spec = importlib.util.spec_from_file_location("target_function_index", DIRECTORY / "index.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("event", "restart"),
    [
        (b'{"path": "/praxis/health"}', True),
        (b'{"rawPath": "/praxis/health", "version": "v1"}', True),
        (b"{}", False),
        (b"", False),
        (b"not json", False),
        (b"[1]", False),
    ],
)
def test_the_event_function_says_who_it_is_at_its_health_path(index: ModuleType, event: bytes, restart: bool) -> None:
    """The health path answers instance id and restart id; anything else a greeting, never an error."""
    answered = json.loads(index.handler(event, None))
    if restart:
        assert answered == {"instanceId": "c-123", "restartId": "intent-1"}
    else:
        assert answered["ok"] is True


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "/praxis/health?x=1", ""), ("POST", "/invoke", '{"path": "/praxis/health"}')],
)
def test_the_custom_runtime_answers_the_same(index: ModuleType, method: str, path: str, body: str) -> None:
    """As a web server it answers the path itself, and the event that InvokeFunction posts."""
    index.Web.log_message = lambda *args: None
    with ThreadingHTTPServer(("127.0.0.1", 0), index.Web) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        connection = HTTPConnection("127.0.0.1", server.server_address[1])
        connection.request(method, path, body)
        answered = json.loads(connection.getresponse().read())
        connection.close()
        server.shutdown()
    assert answered == {"instanceId": "c-123", "restartId": "intent-1"}


def deploy(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script as its reader would."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ALIBABA_")}
    return subprocess.run(
        [sys.executable, str(DIRECTORY / "deploy.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, **environment},
    )


@pytest.fixture
def where(server: EmulatorServer) -> list[str]:
    server.emulator.add_credential(
        CredentialSeed(access_key_id="LTAIdeployer", access_key_secret="secret-of-the-deployer")
    )
    return ["--region", "cn-hangzhou", "--account-id", "1234567890", "--endpoint", server.url]


def test_it_creates_then_updates_and_prints_the_target(server: EmulatorServer, where: list[str]) -> None:
    """The first run creates, the second updates and keeps the marker; both print a RemediationTarget that is valid."""
    first = deploy(*where, "--label", "service=checkout", "--namespace", "shop", **KEYS)
    assert (first.returncode, "created function praxis-disposable" in first.stderr) == (0, True)
    server.emulator.deploy("praxis-disposable", {"PRAXIS_RESTART_ID": "intent-1"})
    second = deploy(*where, "--label", "service=checkout", "--namespace", "shop", **KEYS)
    assert (second.returncode, "updated function praxis-disposable" in second.stderr) == (0, True)
    assert first.stdout == second.stdout
    document: dict[str, Any] = yaml.safe_load(second.stdout)
    target = RemediationTarget.model_validate(document)
    assert (target.key, target.spec.disposable) == ("shop/praxis-disposable", True)
    assert target.spec.function_compute.health_path == "/praxis/health"
    assert target.spec.matches({"service": "checkout", "severity": "page"})
    described = server.emulator.describe("praxis-disposable")
    assert described["environmentVariables"] == {
        "HEALTH_PATH": "/praxis/health",
        "PRAXIS_RESTART_ID": "intent-1",
    }
    assert [each.operation for each in server.emulator.dispatches("praxis-disposable")] == [
        "CreateFunction",
        "UpdateFunction",
    ]


def test_it_takes_over_no_function(server: EmulatorServer, where: list[str]) -> None:
    """A function of that name which it did not create is left alone."""
    done = deploy(*where, "--function", "checkout", **KEYS)
    assert done.returncode == 1
    assert "did not create" in done.stderr
    assert server.emulator.dispatches() == []


def test_a_dry_run_sends_nothing(server: EmulatorServer, where: list[str]) -> None:
    """With --dry-run it needs no credentials, asks nobody, and prints the same manifest."""
    done = deploy(*where, "--dry-run")
    assert done.returncode == 0
    assert "DRY RUN: would create or update function praxis-disposable" in done.stderr
    assert RemediationTarget.model_validate(yaml.safe_load(done.stdout)).spec.kind == "FunctionCompute"
    assert server.emulator.arrivals() == []


def test_what_is_missing_or_refused_is_said_without_secrets(where: list[str]) -> None:
    """No key, a wrong key and a wrong address each end with a sentence."""
    absent = deploy(*where)
    assert (absent.returncode, "ALIBABA_CLOUD_ACCESS_KEY_ID is not set" in absent.stderr) == (1, True)
    wrong = deploy(*where, **{**KEYS, "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "wrong-secret"})
    assert (wrong.returncode, "403 SignatureNotMatch" in wrong.stderr) == (1, True)
    assert "wrong-secret" not in wrong.stderr
    plain = deploy(*where[:4], "--endpoint", "http://fc.example.com", **KEYS)
    assert (plain.returncode, "http only on this machine" in plain.stderr) == (2, True)
