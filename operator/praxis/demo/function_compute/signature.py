"""Verification of ACS3-HMAC-SHA256, Alibaba Cloud's request signature (V3, as the SDK 4.8.3 computes it)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote

from praxis.demo.function_compute.functions import CredentialSeed

ALGORITHM = "ACS3-HMAC-SHA256"
FRESH = timedelta(minutes=15)
SIGNED_AT_LEAST = frozenset({"host", "x-acs-action", "x-acs-content-sha256", "x-acs-date", "x-acs-signature-nonce"})


@dataclass(frozen=True)
class Request:
    """A request as it arrived; header names in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Refusal:
    """Why a request is not let in: HTTP status, the service's code, a sentence."""

    status: int
    code: str
    message: str


def authenticate(request: Request, credentials: Mapping[str, CredentialSeed]) -> CredentialSeed | Refusal:
    """Find the key that signed a request, or say what is wrong with its signature. Nonces are the caller's business."""
    algorithm, _, rest = request.headers.get("authorization", "").partition(" ")
    fields = dict(part.strip().split("=", 1) for part in rest.split(",") if "=" in part)
    if algorithm != ALGORITHM or not {"Credential", "SignedHeaders", "Signature"} <= fields.keys():
        return Refusal(403, "AccessDenied", f"an Authorization header with {ALGORITHM} is required")
    credential = credentials.get(fields["Credential"])
    if credential is None:
        return Refusal(403, "InvalidAccessKeyID", f"the access key {fields['Credential']} does not exist")
    if complaint := _complaint(request, credential, fields):
        return Refusal(403, "SignatureNotMatch", complaint)
    if request.headers.get("x-acs-security-token") != credential.security_token:
        return Refusal(403, "InvalidSecurityToken", "the security token is not this key's")
    return credential


def _complaint(request: Request, credential: CredentialSeed, fields: Mapping[str, str]) -> str | None:
    names = fields["SignedHeaders"].split(";")
    if missing := SIGNED_AT_LEAST - set(names):
        return f"not signed: {', '.join(sorted(missing))}"
    hashed = hashlib.sha256(request.body).hexdigest()
    if request.headers.get("x-acs-content-sha256") != hashed:
        return "x-acs-content-sha256 is not the body's"
    if not _fresh(request.headers["x-acs-date"]):
        return "x-acs-date is more than 15 minutes off"
    expected = _sign(request, names, hashed, credential.access_key_secret)
    if not hmac.compare_digest(expected, fields["Signature"]):
        # The real service quotes what it has signed, too: whoever shows such a message shows these headers.
        return f"the signature does not match; signed were {fields['SignedHeaders']} for {credential.access_key_id}"
    return None


def _fresh(date: str) -> bool:
    try:
        moment = datetime.strptime(date, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return False
    # The machine's own clock, as the client's: what the emulator pretends to be the service's time does not matter.
    return abs(datetime.now(UTC) - moment) <= FRESH


def _sign(request: Request, names: list[str], hashed: str, secret: str) -> str:
    pairs = sorted(parse_qsl(request.query, keep_blank_values=True))
    query = "&".join(f"{quote(key, safe='~')}={quote(value, safe='~')}" for key, value in pairs)
    headers = "".join(f"{name}:{request.headers.get(name, '').strip()}\n" for name in names)
    canonical = "\n".join([request.method, request.path, query, headers, ";".join(names), hashed])
    text = f"{ALGORITHM}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
