"""Text that a model or a tool wrote, made fit for a field of status: bounded, and without what could deceive a reader.

Control characters can rewrite a terminal's line, and direction overrides can make a command read backwards.
"""

from __future__ import annotations

import re
import unicodedata

KEPT_CONTROLS = frozenset("\n\t")
ELLIPSIS = "…"


def printable(text: str) -> str:
    """Without control and format characters, lone surrogates and private-use characters; newlines and tabs stay."""
    return "".join(each for each in text if each in KEPT_CONTROLS or not unicodedata.category(each).startswith("C"))


def bounded(text: str, limit: int) -> str:
    """Printable text of at most `limit` characters, as the API server counts them; a cut shows as an ellipsis."""
    cleaned = printable(text).strip()
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1].rstrip() + ELLIPSIS


def line(text: str, limit: int) -> str:
    """The same on one line."""
    return bounded(re.sub(r"\s+", " ", printable(text)), limit)
