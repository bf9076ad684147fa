"""Every way in which a model call can fail, mapped in this one place to who can do something about it.

Sources: Model Studio's error codes and OpenRouter's error documents; the SDK's exceptions. Two things are peculiar:
OpenRouter answers 200 with an `error` in the body, and the SDK lets transport errors of a streamed body through as they
are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import openai

from praxis.errors import InvalidAnswer, NeedsPerson, PraxisError, RetryLater
from praxis.reasoning.cleaning import line

MESSAGE_CHARACTERS = 512
RETRIED = frozenset({408, 409, 425, 429})
KEY_REFUSED = frozenset({401, 403})
BILLING_CODES = frozenset({"arrearage", "insufficient_balance", "allocationquota.freetieronly"})
CONTENT_CODES = frozenset({"data_inspection_failed", "datainspectionfailed", "content_policy_violation"})
TOO_LONG = ("range of input length", "maximum context length", "context_length_exceeded")
PARAMETER_CODES = ("invalid_parameter", "invalidparameter", "unsupported_parameter", "unsupported_value")
NO_ENDPOINT = ("no endpoints found that", "requested parameters")
"""OpenRouter's 404 when no provider of the model has a parameter that `require_parameters` insists on."""


class ParameterRefused(NeedsPerson):
    """The model does not take a parameter of the request: asked again without it where that is possible."""


class Throttled(RetryLater):
    """The service did not work on the request at all: nothing was spent, and it may be asked again soon."""


@dataclass(frozen=True)
class Fault:
    """An error as a service words it."""

    status: int
    code: str
    message: str
    after: float | None = None

    @property
    def text(self) -> str:
        """For people; what a service echoes may hold secrets or control characters."""
        code = f" {line(self.code, 64)}" if self.code else ""
        return f"{self.status}{code}: {line(self.message, MESSAGE_CHARACTERS)}"


def mapped(error: Exception, *, now: datetime | None = None) -> PraxisError:
    """The consequence of an exception of the SDK or of its transport."""
    if isinstance(error, PraxisError):
        return error
    if isinstance(error, openai.APIStatusError):
        return of_fault(_fault(error, now or datetime.now(UTC)))
    if isinstance(error, (openai.APITimeoutError, httpx2.TimeoutException, TimeoutError)):
        return RetryLater("the model did not answer in time")
    if isinstance(error, (openai.APIConnectionError, httpx2.HTTPError, httpx2.StreamError, OSError)):
        cause = error.__cause__ or error
        return RetryLater(f"the model could not be reached: {type(cause).__name__}: {line(str(cause), 256)}")
    return RetryLater(f"the model's answer could not be read: {type(error).__name__}")


def of_fault(fault: Fault) -> PraxisError:
    """The consequence of an error that the service worded."""
    code, message = fault.code.lower(), fault.message.lower()
    if code in BILLING_CODES or fault.status == 402:
        return NeedsPerson(f"the model account has no balance or quota ({fault.text}); settle it at the provider")
    if code in CONTENT_CODES:
        return InvalidAnswer(f"the provider's content filter refused the request ({fault.text})")
    if fault.status in KEY_REFUSED:
        return NeedsPerson(
            f"the model service refused the key ({fault.text}); put a valid key for this region into "
            "PRAXIS_MODELS__API_KEY_FILE"
        )
    if fault.status == 429 or code.startswith("throttling"):
        return Throttled(f"the model service throttles ({fault.text})", after=fault.after)
    if fault.status >= 500 or fault.status in RETRIED:
        kind = Throttled if fault.status == 503 and fault.after is not None else RetryLater
        return kind(f"the model service failed ({fault.text})", after=fault.after)
    if fault.status == 413 or code in TOO_LONG or any(each in message for each in TOO_LONG):
        return InvalidAnswer(f"the incident is too long for the model ({fault.text})")
    if any(each in code for each in PARAMETER_CODES) or all(each in message for each in NO_ENDPOINT):
        return ParameterRefused(f"the model refused a parameter ({fault.text}); use a model that takes it")
    if 300 <= fault.status < 400:
        return NeedsPerson(
            f"the model service redirects ({fault.text}), which is not followed; set PRAXIS_MODELS__BASE_URL to where "
            "it answers"
        )
    return NeedsPerson(
        f"the model service refused the request ({fault.text}); check PRAXIS_MODELS__BASE_URL and the model ids"
    )


def in_body(document: Any) -> Fault | None:
    """The error in the body of a 200, None when there is none."""
    error = document.get("error") if isinstance(document, Mapping) else None
    if not error:
        return None
    if not isinstance(error, Mapping):
        return Fault(status=502, code="", message=str(error))
    code = error.get("code")
    status = code if isinstance(code, int) and 300 <= code < 600 else 502
    name = error.get("type") if isinstance(code, int) else code
    return Fault(status=status, code=str(name or ""), message=str(error.get("message") or ""))


def _fault(error: openai.APIStatusError, now: datetime) -> Fault:
    body = error.body
    # The SDK unwraps `{"error": {...}}`; Model Studio's older paths answer with code and message at the top.
    named = body if isinstance(body, Mapping) else {}
    code = str(named.get("code") or named.get("type") or "")
    message = named.get("message") if named else body
    return Fault(
        status=error.status_code,
        code=code,
        message=message if isinstance(message, str) else json.dumps(message, default=str),
        after=_after(error.response.headers.get("retry-after"), now),
    )


def _after(value: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for: a number or a date; None when it says nothing usable."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    # Also drops NaN. An hour is the most that a service may make us wait between two looks.
    return min(max(seconds, 0.0), 3600.0) if seconds == seconds else None  # noqa: PLR0124
