"""From what a tool saw to an Observation: made printable, redacted, digested whole, and only then cut."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from praxis.api import bounds
from praxis.digest import digest
from praxis.evidence.contract import Observation
from praxis.redaction import redact

QUERY: Final = 1024
"""Longest query that is kept, characters: what `Evidence.query` holds."""

# Terminals obey escape sequences, and people read what bidirectional and invisible characters make of a line; also a
# token with an escape sequence in it would pass the redactor.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\^_])")
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


@dataclass(frozen=True)
class Seen:
    """What a tool saw, as lines. `newest_last`: what has to go goes from the beginning, as in a log."""

    lines: str
    partial: bool = False
    newest_last: bool = False


def observe(query: str, seen: Seen) -> Observation:
    """The observation of what was seen; its digest is of the whole redacted text, its excerpt of at most EXCERPT."""
    whole = redact(printable(seen.lines)).strip("\n")
    excerpt = _last_lines(whole) if seen.newest_last else _first_lines(whole)
    return Observation(
        query=redact(printable(query))[:QUERY],
        excerpt=excerpt,
        truncated=seen.partial or len(excerpt) < len(whole),
        digest=digest(whole),
    )


def failed(query: str, message: str) -> Observation:
    """The observation that nothing could be observed; the model reads why."""
    return observe(query, Seen(f"error: {message}"))


def printable(text: str) -> str:
    """The text without what a terminal obeys or a reader cannot see; line ends and tabs stay."""
    return _UNPRINTABLE.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))


def one_line(text: object) -> str:
    """Any value as one line."""
    return " ".join(str(text).split())


def _first_lines(text: str) -> str:
    if len(text) <= bounds.EXCERPT:
        return text
    end = text.rfind("\n", 0, bounds.EXCERPT + 1)
    return text[:end] if end > 0 else text[: bounds.EXCERPT]


def _last_lines(text: str) -> str:
    if len(text) <= bounds.EXCERPT:
        return text
    start = text.find("\n", len(text) - bounds.EXCERPT - 1) + 1
    return text[start:] if start else text[-bounds.EXCERPT :]
