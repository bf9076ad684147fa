"""The emulator itself: functions, credentials, faults, and the record of what arrived. Knows no HTTP server.

One lock guards all of it; a request that is held waits on it, so that tests wait for facts and not for time.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qs

from praxis.demo.function_compute.faults import BEFORE, Armed, Body, Fault, Kind
from praxis.demo.function_compute.functions import CredentialSeed, Function, FunctionSeed, Instance, Seed
from praxis.demo.function_compute.signature import Refusal, Request, authenticate

MARKER: Final = "PRAXIS_RESTART_ID"
PATH: Final = re.compile(r"^/2023-03-30/functions(/(?P<function>[A-Za-z0-9_-]+)(?P<rest>|/instances|/invocations))?$")
OPERATIONS: Final = {
    ("POST", None): "CreateFunction",
    ("GET", ""): "GetFunction",
    ("PUT", ""): "UpdateFunction",
    ("GET", "/instances"): "ListInstances",
    ("POST", "/invocations"): "InvokeFunction",
}
MUTATING: Final = frozenset({"CreateFunction", "UpdateFunction"})


@dataclass(frozen=True)
class Answer:
    """What goes back; `pace` is the seconds between two bytes, when it trickles."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    pace: float = 0


@dataclass(frozen=True)
class Arrival:
    """A request that arrived. `status` is None while it is not answered, and for good when it was dropped."""

    number: int
    operation: str
    function: str
    marker: str | None
    mutating: bool
    authenticated: bool = False
    applied: bool = False
    status: int | None = None


class Emulator:
    """Function Compute, as far as PRAXIS needs it. `now` is the service's clock, seconds since 1970."""

    def __init__(self, seed: Seed | None = None, *, now: Callable[[], float] = time.time) -> None:
        self._changed = threading.Condition()
        self._now = now
        self._skew = 0.0
        self._functions: dict[str, Function] = {}
        self._credentials: dict[str, CredentialSeed] = {}
        self._nonces: set[str] = set()
        self._faults: dict[str, Armed] = {}
        self._fault_ids = itertools.count(1)
        self._arrivals: list[Arrival] = []
        self._dark = False
        self._closed = False
        for function in (seed or Seed()).functions:
            self.add_function(function)
        for credential in (seed or Seed()).credentials:
            self.add_credential(credential)

    # What a test or the demo may do.

    def add_function(self, seed: FunctionSeed) -> None:
        """Declare a function, or begin one of that name anew."""
        with self._changed:
            self._functions[seed.name] = Function.begin(seed, self._time())

    def add_credential(self, seed: CredentialSeed) -> None:
        """Declare an access key."""
        with self._changed:
            self._credentials[seed.access_key_id] = seed

    def change(self, function: str, **settings: Any) -> None:
        """Change how a function behaves: fields of FunctionSeed. Raises KeyError without such a function."""
        with self._changed:
            target = self._functions[function]
            target.seed = FunctionSeed.model_validate({**target.seed.model_dump(), **settings})

    def deploy(self, function: str, environment: Mapping[str, str]) -> None:
        """Change a function's environment as a deployer would, past PRAXIS. Raises KeyError."""
        with self._changed:
            target = self._functions[function]
            target.update({**target.environment, **environment}, self._time())

    def start_instance(self, function: str) -> str:
        """Start an instance; its id. Raises KeyError."""
        with self._changed:
            return self._functions[function].start(self._time()).id

    def stop_instance(self, function: str, instance: str) -> None:
        """End an instance at once. Raises KeyError."""
        with self._changed:
            found = {each.id: each for each in self._functions[function].instances}[instance]
            found.ends = self._time()

    def instances(self, function: str) -> list[Instance]:
        """The active instances. Raises KeyError."""
        with self._changed:
            return [replace(each) for each in self._functions[function].active(self._time())]

    def describe(self, function: str) -> dict[str, Any]:
        """Everything about a function, for the demo. Raises KeyError."""
        with self._changed:
            target = self._functions[function]
            now = self._time()
            return {**target.describe(now), "instances": target.describe_instances(now)}

    def skew(self, seconds: float) -> None:
        """Put the service's clock off."""
        with self._changed:
            self._skew = seconds

    def arm(self, fault: Fault) -> str:
        """Put a fault in force; its id."""
        with self._changed:
            armed = Armed(f"fault-{next(self._fault_ids)}", fault)
            self._faults[armed.id] = armed
            return armed.id

    def disarm(self, fault_id: str) -> None:
        """Remove a fault and let go whatever it holds. Raises KeyError."""
        with self._changed:
            self._faults.pop(fault_id).removed = True
            self._changed.notify_all()

    def hits(self, fault_id: str) -> int:
        """How many requests a fault has hit. Raises KeyError."""
        with self._changed:
            return self._faults[fault_id].hits

    def wait_for_hits(self, fault_id: str, count: int = 1, timeout: float = 30) -> bool:
        """Wait until a fault has hit so many requests; whether it has. Raises KeyError."""
        return self._wait(lambda: self._faults[fault_id].hits >= count, timeout)

    def light(self) -> None:
        """End the dark."""
        with self._changed:
            self._dark = False

    def arrivals(self, function: str | None = None, operation: str | None = None) -> list[Arrival]:
        """The requests that arrived, in order."""
        with self._changed:
            return self._matching(function, operation)

    def dispatches(self, function: str | None = None, marker: str | None = None) -> list[Arrival]:
        """The mutating requests that arrived, in order, of a function, with a marker."""
        return [each for each in self.arrivals(function) if each.mutating and (marker is None or each.marker == marker)]

    def wait_for_arrivals(
        self, count: int, *, function: str | None = None, operation: str | None = None, timeout: float = 30
    ) -> bool:
        """Wait until so many requests have arrived; whether they have."""
        return self._wait(lambda: len(self._matching(function, operation)) >= count, timeout)

    def close(self) -> None:
        """Let go whatever is held; nothing is answered any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # What the service does.

    def handle(self, request: Request) -> Answer | None:
        """Carry out a signed request; None closes the connection without an answer."""
        match = PATH.match(request.path)
        operation = OPERATIONS.get((request.method, match["rest"])) if match else None
        if match is None or operation is None:
            return self._error(404, "PathNotSupported", f"{request.method} {request.path} is not emulated")
        with self._changed:
            name = match["function"] or str(_json(request.body).get("functionName"))
            number = self._record(operation, name, request)
            answer = None if self._dark or self._closed else self._serve(number, operation, name, request)
            if answer is not None:
                self._note(number, status=answer.status)
            return answer

    def _serve(self, number: int, operation: str, name: str, request: Request) -> Answer | None:
        refusal = self._refusal(operation, name, request)
        if refusal is not None:
            return self._error(refusal.status, refusal.code, refusal.message)
        self._note(number, authenticated=True)
        faults = [each for each in self._faults.values() if each.takes(operation, name)]
        self._changed.notify_all()
        self._hold(faults, Kind.HOLD_BEFORE)
        if self._closed:
            return None
        for each in faults:
            if each.fault.kind is Kind.FOREIGN_CHANGE:
                self._functions[name].update(
                    {**self._functions[name].environment, **each.fault.environment}, self._time()
                )
        for each in faults:
            if each.fault.kind in BEFORE:
                return self._instead(each.fault)
        answer = self._carry_out(operation, name, request)
        self._note(number, applied=answer.status < 300)
        self._hold(faults, Kind.HOLD_AFTER)
        return self._afterwards(answer, name, faults)

    def _refusal(self, operation: str, name: str, request: Request) -> Refusal | None:
        credential = authenticate(request, self._credentials)
        if isinstance(credential, Refusal):
            return credential
        nonce = request.headers["x-acs-signature-nonce"]
        if nonce in self._nonces:
            return Refusal(400, "SignatureNonceUsed", "this nonce was used before")
        self._nonces.add(nonce)
        if credential.functions is not None and name not in credential.functions:
            return Refusal(403, "AccessDenied", f"this access key may not touch function {name}")
        if operation == "CreateFunction":
            exists = name in self._functions
            return Refusal(409, "FunctionAlreadyExists", f"function '{name}' exists") if exists else None
        if name not in self._functions:
            return Refusal(404, "FunctionNotFound", f"function '{name}' does not exist")
        if parse_qs(request.query).get("qualifier", ["LATEST"]) != ["LATEST"]:
            return Refusal(404, "FunctionNotFound", "there is no such version or alias")
        return None

    def _carry_out(self, operation: str, name: str, request: Request) -> Answer:
        now = self._time()
        if operation == "CreateFunction":
            self.add_function(FunctionSeed(name=name, instances=0))
        function = self._functions[name]
        if operation == "ListInstances":
            return self._list(function, parse_qs(request.query), now)
        if operation == "InvokeFunction":
            instance = function.serve(now)
            return self._ok({"instanceId": instance.id, "restartId": instance.environment.get(MARKER)})
        if operation in MUTATING:
            changes = _json(request.body)
            environment = changes.get("environmentVariables", {})
            if not isinstance(environment, dict) or not all(isinstance(each, str) for each in environment.values()):
                return self._error(400, "InvalidArgument", f"environmentVariables must be strings, got {environment}")
            function.configure(changes, now)
        return self._ok(function.describe(now))

    def _list(self, function: Function, query: Mapping[str, list[str]], now: float) -> Answer:
        entries = function.describe_instances(now)
        first = int(query.get("startKey", ["0"])[0])
        size = min(int(query.get("limit", ["20"])[0]), function.seed.page_limit)
        page: dict[str, Any] = {"instances": entries[first : first + size]}
        if first + size < len(entries):
            page["nextToken"] = str(first + size)
        return self._ok(page)

    def _instead(self, fault: Fault) -> Answer | None:
        if fault.kind is Kind.DARK_BEFORE:
            self._dark = True
        if fault.kind is Kind.REDIRECT:
            return replace(self._ok({}), status=307, headers={**self._ok({}).headers, "Location": fault.location})
        if fault.kind is not Kind.STATUS:
            return None
        answer = self._error(fault.status, fault.code, fault.message, shape=fault.body)
        if fault.retry_after_ms is None:
            return answer
        return replace(answer, headers={**answer.headers, "x-acs-retry-after": str(fault.retry_after_ms)})

    def _afterwards(self, answer: Answer, name: str, faults: Sequence[Armed]) -> Answer | None:
        outcome: Answer | None = answer
        for each in faults:
            match each.fault.kind:
                case Kind.START_INSTANCE:
                    self._functions[name].start(self._time())
                case Kind.DARK_AFTER:
                    self._dark = True
                    outcome = None
                case Kind.DROP_AFTER:
                    outcome = None
                case Kind.GARBLE:
                    outcome = replace(answer, body=b"<html>200</html>")
                case Kind.TRICKLE:
                    outcome = replace(answer, pace=each.fault.seconds)
                case Kind.DELAY:
                    self._wait(lambda: self._closed, each.fault.seconds)
                case _:
                    pass
        return None if self._closed else outcome

    def _hold(self, faults: Sequence[Armed], kind: Kind) -> None:
        for each in faults:
            if each.fault.kind is kind:
                self._changed.wait_for(lambda each=each: each.removed or self._closed)  # type: ignore[misc]

    def _record(self, operation: str, function: str, request: Request) -> int:
        arrival = Arrival(
            number=len(self._arrivals),
            operation=operation,
            function=function,
            marker=_marker(request.body) if operation in MUTATING else None,
            mutating=operation in MUTATING,
        )
        self._arrivals.append(arrival)
        self._changed.notify_all()
        return arrival.number

    def _note(self, number: int, **facts: Any) -> None:
        self._arrivals[number] = replace(self._arrivals[number], **facts)
        self._changed.notify_all()

    def _matching(self, function: str | None, operation: str | None) -> list[Arrival]:
        return [
            each for each in self._arrivals if function in {None, each.function} and operation in {None, each.operation}
        ]

    def _wait(self, condition: Callable[[], bool], timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(condition, timeout)

    def _time(self) -> float:
        return self._now() + self._skew

    def _ok(self, document: Mapping[str, Any]) -> Answer:
        request_id = str(uuid.uuid4())
        return Answer(200, self._headers(request_id), json.dumps({**document, "requestId": request_id}).encode())

    def _error(self, status: int, code: str, message: str, *, shape: Body = Body.POP) -> Answer:
        request_id = str(uuid.uuid4())
        if shape is Body.HTML:
            headers = {**self._headers(request_id), "Content-Type": "text/html"}
            return Answer(status, headers, f"<html><h1>{status}</h1>{message}</html>".encode())
        if shape is Body.FC:
            document = {"errorCode": code, "errorMessage": message, "requestId": request_id}
        else:
            document = {"Code": code, "Message": message, "RequestId": request_id}
        return Answer(status, self._headers(request_id), json.dumps(document).encode())

    def _headers(self, request_id: str) -> dict[str, str]:
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(self._time()))
        return {"Date": date, "Content-Type": "application/json", "x-fc-request-id": request_id}


def as_json(arrivals: Sequence[Arrival]) -> list[dict[str, Any]]:
    """Arrivals for the HTTP interface."""
    return [asdict(each) for each in arrivals]


def _json(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _marker(body: bytes) -> str | None:
    environment = _json(body).get("environmentVariables")
    return environment.get(MARKER) if isinstance(environment, dict) else None
