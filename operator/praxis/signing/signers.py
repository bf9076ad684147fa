"""Who may sign: OpenSSH's allowed signers, as admins keep them in one ConfigMap."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from praxis.errors import NeedsPerson

ALLOWED, REVOKED = "allowed_signers", "revoked_keys"
"""The keys of its `data`: the file formats of `ssh-keygen -Y verify -f` and `-r` (there: public keys, one a line)."""

PATTERN = frozenset("*?!,")
"""What makes a principal a pattern, and a username one that OpenSSH would match instead of comparing."""

_PRINCIPALS = re.compile(r'[ \t]*(?:"(?P<quoted>[^"]*)"|(?P<bare>[^ \t#"]\S*))[ \t]')


@dataclass(frozen=True)
class AllowedSigners:
    """The list, as it is stored."""

    allowed: str
    revoked: str = ""

    @classmethod
    def of(cls, config_map: Mapping[str, Any]) -> Self:
        """From a ConfigMap; what is absent lists nobody.

        Raises:
            NeedsPerson: it is binary, as a KRL is; left out, the keys that it revokes would count.
        """
        binary = sorted({ALLOWED, REVOKED} & set(config_map.get("binaryData") or {}))
        if binary:
            raise NeedsPerson(f"{' and '.join(binary)} is binary; list public keys as text, one a line, not a KRL")
        data = config_map.get("data") or {}
        return cls(allowed=data.get(ALLOWED, ""), revoked=data.get(REVOKED, ""))

    def lines_for(self, username: str) -> str:
        """The lines that name this user, literally.

        OpenSSH would also match patterns: under `*` one key could sign as anybody. So a pattern names nobody here, also
        not whoever calls themselves like one.
        """
        if PATTERN & set(username):
            return ""
        return "".join(f"{line}\n" for line in self.allowed.split("\n") if username in set(_principals(line)))

    def readable(self) -> None:
        """Raises NeedsPerson: a line that should revoke a key is none, for which OpenSSH lets no signature pass."""
        for number, line in enumerate(self.revoked.split("\n"), 1):
            if line.strip() and not line.lstrip().startswith("#") and not _is_key(line):
                raise NeedsPerson(f"line {number} of {REVOKED} is no public key; an admin mends it")


def _is_key(line: str) -> bool:
    kind, _, rest = line.strip().partition(" ")
    try:
        blob = base64.b64decode(rest.split()[0], validate=True)
    except (ValueError, IndexError):
        return False
    return blob[4 : 4 + int.from_bytes(blob[:4])] == kind.encode()


def _principals(line: str) -> Iterator[str]:
    found = _PRINCIPALS.match(line)
    if found is not None:
        yield from (found["quoted"] if found["quoted"] is not None else found["bare"]).split(",")
