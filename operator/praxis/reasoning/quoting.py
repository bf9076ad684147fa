"""Data blocks: how untrusted text is quoted to a model, so that it cannot leave its place.

A block holds one line of JSON in which `<`, `>` and `&` are written as escapes: nothing inside it can end it, begin
another one, or stand outside JSON, whatever an alert, a log line or a memory says. Every value is redacted before it is
encoded.
"""

from __future__ import annotations

import json
import re
from typing import Any

from praxis.reasoning.cleaning import printable
from praxis.redaction import redact, redact_json

ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
BLOCK = re.compile(r'(?<=<data name=")(?P<name>[a-z]{1,32})">\n(?P<json>[^\n]*)\n(?=</data>)')


def block(name: str, value: Any) -> str:
    """A data block; `name` is ours, never from outside."""
    return f'<data name="{name}">\n{_encoded(value)}\n</data>'


def redacted(content: str) -> str:
    """A whole message, redacted once more: blocks as the JSON that they are, what stands between them as text.

    As one text it would be wrong: a quotation that ends in `password=` would make the redactor take the end of its
    block and the beginning of the next one for the password.
    """
    pieces, position = [], 0
    for found in BLOCK.finditer(content):
        pieces += [redact(content[position : found.start()]), f'{found["name"]}">\n{_again(found["json"])}\n']
        position = found.end()
    return "".join([*pieces, redact(content[position:])])


def _again(text: str) -> str:
    try:
        return _encoded(json.loads(text))
    except (ValueError, RecursionError):
        return redact(text)


def _encoded(value: Any) -> str:
    text = json.dumps(redact_json(_without_controls(value)), ensure_ascii=False, separators=(", ", ": "))
    return text.translate(ESCAPES)


def _without_controls(value: Any) -> Any:
    """Lone surrogates have no UTF-8 form and control characters no meaning: neither leaves."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _without_controls(held) for key, held in value.items()}
    return [_without_controls(each) for each in value] if isinstance(value, list) else value
