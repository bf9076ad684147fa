"""Private keys in PEM form, which go over several lines, also when one of their ends was cut off."""

from __future__ import annotations

import re
import string
from typing import Final

from praxis.redaction.marker import marker

PEM_CHARACTERS: Final = 16 * 1024
"""Longest private key, characters: an RSA key of 8192 bits has 6,400."""

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = 16
"""A line of at least so many Base64 characters after a key's first line still belongs to the key."""
_LONG_WORD = 40
"""So many Base64 characters in a row are the rest of a key, whatever stands behind them on their line."""
_LONG_WORDS = re.compile(rf"[A-Za-z0-9+/=\\]{{{_LONG_WORD},}}+")
_BASE64 = string.ascii_letters + string.digits + "+/=\\"
_BARE_BLOCK = re.compile(r"(?m)^(?:[A-Za-z0-9+/]{64}\r?\n){2,256}(?:[A-Za-z0-9+/=]{1,64}$)?")
_ESCAPED_BLOCK = re.compile(r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{64}\\{1,4}n){2,256}[A-Za-z0-9+/=]{0,64}")


def without_private_keys(text: str) -> str:
    """The text with a marker for each private key."""
    if "PRIVATE KEY" in text:
        text = _without_tails(_without_heads(text))
    return _ESCAPED_BLOCK.sub(_bare_block, _BARE_BLOCK.sub(_bare_block, text))


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
            rest = [each.end() for each in _LONG_WORDS.finditer(line)]
            return position + rest[-1] if rest else position
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
                start = _start_of_word(text, line_start, start)
                break
            start = line_start
        pieces += [text[position:start], marker("private-key")]
        position = end.end()
    return "".join([*pieces, text[position:]])


def _start_of_word(text: str, line_start: int, end: int) -> int:
    """Where the key's part of a line begins that begins otherwise, such as a JSON string; `end` when there is none."""
    line = text[line_start:end].rstrip()
    word = len(line) - len(line.rstrip(_BASE64))
    return line_start + len(line) - word if word >= _LONG_WORD else end
