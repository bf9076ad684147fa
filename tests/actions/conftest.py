"""What is real here: the adapter, the Alibaba Cloud SDK, sockets, the emulator's HTTP server.

What is replaced: the service (by the emulator, over the wire) and time: one clock that the tests move drives the
emulator's instances and the adapter's deadlines. Socket time-outs are real; tests of them use short ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from praxis.actions.function_compute import FunctionComputeAdapter
from praxis.api.base import IntentId, ObjectMeta
from praxis.api.target import FunctionCompute, LabelSelector, RemediationTarget, RemediationTargetSpec
from praxis.demo.function_compute import CredentialSeed, Emulator, EmulatorServer, FunctionSeed, Seed
from praxis.settings import ActionSettings

INTENT = IntentId("intent-0123456789")
ACCESS_KEY, SECRET = "LTAIcheckout0001", "s3cr3t-of-checkout"
API_TOKEN = "value-of-the-api-token"


class FakeClock:
    """Stands still until it is advanced; half a second past a whole one, so that truncation shows."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.5

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def boottime(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def server(clock: FakeClock) -> Iterator[EmulatorServer]:
    """An emulator with one function, two old instances, and a key limited to it."""
    seed = Seed(
        functions=[
            FunctionSeed(name="checkout", environment={"API_TOKEN": API_TOKEN, "MODE": "fast"}),
            FunctionSeed(name="payments"),
        ],
        credentials=[CredentialSeed(access_key_id=ACCESS_KEY, access_key_secret=SECRET, functions=["checkout"])],
    )
    with EmulatorServer(Emulator(seed, now=lambda: clock.seconds)) as server:
        yield server


@pytest.fixture
def emulator(server: EmulatorServer) -> Emulator:
    return server.emulator


@pytest.fixture
def credentials_dir(tmp_path: Path) -> Path:
    document = {"accessKeyId": ACCESS_KEY, "accessKeySecret": SECRET}
    (tmp_path / "checkout.json").write_text(json.dumps(document))
    return tmp_path


@pytest.fixture
def settings(credentials_dir: Path) -> ActionSettings:
    return ActionSettings(credentials_dir=credentials_dir, request_timeout=5, verify_deadline=60, poll_interval=2)


@pytest.fixture
def adapter(settings: ActionSettings, clock: FakeClock) -> FunctionComputeAdapter:
    return FunctionComputeAdapter(settings=settings, clock=clock, pause=clock.advance)


@pytest.fixture
def declare(server: EmulatorServer) -> Callable[..., RemediationTarget]:
    """Declare a target; keywords are fields of the function, `disposable` and `credentials_file` of the spec."""

    def build(*, disposable: bool = True, credentials_file: str = "checkout.json", **changes: Any) -> RemediationTarget:
        function: dict[str, Any] = {
            "region": "cn-hangzhou",
            "account_id": "1234567890",
            "function": "checkout",
            "endpoint": server.url,
        }
        return RemediationTarget(
            metadata=ObjectMeta(name="checkout", namespace="shop", uid="target-uid", generation=3),
            spec=RemediationTargetSpec(
                kind="FunctionCompute",
                function_compute=FunctionCompute(**(function | changes)),
                credentials_file=credentials_file,
                disposable=disposable,
                alert_selector=LabelSelector(match_labels={"service": "checkout"}),
            ),
        )

    return build


@pytest.fixture
def target(declare: Callable[..., RemediationTarget]) -> RemediationTarget:
    return declare()


def allowed() -> str | None:
    """A permit that permits."""
    return None
