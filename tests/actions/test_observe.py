"""What is read before an intent, what is refused there, and where credentials and addresses come from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.actions.contract import Adapter, Sent
from praxis.actions.function_compute import FunctionComputeAdapter, read_digest_key
from praxis.actions.function_compute.credentials import Endpoint, digest_key, endpoint_of, read_credentials
from praxis.actions.function_compute.state import VOLATILE, configuration_digest, environment_digests
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.demo.function_compute import CredentialSeed, Emulator, Fault
from praxis.demo.function_compute.faults import Kind
from praxis.errors import DefinitelyNotApplied, NeedsPerson, PraxisError, RetryLater
from praxis.settings import ActionSettings
from tests.actions.conftest import ACCESS_KEY, API_TOKEN, INTENT, SECRET, FakeClock, allowed

Declare = Callable[..., RemediationTarget]
KEY = b"k" * 32


def test_it_is_an_adapter(adapter: FunctionComputeAdapter) -> None:
    """The adapter has the shape that the phases are given."""
    contract: Adapter = adapter
    assert contract is adapter


def test_the_baseline_is_what_runs(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """State digest, lastModifiedTime and the active instances are read; nothing is written."""
    baseline = adapter.observe(target)
    assert baseline.last_modified == "2027-01-15T07:00:00Z"
    assert {each.id for each in baseline.instances} == {each.id for each in emulator.instances("checkout")}
    assert baseline.state.startswith("hmac-sha256:")
    assert API_TOKEN not in baseline.model_dump_json()
    assert [each.operation for each in emulator.arrivals()] == ["GetFunction", "ListInstances"]


def test_the_state_is_the_same_for_every_replica_and_after_a_restart(
    adapter: FunctionComputeAdapter, target: RemediationTarget, settings: ActionSettings, clock: FakeClock
) -> None:
    """Without a configured key the digest's key comes from the target's credentials, not from the process."""
    other = FunctionComputeAdapter(settings=settings, clock=clock, pause=clock.advance)
    assert adapter.observe(target).state == other.observe(target).state
    keyed = FunctionComputeAdapter(settings=settings, clock=clock, key=KEY, pause=clock.advance)
    assert keyed.observe(target).state != other.observe(target).state


@pytest.mark.parametrize("count", [64, 65])
def test_more_instances_than_can_be_kept_track_of_are_refused(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, count: int
) -> None:
    """64 active instances are observed, page by page; 65 are DefinitelyNotApplied."""
    emulator.add_function(emulator._functions["checkout"].seed.model_copy(update={"instances": count}))
    emulator.change("checkout", page_limit=10)
    if count == 64:
        assert len(adapter.observe(target).instances) == 64
        return
    with pytest.raises(DefinitelyNotApplied, match="more than 64 instances") as raised:
        adapter.observe(target)
    assert raised.value.reason == Reason.NOT_VERIFIABLE


def test_nothing_running_is_refused(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """Without an instance there is nothing to restart, which is no success."""
    for each in emulator.instances("checkout"):
        emulator.stop_instance("checkout", each.id)
    with pytest.raises(DefinitelyNotApplied, match="no instance is running") as raised:
        adapter.observe(target)
    assert raised.value.reason == Reason.NOTHING_RUNNING


def test_an_update_in_progress_is_waited_for(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, clock: FakeClock
) -> None:
    """A deployment under way is no moment to restart; afterwards it is."""
    emulator.change("checkout", update_seconds=10)
    emulator.deploy("checkout", {"MODE": "slow"})
    with pytest.raises(RetryLater, match="in progress"):
        adapter.observe(target)
    clock.advance(12)
    assert len(adapter.observe(target).instances) == 2


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        (Fault(kind=Kind.STATUS, status=404, code="FunctionNotFound"), DefinitelyNotApplied, "not there"),
        (Fault(kind=Kind.STATUS, status=403, code="AccessDenied"), NeedsPerson, "refused the target's credentials"),
        (Fault(kind=Kind.STATUS, status=401), NeedsPerson, "refused the target's credentials"),
        (Fault(kind=Kind.STATUS, status=400, code="InvalidArgument"), NeedsPerson, "does not accept the request"),
        (Fault(kind=Kind.STATUS, status=429, code="ResourceExhausted"), RetryLater, "HTTP 429"),
        (Fault(kind=Kind.STATUS, status=500), RetryLater, "HTTP 500"),
        (Fault(kind=Kind.STATUS, status=503, retry_after_ms=1500), RetryLater, "HTTP 503"),
        (Fault(kind=Kind.DROP_BEFORE), RetryLater, "no complete answer"),
        (Fault(kind=Kind.GARBLE), RetryLater, "not JSON"),
        (Fault(kind=Kind.REDIRECT), RetryLater, "redirect"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or (str(value) if isinstance(value, str) else None),
)
@pytest.mark.parametrize("operation", ["GetFunction", "ListInstances"])
def test_every_failed_read_has_its_consequence(  # noqa: PLR0917  # pytest passes by name
    adapter: FunctionComputeAdapter,
    target: RemediationTarget,
    emulator: Emulator,
    fault: Fault,
    error: type[PraxisError],
    said: str,
    operation: str,
) -> None:
    """An outage is tried later, credentials and requests that are refused need a person, a missing function is a no."""
    emulator.arm(fault.model_copy(update={"operation": operation}))
    with pytest.raises(error, match=said) as raised:
        adapter.observe(target)
    if isinstance(raised.value, RetryLater):
        assert raised.value.after == (1.5 if fault.retry_after_ms else None)


def test_an_error_carries_no_exception_of_the_sdk(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """Whoever logs the error with its causes prints no signature: the SDK's exceptions hold the whole request."""
    emulator.arm(Fault(kind=Kind.DROP_BEFORE, operation="GetFunction"))
    with pytest.raises(RetryLater) as raised:
        adapter.observe(target)
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)


def test_a_function_of_another_account_is_refused(
    adapter: FunctionComputeAdapter, declare: Declare, emulator: Emulator
) -> None:
    """An answer that names another account than the declared one comes from credentials that belong elsewhere."""
    with pytest.raises(NeedsPerson, match="another function"):
        adapter.observe(declare(account_id="999"))
    assert emulator.dispatches() == []


def test_debug_output_of_the_sdk_is_refused(
    adapter: FunctionComputeAdapter, target: RemediationTarget, monkeypatch: pytest.MonkeyPatch, emulator: Emulator
) -> None:
    """With DEBUG=sdk the SDK would print Authorization headers: nothing is asked."""
    monkeypatch.setenv("DEBUG", "SDK")
    with pytest.raises(NeedsPerson, match="DEBUG=sdk"):
        adapter.observe(target)
    assert emulator.arrivals() == []


@pytest.mark.parametrize(
    ("declared", "endpoint"),
    [
        (None, Endpoint("https", "1234567890.cn-hangzhou.fc.aliyuncs.com")),
        ("https://fc.example.com:8443", Endpoint("https", "fc.example.com:8443")),
        ("http://127.0.0.1:9000", Endpoint("http", "127.0.0.1:9000")),
        ("http://localhost", Endpoint("http", "localhost")),
    ],
)
def test_the_address_is_the_declared_or_the_account_s(
    declare: Declare, declared: str | None, endpoint: Endpoint
) -> None:
    """By default the account is part of the address, so that other credentials reach no function of the same name."""
    assert endpoint_of(declare(endpoint=declared).spec.function_compute) == endpoint


@pytest.mark.parametrize("declared", ["http://10.0.0.1", "http://127.0.0.1.example.com", "http://fc.example.com:80"])
def test_plain_http_leaves_the_machine_for_nobody(
    adapter: FunctionComputeAdapter, declare: Declare, declared: str
) -> None:
    """Plain http to anything but a loopback address needs a person; nothing is sent there."""
    with pytest.raises(NeedsPerson, match="plain http"):
        adapter.observe(declare(endpoint=declared))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param(None, "cannot be read: No such file", id="missing"),
        pytest.param("", "must be a JSON object", id="empty"),
        pytest.param("[]", "must be a JSON object", id="list"),
        pytest.param(f'{{"accessKeyId": "{ACCESS_KEY}"}}', "must be a JSON object", id="no-secret"),
        pytest.param(
            json.dumps({"accessKeyId": ACCESS_KEY, "accessKeySecret": SECRET, "region": "x"}), "must be", id="extra"
        ),
        pytest.param(
            json.dumps({"accessKeyId": ACCESS_KEY, "accessKeySecret": f"{SECRET}\n"}), "must be", id="newline"
        ),
        pytest.param(" " * (16 * 1024 + 1), "is larger than 16384 bytes", id="too-large"),
    ],
)
def test_credentials_that_cannot_be_used_need_a_person(
    declare: Declare, settings: ActionSettings, content: str | None, complaint: str
) -> None:
    """The complaint names the file and never what is in it, nor does any exception behind it."""
    if content is not None:
        (settings.credentials_dir / "broken.json").write_text(content)
    with pytest.raises(NeedsPerson, match=complaint) as raised:
        read_credentials(settings, declare(credentials_file="broken.json"))
    assert "broken.json" in str(raised.value)
    assert SECRET not in str(raised.value)
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)


def test_credentials_do_not_show(declare: Declare, settings: ActionSettings) -> None:
    """The repr of credentials holds none of them."""
    credentials = read_credentials(settings, declare())
    assert credentials.access_key_secret == SECRET
    assert repr(credentials) == "Credentials()"


def test_credentials_outside_the_directory_are_not_read(
    declare: Declare, settings: ActionSettings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A link that leads out of the credentials directory is refused."""
    outside = tmp_path_factory.mktemp("outside") / "key.json"
    outside.write_text(json.dumps({"accessKeyId": "a", "accessKeySecret": "b"}))
    (settings.credentials_dir / "link.json").symlink_to(outside)
    with pytest.raises(NeedsPerson, match="outside the credentials directory"):
        read_credentials(settings, declare(credentials_file="link.json"))


def test_a_mounted_secret_is_read_through_its_links(declare: Declare, tmp_path: Path) -> None:
    """Kubernetes mounts a Secret as links into a directory of its own, which is inside the mount."""
    data = tmp_path / "mount" / "..2026_11_30"
    data.mkdir(parents=True)
    (data / "fn.json").write_text(json.dumps({"accessKeyId": "a", "accessKeySecret": "b"}))
    (tmp_path / "mount" / "..data").symlink_to("..2026_11_30")
    (tmp_path / "mount" / "fn.json").symlink_to("..data/fn.json")
    mounted = ActionSettings(credentials_dir=tmp_path / "mount")
    assert read_credentials(mounted, declare(credentials_file="fn.json")).access_key_id == "a"


def test_rotated_credentials_are_used_at_once(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, settings: ActionSettings
) -> None:
    """The file is read for each use."""
    adapter.observe(target)
    emulator.add_credential(CredentialSeed(access_key_id="LTAInew", access_key_secret="new", functions=["checkout"]))
    document = {"accessKeyId": "LTAInew", "accessKeySecret": "new"}
    (settings.credentials_dir / "checkout.json").write_text(json.dumps(document))
    emulator._credentials.pop(ACCESS_KEY)
    assert len(adapter.observe(target).instances) == 2


def test_temporary_credentials_need_a_digest_key(
    adapter: FunctionComputeAdapter,
    target: RemediationTarget,
    emulator: Emulator,
    settings: ActionSettings,
    clock: FakeClock,
) -> None:
    """A key derived from an STS token would change with it and void every plan: a person must configure one."""
    document = {"accessKeyId": "STS.x", "accessKeySecret": "y", "securityToken": "a-security-token"}
    emulator.add_credential(
        CredentialSeed(access_key_id="STS.x", access_key_secret="y", security_token="a-security-token")
    )
    (settings.credentials_dir / "checkout.json").write_text(json.dumps(document))
    with pytest.raises(NeedsPerson, match="PRAXIS_ACTIONS__DIGEST_KEY_FILE"):
        adapter.observe(target)
    keyed = FunctionComputeAdapter(settings=settings, clock=clock, key=KEY, pause=clock.advance)
    baseline = keyed.observe(target)
    assert keyed.dispatch(target, INTENT, baseline, allowed).sent is Sent.ACCEPTED


@pytest.mark.parametrize(("size", "taken"), [(15, False), (16, True), (17, True)])
def test_a_digest_key_has_at_least_128_bits(tmp_path: Path, size: int, taken: bool) -> None:
    """Fewer than 16 bytes, or a file that cannot be read, need a person; without a file there is no key."""
    path = tmp_path / "key"
    path.write_bytes(b"x" * size + b"\n")
    settings = ActionSettings(digest_key_file=path)
    if taken:
        assert read_digest_key(settings) == b"x" * size
    else:
        with pytest.raises(NeedsPerson, match="fewer than 16"):
            read_digest_key(settings)
    with pytest.raises(NeedsPerson, match="cannot be read"):
        read_digest_key(ActionSettings(digest_key_file=tmp_path / "absent"))
    assert read_digest_key(ActionSettings()) is None


def test_each_target_has_a_key_of_its_own(declare: Declare, settings: ActionSettings) -> None:
    """The same value in two targets gives two digests."""
    target = declare()
    other = target.replace(metadata=target.metadata.replace(uid="other"))
    credentials = read_credentials(settings, target)
    assert digest_key(KEY, credentials, target) != digest_key(KEY, credentials, other)


JSON_VALUES = st.text(max_size=20) | st.integers(-(2**40), 2**40) | st.booleans() | st.none()
FUNCTIONS = st.dictionaries(st.text(min_size=1, max_size=10), JSON_VALUES, max_size=6)
# Values of letters that no digest is written with: hypothesis would find the prefix of the digest itself.
VALUES = st.text("XYZ %=", min_size=4, max_size=40)
ENVIRONMENTS = st.dictionaries(st.text(min_size=1, max_size=10), VALUES, max_size=5)


def _encodable(document: Any) -> bool:
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@given(function=FUNCTIONS.filter(_encodable), environment=ENVIRONMENTS.filter(_encodable), said=st.text(max_size=9))
def test_the_state_ignores_only_what_is_volatile(
    function: dict[str, Any], environment: dict[str, str], said: str
) -> None:
    """Volatile fields change no digest; any other field, known or not, and any variable does."""
    full = {**function, "environmentVariables": environment}
    digest = configuration_digest(KEY, full)
    assert configuration_digest(KEY, {**full, **dict.fromkeys(VOLATILE, said)}) == digest
    assert configuration_digest(KEY, {**full, "addedByANewerService": said}) != digest
    assert configuration_digest(KEY, {**full, "environmentVariables": {**environment, "N": said + "x"}}) != digest
    assert configuration_digest(b"other key", full) != digest


@given(environment=ENVIRONMENTS.filter(_encodable))
def test_environment_digests_hold_no_value(environment: dict[str, str]) -> None:
    """Digests keep the names and nothing of the values but whether they are the same."""
    digests = environment_digests(KEY, environment)
    assert digests.keys() == environment.keys()
    assert all(len(each) == 44 and environment[name] not in each for name, each in digests.items())
