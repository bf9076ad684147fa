"""What it means when a call to the service fails: the one place where the SDK's exceptions are read.

The meanings were seen with the SDK 4.8.3 against a local server; see docs/untested-live.md for what was not tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from alibabacloud_tea_openapi.exceptions import AlibabaCloudException

from praxis.actions.function_compute.transport import TransportError
from praxis.actions.legible import legible
from praxis.api.reasons import Reason
from praxis.errors import DefinitelyNotApplied, NeedsPerson, PraxisError, RetryLater
from praxis.redaction import redact

MESSAGE_CHARACTERS: Final = 256
SHORTEST_SECRET: Final = 4
"""Shorter values are not masked: replacing every "1" would shred the text and hide nothing."""
CREDENTIAL_CODES: Final = frozenset(
    {"AccessDenied", "SignatureNotMatch", "SignatureDoesNotMatch", "InvalidAccessKeyID", "InvalidAccessKeyId.NotFound"}
)
TRANSIENT_STATUSES: Final = frozenset({408, 409, 425, 429})


class Fate(StrEnum):
    """What is known of a request whose call failed."""

    NEVER_SENT = "NeverSent"
    REJECTED = "Rejected"
    AMBIGUOUS = "Ambiguous"


@dataclass(frozen=True)
class Fault:
    """A failed call. `message` is a clause without secrets, fit for a status."""

    fate: Fate
    message: str
    status: int | None = None
    code: str = ""
    retry_after: float | None = None

    def as_reading_error(self) -> PraxisError:
        """The error for a call that only reads."""
        if self.status in {401, 403} or self.code in CREDENTIAL_CODES:
            return NeedsPerson(f"the service refused the target's credentials: {self.message}")
        if self.status == 404:
            return DefinitelyNotApplied(f"the function is not there: {self.message}", reason=Reason.FUNCTION_NOT_FOUND)
        if self.fate is Fate.REJECTED and self.status not in TRANSIENT_STATUSES:
            return NeedsPerson(f"the service does not accept the request: {self.message}")
        return RetryLater(f"the service could not be asked: {self.message}", after=self.retry_after)


def fault_of(error: Exception, *, left: bool, secrets: Iterable[str]) -> Fault:
    """Read an exception of the SDK.

    `left` says whether anything of the request may have been written (`Exchange.left`): without it the types could not
    be told apart, as the SDK raises the same one for a refused connection and a lost answer.
    """
    if isinstance(error, AlibabaCloudException) and isinstance(error.status_code, int):
        return _answered(error, secrets)
    fate = Fate.AMBIGUOUS if left else Fate.NEVER_SENT
    return Fault(fate, _cause(error, left=left))


def _answered(error: AlibabaCloudException, secrets: Iterable[str]) -> Fault:
    status = error.status_code
    body = error.data if isinstance(error.data, dict) else {}
    # The SDK reads `Code|code` and makes the string "None" of anything else; Function Compute documents errorCode.
    code = _word(body.get("Code") or body.get("code") or body.get("errorCode"))
    request_id = _word(body.get("RequestId") or body.get("requestId"))
    said = body.get("Message") or body.get("message") or body.get("errorMessage") or ""
    parts = [f"HTTP {status}", code, mask(str(said), secrets), f"request {request_id}" if request_id else ""]
    return Fault(
        fate=Fate.REJECTED if 400 <= status < 500 and status != 408 else Fate.AMBIGUOUS,
        message=", ".join(part for part in parts if part),
        status=status,
        code=code,
        retry_after=_seconds(error.retry_after),
    )


def mask(text: str, secrets: Iterable[str]) -> str:
    """The text on one line, cut at 256 characters, with every secret in it replaced: the given ones, and whatever else
    the redactor knows, and then what cannot be shown: a lone surrogate would keep the outcome out of a status. Masked
    before it is cut.
    """
    for secret in sorted({each for each in secrets if len(each) >= SHORTEST_SECRET}, key=len, reverse=True):
        text = text.replace(secret, "[redacted]")
    line = legible(" ".join(redact(text).split()))
    return line if len(line) <= MESSAGE_CHARACTERS else line[: MESSAGE_CHARACTERS - 1] + "…"


def _word(value: object) -> str:
    text = str(value or "")
    return text if re.fullmatch(r"[A-Za-z0-9._-]{1,128}", text) else ""


def _seconds(milliseconds: object) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, int) and milliseconds > 0 else None


def _cause(error: BaseException, *, left: bool) -> str:
    # Only our own words and the names of types: the texts of requests and urllib3 quote URLs, and those of the SDK
    # quote whole answers.
    root = _root(error)
    if isinstance(root, TransportError):
        return str(root)
    return f"{'no complete answer came' if left else 'no request could be sent'} ({type(root).__name__})"


def _root(error: BaseException) -> BaseException:
    """Follow what the SDK, requests and urllib3 wrap in attributes, arguments and contexts, to the innermost error."""
    seen = {id(error)}
    while (inner := _inner(error)) is not None and id(inner) not in seen:
        seen.add(id(inner))
        error = inner
    return error


def _inner(error: BaseException) -> BaseException | None:
    wrapped = (
        getattr(error, "inner_exception", None),
        getattr(error, "reason", None),
        *error.args,
        error.__cause__,
        error.__context__,
    )
    return next((each for each in wrapped if isinstance(each, BaseException)), None)
