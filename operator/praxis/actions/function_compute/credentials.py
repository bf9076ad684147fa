"""Where a target's service answers and with which key it is asked: each target has its own, read anew for each use."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from praxis.api.target import FunctionCompute, RemediationTarget
from praxis.errors import NeedsPerson
from praxis.settings import ActionSettings, is_loopback

CREDENTIALS_BYTES: Final = 16 * 1024
DIGEST_KEY_BYTES: Final = 16
"""The least length of a digest key: 128 bits."""


@dataclass(frozen=True)
class Credentials:
    """An access key; its parts never show in a `repr`."""

    access_key_id: str = field(repr=False)
    access_key_secret: str = field(repr=False)
    security_token: str | None = field(repr=False, default=None)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown."""
        return tuple(each for each in (self.access_key_id, self.access_key_secret, self.security_token) if each)


@dataclass(frozen=True)
class Endpoint:
    """Scheme and `host[:port]` of the service."""

    scheme: Literal["http", "https"]
    host: str


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    access_key_id: Annotated[str, Field(alias="accessKeyId", pattern=r"^[!-~]{1,256}$")]
    access_key_secret: Annotated[str, Field(alias="accessKeySecret", pattern=r"^[!-~]{1,256}$")]
    security_token: Annotated[str | None, Field(alias="securityToken", pattern=r"^[!-~]{1,8192}$")] = None


def read_credentials(settings: ActionSettings, target: RemediationTarget) -> Credentials:
    """Read the target's credentials file: JSON with accessKeyId, accessKeySecret and, for STS, securityToken.

    Raises:
        NeedsPerson: the file is absent, lies outside the directory, or does not hold that.
    """
    name = target.spec.credentials_file
    directory = settings.credentials_dir.resolve()
    # The CRD's pattern allows no slash; resolved all the same, as a symbolic link may point anywhere. A mounted Secret
    # is itself links, which stay inside the directory.
    path = (directory / name).resolve()
    if Path(name).name != name or not path.is_relative_to(directory):
        raise NeedsPerson(f"credentials file {name!r} of target {target.key} lies outside the credentials directory")
    parsed = _parse(path)
    if isinstance(parsed, str):
        raise NeedsPerson(f"credentials file {name!r} of target {target.key} {parsed}")
    return Credentials(parsed.access_key_id, parsed.access_key_secret, parsed.security_token)


def _parse(path: Path) -> _File | str:
    # Returns the complaint rather than raising it: the errors of json and pydantic quote what they read, and an
    # exception raised here would carry them along as its context.
    try:
        with path.open("rb") as file:
            data = file.read(CREDENTIALS_BYTES + 1)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if len(data) > CREDENTIALS_BYTES:
        return f"is larger than {CREDENTIALS_BYTES} bytes"
    try:
        return _File.model_validate(json.loads(data))
    except (ValidationError, ValueError):
        return "must be a JSON object with accessKeyId, accessKeySecret and, for STS only, securityToken"


def endpoint_of(function: FunctionCompute) -> Endpoint:
    """Where the API of a function answers: as declared, else the account's own address in the region.

    The account's address, not the regional one that the SDK would choose: it names the account, so credentials of
    another account cannot reach a function of the same name there.

    Raises:
        NeedsPerson: plain http to anything but this machine.
    """
    if function.endpoint is None:
        return Endpoint("https", f"{function.account_id}.{function.region}.fc.aliyuncs.com")
    parts = urlsplit(function.endpoint)
    if parts.scheme == "https":
        return Endpoint("https", parts.netloc)
    if not is_loopback(function.endpoint):
        raise NeedsPerson(f"endpoint {function.endpoint} is plain http; only a loopback address may be")
    return Endpoint("http", parts.netloc)


def read_digest_key(settings: ActionSettings) -> bytes | None:
    """The key of the digests of environment values, from its file; None when none is configured.

    Raises:
        NeedsPerson: the file cannot be read or holds fewer than 16 bytes.
    """
    if settings.digest_key_file is None:
        return None
    try:
        key = settings.digest_key_file.read_bytes().strip()
    except OSError as error:
        raise NeedsPerson(f"digest key file {settings.digest_key_file} cannot be read: {error.strerror}") from error
    if len(key) < DIGEST_KEY_BYTES:
        raise NeedsPerson(f"digest key file {settings.digest_key_file} holds fewer than {DIGEST_KEY_BYTES} bytes")
    return key


def digest_key(configured: bytes | None, credentials: Credentials, target: RemediationTarget) -> bytes:
    """The key for one target: derived from the configured one, else from the target's access key secret.

    A plan pins digests for hours, so every replica must come to the same key, before and after a restart. Without a
    configured key a rotated access key voids pending plans (they drift, and are drafted anew): fail closed.

    Raises:
        NeedsPerson: no key is configured and the credentials are temporary, so that every plan would drift.
    """
    if configured is None and credentials.security_token is not None:
        raise NeedsPerson(
            f"target {target.key} has temporary (STS) credentials: set PRAXIS_ACTIONS__DIGEST_KEY_FILE, "
            "as a digest key derived from them would change when they do"
        )
    root = configured if configured is not None else credentials.access_key_secret.encode()
    return hmac.new(root, f"praxis/environment-digests/v1/{target.metadata.uid}".encode(), hashlib.sha256).digest()
