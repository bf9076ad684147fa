"""Private keys in PEM form, which go over several lines, also when one of their ends was cut off."""

from __future__ import annotations

import re
from typing import Final

from praxis.redaction.marker import marker

PEM_CHARACTERS: Final = 16 * 1024
"""Longest private key, characters: an RSA key of 8192 bits has 6,400."""

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = 16
"""A line of at least so many Base64 characters after a key's first line still belongs to the key."""
_BARE_BLOCK = re.compile(r"(?m)^(?:[A-Za-z0-9+/]{64}\r?\n){2,256}(?:[A-Za-z0-9+/=]{1,64}$)?")


def without_private_keys(text: str) -> str:
    """The text with a marker for each private key."""
    if "PRIVATE KEY" in text:
        text = _without_tails(_without_heads(text))
    return _BARE_BLOCK.sub(_bare_block, text)


def _bare_block(found: re.Match[str]) -> str:
    block = found[0]
    if block in (block.lower(), block.upper()):
        return block  # lines of hex digests are no key
    return marker("base64-block") + ("\n" if block.endswith("\n") else "")


def _without_heads(text: str) -> str:
    pieces, position = [], 0
    while begin := _PEM_BEGIN.search(text, position):
        end = _PEM_END.search(text, begin.end(), begin.end() + PEM_CHARACTERS)
        stop = end.end() if end else _end_of_key(text, begin.end())
        pieces += [text[position : begin.start()], marker("private-key")]
        position = stop
    return "".join([*pieces, text[position:]])


def _end_of_key(text: str, position: int) -> int:
    """Where a key ends whose last line is missing: after the last line that is Base64 at its end."""
    limit = min(len(text), position + PEM_CHARACTERS)
    while position < limit:
        line_end = text.find("\n", position + 1, limit)
        line = text[position : limit if line_end < 0 else line_end]
        words = line.split()
        if words and not re.fullmatch(rf"[A-Za-z0-9+/=\\]{{{_KEY_LINE},}}", words[-1]) and ":" not in words[0]:
            break
        position = limit if line_end < 0 else line_end
    return position


def _without_tails(text: str) -> str:
    """Also a key whose first lines are missing, as in the tail of a log."""
    pieces, position = [], 0
    while end := _PEM_END.search(text, position):
        start = end.start()
        while start > position:
            line_start = text.rfind("\n", position, start - 1) + 1 or position
            words = text[line_start:start].split()
            if line_start >= start or not words or not re.fullmatch(r"[A-Za-z0-9+/=\\]{4,}", words[-1]):
                break
            start = line_start
        pieces += [text[position:start], marker("private-key")]
        position = end.end()
    return "".join([*pieces, text[position:]])
