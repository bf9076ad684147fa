"""The emulator does what the tests and the demo rely on: over the wire, with the real SDK, as its own process too."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from alibabacloud_fc20230330 import models
from alibabacloud_fc20230330.client import Client
from alibabacloud_tea_openapi.exceptions import ClientException
from alibabacloud_tea_openapi.utils_models import Config

from praxis.demo.function_compute import Admin, Emulator, EmulatorServer, Fault
from praxis.demo.function_compute.admin import AdminError
from praxis.demo.function_compute.faults import Kind
from tests.actions.conftest import ACCESS_KEY, SECRET, FakeClock


def client(server: EmulatorServer, key: str = ACCESS_KEY, secret: str = SECRET) -> Client:
    """The SDK's own client, as a user would make it."""
    return Client(
        Config(
            access_key_id=key,
            access_key_secret=secret,
            region_id="cn-hangzhou",
            endpoint=f"127.0.0.1:{server.port}",
            protocol="HTTP",
        )
    )


@pytest.fixture
def admin(server: EmulatorServer) -> Admin:
    return Admin(server.url)


@pytest.mark.parametrize(
    ("key", "secret", "function", "status", "code"),
    [
        (ACCESS_KEY, "wrong", "checkout", 403, "SignatureNotMatch"),
        ("LTAInobody", SECRET, "checkout", 403, "InvalidAccessKeyID"),
        (ACCESS_KEY, SECRET, "payments", 403, "AccessDenied"),
        (ACCESS_KEY, SECRET, "nowhere", 403, "AccessDenied"),
    ],
)
def test_it_lets_in_only_who_may(  # noqa: PLR0917  # pytest passes by name
    server: EmulatorServer, key: str, secret: str, function: str, status: int, code: str
) -> None:
    """Signature, key and the key's functions are checked, and told with the service's codes."""
    with pytest.raises(ClientException) as raised:
        client(server, key, secret).get_function(function, models.GetFunctionRequest())
    assert (raised.value.status_code, raised.value.code) == (status, code)


def test_a_replayed_request_is_refused(server: EmulatorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A nonce is good once."""
    monkeypatch.setattr("alibabacloud_tea_openapi.client.Utils.get_nonce", staticmethod(lambda: "the-same"))
    client(server).get_function("checkout", models.GetFunctionRequest())
    with pytest.raises(ClientException, match="nonce"):
        client(server).get_function("checkout", models.GetFunctionRequest())


def test_an_altered_body_is_refused(server: EmulatorServer) -> None:
    """An unsigned request and one whose body is not what was signed get nothing done."""
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.request("PUT", "/2023-03-30/functions/checkout", '{"environmentVariables": {"A": "b"}}')
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["Code"]) == (403, "AccessDenied")
    connection.close()
    assert [(each.authenticated, each.applied) for each in server.emulator.dispatches()] == [(False, False)]


def test_the_sdk_s_typed_operations_understand_it(server: EmulatorServer, emulator: Emulator) -> None:
    """GetFunction, ListInstances and InvokeFunction answer in the shape that the SDK's models read."""
    sdk = client(server)
    function = sdk.get_function("checkout", models.GetFunctionRequest()).body
    assert (function.state, function.last_update_status) == ("Active", "Successful")
    listed = sdk.list_instances("checkout", models.ListInstancesRequest(with_all_active=True)).body.instances
    assert {each.instance_id for each in listed} == {each.id for each in emulator.instances("checkout")}
    answer = sdk.invoke_function("checkout", models.InvokeFunctionRequest(body=b"{}")).body.read()
    assert json.loads(answer)["restartId"] is None


def test_instances_drain_and_start_by_the_service_s_clock(emulator: Emulator, clock: FakeClock) -> None:
    """After an update the old instances live for drainSeconds, and new ones start after startSeconds."""
    old = {each.id for each in emulator.instances("checkout")}
    emulator.deploy("checkout", {"A": "b"})
    clock.advance(0.9)
    assert {each.id for each in emulator.instances("checkout")} == old
    clock.advance(0.2)
    assert emulator.instances("checkout") == []
    clock.advance(1)
    new = emulator.instances("checkout")
    assert [each.environment["A"] for each in new] == ["b", "b"]


def test_a_fault_skips_hits_and_is_spent(admin: Admin, server: EmulatorServer) -> None:
    """A fault takes so many requests of its operation after those it skips, and no others."""
    fault = admin.arm(Fault(kind=Kind.STATUS, status=400, operation="GetFunction", skip=1, times=2))
    sdk = client(server)
    outcomes = []
    for _ in range(4):
        try:
            sdk.get_function("checkout", models.GetFunctionRequest())
            outcomes.append("ok")
        except ClientException:
            outcomes.append("hit")
    assert outcomes == ["ok", "hit", "hit", "ok"]
    assert admin.wait_for_hits(fault, 2)
    admin.disarm(fault)
    with pytest.raises(AdminError, match="there is no"):
        admin.disarm(fault)


def test_a_held_request_can_be_waited_for_and_let_go(admin: Admin, server: EmulatorServer) -> None:
    """Whoever controls the emulator learns over HTTP that a request is held, and decides when it goes on."""
    held = admin.arm(Fault(kind=Kind.HOLD_AFTER, operation="UpdateFunction"))
    body = models.UpdateFunctionInput(environment_variables={"PRAXIS_RESTART_ID": "intent-1"})
    thread = threading.Thread(
        target=client(server).update_function, args=("checkout", models.UpdateFunctionRequest(body=body)), daemon=True
    )
    thread.start()
    assert admin.wait_for_hits(held)
    (arrival,) = admin.arrivals(function="checkout", operation="UpdateFunction", count=1)
    assert arrival["status"] is None
    assert admin.function("checkout")["environmentVariables"] == {"PRAXIS_RESTART_ID": "intent-1"}
    admin.disarm(held)
    thread.join(30)
    assert [(each["marker"], each["status"]) for each in admin.dispatches(marker="intent-1")] == [("intent-1", 200)]


def test_waiting_for_what_does_not_come_ends(admin: Admin) -> None:
    """A wait has an end, and says what has arrived until then."""
    assert admin.arrivals(count=1, timeout=0.01) == []


def test_the_dark_ends_when_told(admin: Admin, server: EmulatorServer, emulator: Emulator) -> None:
    """In the dark nothing is answered; with the light it is."""
    admin.arm(Fault(kind=Kind.DARK_BEFORE, operation="GetFunction"))
    sdk = client(server)
    for _ in range(2):
        with pytest.raises(Exception, match="Connection aborted"):
            sdk.get_function("checkout", models.GetFunctionRequest())
    admin.light()
    assert sdk.get_function("checkout", models.GetFunctionRequest()).status_code == 200
    assert [each.status for each in emulator.arrivals()] == [None, None, 200]


def test_everything_can_be_controlled_over_http(admin: Admin, emulator: Emulator) -> None:
    """Functions, keys, instances, deployments and the clock are reached, and what is wrong is said."""
    admin.add_function(name="extra", instances=1, drainSeconds=5)
    admin.add_credential(accessKeyId="k", accessKeySecret="s", functions=["extra"])
    admin.deploy("extra", {"A": "b"})
    started = admin.start_instance("extra")
    admin.change("extra", refuseToRotate=True)
    admin.stop_instance("extra", started)
    admin.skew(3600)
    assert admin.function("extra")["environmentVariables"] == {"A": "b"}
    assert emulator._functions["extra"].seed.refuse_to_rotate
    with pytest.raises(AdminError, match="there is no 'absent'"):
        admin.function("absent")
    with pytest.raises(AdminError, match="no_such_field"):
        admin.add_function(name="x", no_such_field=1)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    seed = {
        "functions": [{"name": "checkout", "instances": 3}],
        "credentials": [{"accessKeyId": ACCESS_KEY, "accessKeySecret": SECRET}],
    }
    (tmp_path / "seed.json").write_text(json.dumps(seed))
    command = [sys.executable, "-m", "praxis.demo.function_compute", "--port-file", str(tmp_path / "port")]
    with subprocess.Popen(
        [*command, "--functions", str(tmp_path / "seed.json")], stdout=subprocess.PIPE, text=True
    ) as child:
        yield child, tmp_path / "port"
        child.kill()


def test_it_runs_as_a_process_of_its_own(process: tuple[subprocess.Popen[str], Path]) -> None:
    """It says where it is when it is ready, has the functions of the file, and ends on SIGTERM with 0."""
    child, port_file = process
    assert child.stdout is not None
    url = child.stdout.readline().rsplit(" ", 1)[1].strip()
    # The line is printed when the port is open; the file is there when the control interface answers.
    admin = Admin(url)
    assert len(admin.function("checkout")["instances"]) == 3
    child.send_signal(signal.SIGTERM)
    assert child.wait(30) == 0
    assert url.endswith(f":{port_file.read_text()}")


def test_a_seed_that_makes_no_sense_is_told(tmp_path: Path) -> None:
    """A broken file is a usage error with a sentence, not a traceback."""
    (tmp_path / "seed.json").write_text('{"functions": [{"name": "f", "instances": -1}]}')
    command = [sys.executable, "-m", "praxis.demo.function_compute", "--functions", str(tmp_path / "seed.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "functions.0.instances" in done.stderr
    assert "Traceback" not in done.stderr
