"""What can be made to go wrong, for whom, and how often."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Kind(StrEnum):
    """The ways to fail."""

    DROP_BEFORE = "drop_before"
    """The connection is closed and nothing was done."""
    DROP_AFTER = "drop_after"
    """It was done, and the connection is closed without an answer."""
    STATUS = "status"
    """An error answer, nothing was done: see status, code, message, body, retryAfterMs."""
    REDIRECT = "redirect"
    """307 to `location`, nothing was done."""
    DELAY = "delay"
    """It was done; the answer comes after `seconds`."""
    TRICKLE = "trickle"
    """It was done; the answer comes byte by byte, `seconds` apart."""
    GARBLE = "garble"
    """It was done; the answer is 200 and no JSON."""
    HOLD_BEFORE = "hold_before"
    """It waits, nothing done, until the fault is removed."""
    HOLD_AFTER = "hold_after"
    """It was done; the answer waits until the fault is removed."""
    DARK_BEFORE = "dark_before"
    """Nothing was done, and from now on nothing answers until the light comes back."""
    DARK_AFTER = "dark_after"
    """It was done, and from now on nothing answers until the light comes back."""
    FOREIGN_CHANGE = "foreign_change"
    """Somebody else changes the environment, just before this is done."""
    START_INSTANCE = "start_instance"
    """An instance starts, right after this is done."""


BEFORE = frozenset({Kind.DROP_BEFORE, Kind.STATUS, Kind.REDIRECT, Kind.DARK_BEFORE})
"""The kinds with which a request is not carried out."""


class Body(StrEnum):
    """The shape of an error answer; all were seen or are documented."""

    POP = "pop"
    """`{"Code", "Message", "RequestId"}`"""
    FC = "fc"
    """`{"errorCode", "errorMessage", "requestId"}`"""
    HTML = "html"
    """A page, as a gateway in between would answer."""


class Fault(BaseModel):
    """A fault, as JSON in camelCase: it takes the requests of an operation, after `skip`, for so many `times`."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    kind: Kind
    operation: Annotated[str, Field(description="An operation's name, or * for all.")] = "UpdateFunction"
    function: Annotated[str | None, Field(description="Only this function.")] = None
    skip: Annotated[int, Field(ge=0, description="So many requests pass first.")] = 0
    times: Annotated[int | None, Field(ge=1, description="So many are hit; none given means all.")] = 1
    status: Annotated[int, Field(ge=300, le=599)] = 500
    code: str = "InternalServerError"
    message: str = "told to fail"
    body: Body = Body.POP
    retry_after_ms: Annotated[int | None, Field(ge=1)] = None
    location: str = "http://127.0.0.1:9/"
    seconds: Annotated[float, Field(ge=0)] = 0.05
    environment: dict[str, str] = {"DEPLOYED_BY": "somebody else"}


class Armed:
    """A fault in force: how many requests it has seen, and how many it has hit."""

    def __init__(self, fault_id: str, fault: Fault) -> None:
        self.id = fault_id
        self.fault = fault
        self.removed = False
        self.hits = 0
        self._seen = 0

    def takes(self, operation: str, function: str) -> bool:
        """Count a request, and say whether this fault hits it."""
        fault = self.fault
        if self.removed or fault.operation not in {"*", operation} or fault.function not in {None, function}:
            return False
        self._seen += 1
        if self._seen <= fault.skip or (fault.times is not None and self.hits >= fault.times):
            return False
        self.hits += 1
        return True
