"""Who may sign: OpenSSH's allowed signers, as admins keep them in one ConfigMap."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

ALLOWED, REVOKED = "allowed_signers", "revoked_keys"
"""The keys of its `data`: the file formats of `ssh-keygen -Y verify -f` and `-r` (there: public keys, one a line)."""

_PRINCIPALS = re.compile(r'[ \t]*(?:"(?P<quoted>[^"]*)"|(?P<bare>[^ \t#"]\S*))[ \t]')


@dataclass(frozen=True)
class AllowedSigners:
    """The list, as it is stored."""

    allowed: str
    revoked: str = ""

    @classmethod
    def of(cls, data: Mapping[str, str]) -> Self:
        """From a ConfigMap's `data`; what is absent lists nobody."""
        return cls(allowed=data.get(ALLOWED, ""), revoked=data.get(REVOKED, ""))

    def lines_for(self, username: str) -> str:
        """The lines that name this user, literally.

        OpenSSH would also match patterns: under `*` one key could sign as anybody. So a pattern names nobody here.
        """
        return "".join(f"{line}\n" for line in self.allowed.split("\n") if username in set(_principals(line)))


def _principals(line: str) -> Iterator[str]:
    found = _PRINCIPALS.match(line)
    if found is not None:
        yield from (found["quoted"] if found["quoted"] is not None else found["bare"]).split(",")
