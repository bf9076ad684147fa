"""Who may send: a bearer token for Alertmanager, which cannot sign, and Standard Webhooks signatures for the others.

Secrets are lines of a file, which is read anew for every notification: a rotated one counts at once, and while two
lines stand there both count. A file that cannot be read admits nobody.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from praxis.api.incident import Authentication
from praxis.clock import Clock
from praxis.errors import NeedsPerson

FILE_BYTES: Final = 64 * 1024
SECRET_BYTES: Final = 24
"""The shortest secret that Standard Webhooks allows (https://www.standardwebhooks.com, Signature scheme)."""
TOKEN_CHARACTERS: Final = 16
"""A shorter token can be guessed."""
ID_CHARACTERS: Final = 256
_BEARER = re.compile(r"bearer +(?P<token>\S+) *", re.IGNORECASE)
_PREFIX = "whsec_"

Headers = Mapping[str, str]


class Sender(Protocol):
    """A way in which a sender proves who it is."""

    method: Authentication
    challenge: str
    """WWW-Authenticate of a refusal."""

    def check(self) -> None:
        """Raises NeedsPerson when nobody could prove anything, because of the configuration."""
        ...

    def admits(self, headers: Headers) -> bool:
        """Whether the body is worth reading. Raises as `check`."""
        ...

    def vouches(self, headers: Headers, body: bytes) -> bool:
        """Whether the sender is known and sent this body. Raises as `check`."""
        ...

    def notification_id(self, headers: Headers) -> str | None:
        """What the same notification has in common when it is sent again, if the sender says."""
        ...


@dataclass(frozen=True)
class SecretFile:
    """A file with a secret a line."""

    path: Path

    def lines(self) -> list[str]:
        """The secrets.

        Raises:
            NeedsPerson: the file cannot be read, is no text, or holds no secret.
        """
        try:
            with self.path.open("rb") as file:
                text = file.read(FILE_BYTES).decode()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise NeedsPerson(f"{self.path} cannot be read: {why}") from error
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise NeedsPerson(f"{self.path} holds no secret; write one a line")
        return lines


class Bearer:
    """`Authorization: Bearer TOKEN`, in the clear: use it over TLS or inside the cluster."""

    method = Authentication.BEARER
    challenge = 'Bearer realm="praxis"'

    def __init__(self, path: Path) -> None:
        self._file = SecretFile(path)

    def check(self) -> None:
        """Raises NeedsPerson when there is no token, or one that can be guessed."""
        self._tokens()

    def admits(self, headers: Headers) -> bool:
        """Whether the token is one of those in the file, in time that does not depend on how much of it is right."""
        given = _BEARER.fullmatch(headers.get("Authorization", ""))
        sent = _hash(given["token"] if given else "")
        # Every token is compared, found or not.
        matches = [hmac.compare_digest(sent, _hash(token)) for token in self._tokens()]
        return any(matches)

    def vouches(self, headers: Headers, body: bytes) -> bool:
        """The token says nothing of the body."""
        del headers, body
        return True

    def notification_id(self, headers: Headers) -> str | None:
        """Alertmanager gives none."""
        del headers
        return None

    def _tokens(self) -> list[str]:
        tokens = self._file.lines()
        if any(len(token) < TOKEN_CHARACTERS for token in tokens):
            raise NeedsPerson(f"{self._file.path}: a token has at least {TOKEN_CHARACTERS} characters")
        return tokens


class Signed:
    """Standard Webhooks: an HMAC over id, timestamp and body."""

    method = Authentication.HMAC
    challenge = 'StandardWebhooks realm="praxis"'

    def __init__(self, path: Path, *, replay_window: float, clock: Clock) -> None:
        self._file = SecretFile(path)
        self._window = replay_window
        self._clock = clock

    def check(self) -> None:
        """Raises NeedsPerson when there is no secret, or one that is no secret of the standard."""
        self._webhooks()

    def admits(self, headers: Headers) -> bool:
        """Whether it says that it was signed, and a moment ago."""
        try:
            sent = float(headers.get("webhook-timestamp", ""))
        except ValueError:
            return False
        # A NaN is not within any window.
        recent = abs(self._clock.now().timestamp() - sent) <= self._window
        identified = 0 < len(headers.get("webhook-id", "")) <= ID_CHARACTERS
        return recent and identified and bool(headers.get("webhook-signature"))

    def vouches(self, headers: Headers, body: bytes) -> bool:
        """Whether one of the secrets in the file signed it."""
        matches = [self._signed(webhook, headers, body) for webhook in self._webhooks()]
        return any(matches)

    def notification_id(self, headers: Headers) -> str | None:
        """The `webhook-id`, which the signature covers."""
        return headers.get("webhook-id")

    def _signed(self, webhook: Webhook, headers: Headers, body: bytes) -> bool:
        # Of a header that was sent twice the same one must count here and in `notification_id`.
        signed = {name: headers.get(name, "") for name in ("webhook-id", "webhook-timestamp", "webhook-signature")}
        try:
            webhook.verify(body, signed, json_parse=False)
        except (WebhookVerificationError, ValueError):
            # The package raises bare ValueErrors for a malformed header, bad base64, and a body that is not UTF-8.
            return False
        return True

    def _webhooks(self) -> list[Webhook]:
        return [Webhook(_secret(line, self._file.path)) for line in self._file.lines()]


def _secret(text: str, path: Path) -> bytes:
    """The bytes of `whsec_…`; the package would skip characters that are no base64."""
    encoded = text.removeprefix(_PREFIX)
    try:
        secret = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except binascii.Error as error:
        raise NeedsPerson(f"{path}: a secret is {_PREFIX} and base64") from error
    if len(secret) < SECRET_BYTES:
        raise NeedsPerson(f"{path}: a secret has at least {SECRET_BYTES} bytes, in base64 after {_PREFIX}")
    return secret


def _hash(token: str) -> bytes:
    # Of equal length, so that not even the length of a token can be measured. Header bytes that are no UTF-8 arrive as
    # surrogates.
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
