"""The four operations of Function Compute 3.0 that PRAXIS uses, on the one function that was declared.

All go through the SDK's generic call, not its typed ones: the typed ListInstances answer drops the token of the next
page, and the configuration digest needs every field, known to the SDK or not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Final, Literal

from alibabacloud_fc20230330.client import Client
from alibabacloud_tea_openapi.utils_models import Config, OpenApiRequest, Params
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from praxis.actions.function_compute.credentials import Credentials, endpoint_of
from praxis.actions.function_compute.faults import Fate, Fault, fault_of
from praxis.actions.function_compute.transport import Channel, Guard
from praxis.api.incident import Instance
from praxis.api.target import FunctionCompute
from praxis.errors import NeedsPerson, RetryLater

API_VERSION: Final = "2023-03-30"
LATEST: Final = "LATEST"
LATEST_VERSION_IDS: Final = frozenset({"0", "", LATEST})
PAGE: Final = 100
"""Instances asked for at once; a page this full without a token for the next may hide more."""
PAGES: Final = 20
SUCCESSFUL: Final = "Successful"
IN_PROGRESS: Final = "InProgress"


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore")


class _Function(_Answer):
    function_name: str | None = None
    function_arn: str | None = None
    environment_variables: dict[str, str] | None = None
    last_modified_time: str = ""
    last_update_status: str = ""
    state: str = ""


class _Instance(_Answer):
    instance_id: Annotated[str, Field(min_length=1, max_length=128)]
    version_id: str = ""
    status: str = ""
    created_time_ms: int = 0
    destroyed_time_ms: int = 0

    @property
    def active(self) -> bool:
        # Any other status, known to us or not, may still serve requests.
        return not (self.destroyed_time_ms > 0 or self.status.lower() == "destroyed")


class _Page(_Answer):
    instances: list[_Instance] = []
    next_token: str | None = None


class Health(_Answer):
    """What a function answers at its health path: which instance it is and which marker it was started with."""

    instance_id: Annotated[str, Field(min_length=1, max_length=128)]
    restart_id: str | None = None


@dataclass(frozen=True)
class FunctionState:
    """A function as the service describes it, when it said so by its own clock, and in answer to which request."""

    document: Mapping[str, Any]
    environment: Mapping[str, str]
    last_modified: str
    last_update_status: str
    state: str
    server_time: datetime | None
    request_id: str


@dataclass(frozen=True)
class Listing:
    """The active instances of LATEST; `complete` is False when there may be more."""

    instances: tuple[Instance, ...]
    complete: bool


@dataclass(frozen=True)
class _Reply:
    document: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def request_id(self) -> str:
        return self.headers.get("x-fc-request-id") or str(self.document.get("requestId") or "")

    @property
    def server_time(self) -> datetime | None:
        try:
            return parsedate_to_datetime(self.headers["date"])
        except (KeyError, ValueError):
            return None


class Service:
    """A connection to the service that owns one function, with that target's credentials. Use as a context manager.

    Raises:
        NeedsPerson: the endpoint is plain http elsewhere than on this machine, or `DEBUG=sdk` is set, with which the
            SDK prints signatures and tokens.
    """

    def __init__(self, *, function: FunctionCompute, credentials: Credentials, request_seconds: float) -> None:
        if os.environ.get("DEBUG", "").lower() == "sdk":
            raise NeedsPerson("unset DEBUG=sdk: with it the Alibaba Cloud SDK prints signatures and tokens")
        endpoint = endpoint_of(function)
        self._function = function
        self._secrets = set(credentials.secrets)
        self._seconds = request_seconds
        self._channel = Channel(endpoint)
        self._client = Client(
            Config(
                access_key_id=credentials.access_key_id,
                access_key_secret=credentials.access_key_secret,
                security_token=credentials.security_token,
                region_id=function.region,
                endpoint=endpoint.host,
                protocol=endpoint.scheme.upper(),
                user_agent="praxis",
            )
        )

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *exc: object) -> None:
        self._channel.__exit__(*exc)

    def get_function(self) -> FunctionState:
        """Read the function as LATEST.

        Raises:
            DefinitelyNotApplied: it is not there.
            NeedsPerson: the credentials are refused, or the answer speaks of another function.
            RetryLater: the service could not be asked, or its answer makes no sense.
        """
        reply = self._read("GetFunction", "", query={"qualifier": LATEST})
        state = self._function_state(reply)
        if state is None:
            raise RetryLater("the service's description of the function makes no sense")
        if not self._is_declared(state.document):
            raise NeedsPerson(
                f"the service answered for another function than {self._function.function} "
                f"of account {self._function.account_id}"
            )
        return state

    def list_instances(self) -> Listing:
        """Read the active instances of LATEST, every page. Raises as `get_function`."""
        found: dict[str, Instance] = {}
        tokens: list[str] = []
        for _ in range(PAGES):
            query = {"qualifier": LATEST, "withAllActive": "true", "limit": str(PAGE)}
            page = self._page(query | ({"startKey": tokens[-1]} if tokens else {}))
            for each in page.instances:
                if each.active and each.version_id in LATEST_VERSION_IDS:
                    found[each.instance_id] = Instance(id=each.instance_id, created=each.created_time_ms)
            if not page.next_token:
                return Listing(tuple(found.values()), complete=len(page.instances) < PAGE)
            if page.next_token in tokens:
                break
            tokens.append(page.next_token)
        return Listing(tuple(found.values()), complete=False)

    def set_environment(self, environment: Mapping[str, str], guard: Guard) -> FunctionState | Fault:
        """Replace the environment: the one write, sent at most once, right after `guard` allows it.

        Call it after a read on the same connection, which would have shown that the guard is out of force. Raises
        nothing: what failed is a Fault.
        """
        reply = self._call("UpdateFunction", "PUT", "", body={"environmentVariables": dict(environment)}, guard=guard)
        if isinstance(reply, Fault):
            return reply
        state = self._function_state(reply)
        return state or Fault(Fate.AMBIGUOUS, "the service's answer to the update makes no sense")

    def health(self, path: str) -> Health | None:
        """Ask the function itself at its health path; None when it does not answer with an instance id.

        The API has no way to address a path of a function, nor one of its instances: the function is invoked with the
        JSON body `{"path": path}`, as the target function of `deploy/` understands it. Not tried on the live service.
        """
        reply = self._call("InvokeFunction", "POST", "/invocations", query={"qualifier": LATEST}, body={"path": path})
        if isinstance(reply, Fault):
            return None
        try:
            return Health.model_validate(reply.document)
        except ValidationError:
            return None

    def _page(self, query: dict[str, str]) -> _Page:
        reply = self._read("ListInstances", "/instances", query=query)
        try:
            return _Page.model_validate(reply.document)
        except ValidationError as error:
            raise RetryLater(f"the service's list of instances makes no sense: {_fields(error)}") from None

    def _function_state(self, reply: _Reply) -> FunctionState | None:
        try:
            function = _Function.model_validate(reply.document)
        except ValidationError:
            return None
        environment = function.environment_variables or {}
        # From here on the service may quote a value in an error.
        self._secrets.update(environment.values())
        return FunctionState(
            document=reply.document,
            environment=environment,
            last_modified=function.last_modified_time,
            last_update_status=function.last_update_status,
            state=function.state,
            server_time=reply.server_time,
            request_id=reply.request_id,
        )

    def _is_declared(self, document: Mapping[str, Any]) -> bool:
        # acs:fc:REGION:ACCOUNT:functions/NAME
        function = _Function.model_validate(document)
        parts = (function.function_arn or "").split(":")
        owner = parts[3] if len(parts) > 4 else self._function.account_id
        return owner == self._function.account_id and function.function_name in {None, self._function.function}

    def _read(self, action: str, suffix: str, *, query: Mapping[str, str]) -> _Reply:
        reply = self._call(action, "GET", suffix, query=query)
        if isinstance(reply, Fault):
            raise reply.as_reading_error()
        if not self._channel.left:
            raise NeedsPerson("the SDK bypasses PRAXIS' transport: this version of it cannot be used")
        return reply

    def _call(
        self,
        action: str,
        method: Literal["GET", "POST", "PUT"],
        suffix: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        guard: Guard | None = None,
    ) -> _Reply | Fault:
        params = Params(
            action=action,
            version=API_VERSION,
            protocol="HTTPS",
            pathname=f"/{API_VERSION}/functions/{self._function.function}{suffix}",
            method=method,
            auth_type="AK",
            style="ROA",
            req_body_type="json",
            body_type="string",
        )
        request = OpenApiRequest(query=dict(query or {}), body=dict(body) if body is not None else None, headers={})
        try:
            with self._channel.exchange(seconds=self._seconds, guard=guard):
                answer = self._client.call_api(params, request, self._channel.runtime(self._seconds))
        except Exception as error:  # noqa: BLE001  # the SDK lets through whatever its dependencies raise
            return fault_of(error, left=self._channel.left, secrets=self._secrets)
        return _reply_of(answer)


def _reply_of(answer: Mapping[str, Any]) -> _Reply | Fault:
    try:
        document = json.loads(answer["body"] or "{}")
    except ValueError:
        return Fault(Fate.AMBIGUOUS, "the answer is not JSON")
    if not isinstance(document, dict):
        return Fault(Fate.AMBIGUOUS, "the answer is not a JSON object")
    return _Reply(document, {str(name).lower(): str(value) for name, value in answer["headers"].items()})


def _fields(error: ValidationError) -> str:
    # The field and the kind of fault; pydantic's message would quote the value.
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['type']}" for each in error.errors()[:3])
