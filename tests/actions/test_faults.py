"""Every exception of the SDK and what it is built on has a meaning; and one exchange is one request."""

from __future__ import annotations

import importlib
import inspect
import socket
import threading
from collections.abc import Iterator

import pytest
from alibabacloud_tea_openapi.exceptions import (
    AlibabaCloudException,
    ClientException,
    ServerException,
    ThrottlingException,
)
from darabonba.core import DaraCore
from hypothesis import given
from hypothesis import strategies as st

from praxis.actions.function_compute.credentials import Credentials, Endpoint
from praxis.actions.function_compute.faults import MESSAGE_CHARACTERS, Fate, Fault, fault_of, mask
from praxis.actions.function_compute.service import Service
from praxis.actions.function_compute.transport import (
    AnswerTooLarge,
    Channel,
    DeadlinePassed,
    Exchange,
    NotPermitted,
    Redirected,
    SentTwice,
    TransportError,
)
from praxis.api.target import FunctionCompute
from praxis.demo.function_compute import EmulatorServer
from tests.actions.conftest import ACCESS_KEY, SECRET

MODULES = (
    "Tea.exceptions",
    "darabonba.exceptions",
    "alibabacloud_tea_openapi.exceptions",
    "requests.exceptions",
    "urllib3.exceptions",
    "http.client",
    "json",
)


def _raised_by_the_sdk() -> Iterator[type[Exception]]:
    for name in MODULES:
        for _, each in inspect.getmembers(importlib.import_module(name), inspect.isclass):
            if issubclass(each, Exception) and not issubclass(each, Warning):
                yield each


@pytest.mark.parametrize(
    "kind", sorted(set(_raised_by_the_sdk()), key=lambda each: f"{each.__module__}.{each.__name__}")
)
@pytest.mark.parametrize(("left", "fate"), [(False, Fate.NEVER_SENT), (True, Fate.AMBIGUOUS)])
def test_an_exception_without_a_status_is_read_by_whether_anything_left(
    kind: type[Exception], left: bool, fate: Fate
) -> None:
    """Whatever is raised without an HTTP status: never sent before the first byte, ambiguous after it."""
    error = kind.__new__(kind)
    if isinstance(error, AlibabaCloudException):
        error.status_code = None
    assert fault_of(error, left=left, secrets=()).fate is fate


@pytest.mark.parametrize("kind", [ClientException, ServerException, ThrottlingException, AlibabaCloudException])
@pytest.mark.parametrize(
    ("status", "fate"),
    [
        (400, Fate.REJECTED),
        (404, Fate.REJECTED),
        (407, Fate.REJECTED),
        (408, Fate.AMBIGUOUS),
        (409, Fate.REJECTED),
        (429, Fate.REJECTED),
        (499, Fate.REJECTED),
        (500, Fate.AMBIGUOUS),
        (503, Fate.AMBIGUOUS),
        (599, Fate.AMBIGUOUS),
    ],
)
def test_an_answer_is_read_by_its_status(kind: type[AlibabaCloudException], status: int, fate: Fate) -> None:
    """4xx is a definite no, except 408; everything else is ambiguous; the type of the exception does not matter."""
    fault = fault_of(kind(status_code=status, code="None", data={}), left=True, secrets=())
    assert (fault.fate, fault.status) == (fate, status)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"Code": "FunctionNotFound", "Message": "no such function", "RequestId": "r-1"},
            "HTTP 404, FunctionNotFound, no such function, request r-1",
        ),
        (
            {"code": "FunctionNotFound", "message": "no such function", "requestId": "r-1"},
            "HTTP 404, FunctionNotFound, no such function, request r-1",
        ),
        ({"errorCode": "FunctionNotFound", "errorMessage": "no such"}, "HTTP 404, FunctionNotFound, no such"),
        ({"Code": "<script>", "Message": "a\nb\tc"}, "HTTP 404, a b c"),
        ({"Message": "bad \ud800 and \x1b[31m value"}, "HTTP 404, bad \ufffd and \ufffd[31m value"),
        ({}, "HTTP 404"),
    ],
    ids=["pop", "lower-case", "documented", "not-a-code", "not-legible", "empty"],
)
def test_both_shapes_of_an_error_body_are_read(data: dict[str, object], message: str) -> None:
    """Code and message are found in either shape; what is no code is left out."""
    assert fault_of(ClientException(status_code=404, code="None", data=data), left=True, secrets=()).message == message


@given(
    secrets=st.lists(st.text("QWXY0123", min_size=4, max_size=12), min_size=1, max_size=4),
    around=st.text("xyz ", max_size=300),
)
def test_no_secret_survives_masking(secrets: list[str], around: str) -> None:
    """Wherever secrets stand, also across the cut and inside each other, none is left; the length is bounded."""
    masked = mask(around + around.join(secrets) + around, secrets)
    assert len(masked) <= MESSAGE_CHARACTERS
    assert not [each for each in secrets if each in masked.replace("[redacted]", "|")]


@pytest.fixture
def service(server: EmulatorServer) -> Iterator[Service]:
    function = FunctionCompute(region="cn-hangzhou", account_id="1234567890", function="checkout", endpoint=server.url)
    with Service(function=function, credentials=Credentials(ACCESS_KEY, SECRET), request_seconds=5) as service:
        yield service


def test_a_second_send_of_the_same_request_is_stopped(
    server: EmulatorServer, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the SDK ever began to retry, the second request of an exchange would not leave."""
    service.get_function()
    once = DaraCore.do_action

    def twice(*args: object) -> object:
        once(*args)
        return once(*args)

    monkeypatch.setattr(DaraCore, "do_action", staticmethod(twice))
    answer = service.set_environment({"A": "b"}, lambda: None)
    assert isinstance(answer, Fault)
    assert (answer.fate, answer.message) == (Fate.AMBIGUOUS, "the request was already sent once")
    assert len(server.emulator.dispatches()) == 1


def test_an_sdk_that_bypasses_the_transport_is_noticed_at_the_first_read(
    server: EmulatorServer, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that did not pass the guard stops everything before a write could go the same way."""
    DaraCore._sessions.pop(service._channel._key)
    with pytest.raises(Exception, match="bypasses PRAXIS' transport"):
        service.get_function()
    assert server.emulator.dispatches() == []


def test_an_answer_larger_than_the_bound_is_not_read(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless answer costs no more memory than the bound."""
    monkeypatch.setattr("praxis.actions.function_compute.transport.ANSWER_BYTES", 100)
    with pytest.raises(Exception, match="larger than 100 bytes"):
        service.get_function()


def test_a_channel_leaves_nothing_in_the_sdk() -> None:
    """The session is registered under a key of its own and removed with the channel."""
    known = dict(DaraCore._sessions)
    with Channel(Endpoint("https", "fc.example.com")), Channel(Endpoint("https", "fc.example.com")):
        assert len(DaraCore._sessions) == len(known) + 2
    assert known == DaraCore._sessions


def test_a_connection_that_stands_too_late_is_not_written_to() -> None:
    """When connecting took longer than the whole exchange may, the guard is not even asked."""
    ours, theirs = socket.socketpair()
    asked: list[str] = []
    with ours, theirs:
        exchange = Exchange(seconds=60, guard=lambda: asked.append("asked"))
        exchange._expire()
        with pytest.raises(DeadlinePassed):
            exchange.depart(ours)
        exchange.finish()
    assert (exchange.left, asked) == (False, [])


def test_the_deadline_wakes_a_reader() -> None:
    """At the deadline a thread that waits for the answer is woken by the end of the connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        exchange = Exchange(seconds=60, guard=None)
        exchange.depart(ours)
        got: list[bytes] = []
        reader = threading.Thread(target=lambda: got.append(ours.recv(1)), daemon=True)
        reader.start()
        exchange._expire()
        reader.join(30)
        exchange.finish()
    assert got == [b""]


def test_every_transport_error_tells_itself() -> None:
    """Our own reasons are told in their own words, however deeply the SDK has wrapped them."""
    assert set(TransportError.__subclasses__()) == {
        NotPermitted,
        DeadlinePassed,
        SentTwice,
        Redirected,
        AnswerTooLarge,
    }
    inner = NotPermitted("the holder is somebody else")
    outer = RuntimeError(ValueError(inner))
    assert fault_of(outer, left=False, secrets=()).message == "the holder is somebody else"
