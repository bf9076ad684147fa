"""Text that a model or a tool wrote, made fit for a field of status: redacted, bounded, without what could deceive.

Control characters can rewrite a terminal's line, and direction overrides can make a command read backwards. They go
first: a token with one in its middle would pass the redactor, and be whole again afterwards.
"""

from __future__ import annotations

import unicodedata

from praxis.redaction import redact

KEPT_CONTROLS = frozenset("\n\t")
ELLIPSIS = "…"


def printable(text: str) -> str:
    """Without control and format characters, lone surrogates and private-use characters; newlines and tabs stay."""
    return "".join(each for each in text if each in KEPT_CONTROLS or not unicodedata.category(each).startswith("C"))


def bounded(text: str, limit: int) -> str:
    """Printable, redacted text of at most `limit` characters, as the API server counts them; a cut shows."""
    return _cut(redact(printable(text)).strip(), limit)


def line(text: str, limit: int) -> str:
    """The same on one line."""
    return _cut(" ".join(redact(printable(text)).split()), limit)


def _cut(cleaned: str, limit: int) -> str:
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1].rstrip() + ELLIPSIS
