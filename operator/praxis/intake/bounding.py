"""What of a sender's text is kept: redacted first, then cut to the bounds of the Incident, always in the same way.

- A label or annotation whose name is longer than `NAME` characters is left out.
- Of more than `bounds.LABELS` labels the group's own are kept first, then `alertname` and `severity`, then the others
  in alphabetical order; of annotations `summary`, `description`, `message` and `runbook_url` go first.
- A value that is too long ends in an ellipsis. An address that is too long is left out: cut, it would lead elsewhere.
- One alert takes at most `ALERT_BYTES` as the API server stores it; labels are counted first, what finds no room is cut
  or left out. So `bounds.ALERTS` of them, however they came together, leave room for a status in etcd's 1.5 MiB.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, cast

from praxis.api import bounds
from praxis.redaction import redact, redact_json

NAME: Final = 128
"""Longest name of a label or annotation, characters."""
URL: Final = 1024
ALERT_BYTES: Final = 8 * 1024
PAIR_BYTES: Final = 8
"""Quotes, colon, comma and spaces around a name and its value."""
SHORTEST: Final = 16
"""A value that would be cut to fewer characters tells nothing and is left out."""
ELLIPSIS: Final = "…"
LABELS_FIRST: Final = ("alertname", "severity")
ANNOTATIONS_FIRST: Final = ("summary", "description", "message", "runbook_url")


def cut(text: str, length: int) -> str:
    """The text, or as many characters with an ellipsis at the end."""
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def line(text: str, length: int) -> str:
    """The text as one redacted line that a terminal can show: no control or formatting characters."""
    visible = "".join(each if each.isprintable() else " " for each in redact(text))
    return cut(" ".join(visible.split()), length)


def address(url: str | None) -> str | None:
    """A redacted address, or None when there is none or it is too long."""
    redacted = redact(url) if url else ""
    return redacted if 0 < len(redacted) <= URL else None


def stored_bytes(text: str) -> int:
    """How many bytes a string takes in etcd: JSON as Go writes it, which escapes three characters more."""
    return len(json.dumps(text, ensure_ascii=False).encode()) + 5 * sum(text.count(each) for each in "<>&")


def pairs(values: Mapping[str, str], *, first: Sequence[str], length: int, room: int) -> tuple[dict[str, str], int]:
    """Labels or annotations, redacted and bounded to `length` characters a value; and the bytes that are left."""
    redacted = cast("dict[str, str]", redact_json(values))
    ranks = {name: rank for rank, name in reversed(list(enumerate(first)))}
    kept: dict[str, str] = {}
    for name in sorted(redacted, key=lambda each: (ranks.get(each, len(first)), each)):
        if len(kept) == bounds.LABELS:
            break
        left = room - stored_bytes(name) - PAIR_BYTES
        value = _fitting(cut(redacted[name], length), left)
        if len(name) > NAME or value is None:
            continue
        kept[name] = value
        room = left - stored_bytes(value)
    return kept, room


def _fitting(value: str, room: int) -> str | None:
    if stored_bytes(value) <= room:
        return value
    length = bisect_right(range(len(value)), room, key=lambda each: stored_bytes(cut(value, each))) - 1
    return cut(value, length) if length >= SHORTEST else None
