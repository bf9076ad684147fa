"""The one redactor: what looks like a secret leaves as `[REDACTED:<what it was>]`, everything else as it came.

It runs before the model, before status, before Events, logs and the recorder, and always before anything is cut to a
length, since half a token is still half a secret. Three passes: tokens that their form gives away (`RULES`), private
keys over several lines, and values that the name before them gives away (`password=…`, `"apiKey": "…"`, headers).

Why not a scanner's rule set: detect-secrets (1.5) and gitleaks say in which *line* of a source file there may be a
secret, so that a person looks; neither replaces in place, follows a key over line ends, nor bounds the work for hostile
text. The forms of the tokens are theirs; each rule names its source.

Every quantifier is bounded, none is nested in another that could share its text, so the time is linear in the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from praxis.digest import Json
from praxis.redaction.forms import without_tokens
from praxis.redaction.marker import REDACTED, marker
from praxis.redaction.names import kept, sensitive_key, without_named
from praxis.redaction.private_keys import without_private_keys

__all__ = ["REDACTED", "fit", "marker", "redact", "redact_json", "sensitive_key"]

PASSES: Final = 4
"""A replacement can bring a key next to another value; in practice the second pass changes nothing."""


def redact(text: str) -> str:
    """The text with its secrets replaced by markers; `redact(redact(x)) == redact(x)`."""
    for _ in range(PASSES):
        redacted = without_named(without_private_keys(without_tokens(text)))
        if redacted == text:
            break
        text = redacted
    return text


def fit(text: str, limit: int) -> str:
    """The text redacted and then cut to `limit` characters: cut first, half a secret would be left."""
    return redact(text)[:limit]


def redact_json(value: Json) -> Json:
    """The document with its secrets replaced: strings as by `redact`, keys too, and whatever a sensitive key holds.

    A name and value pair, as environment variables are written in Kubernetes, counts as a key and what it holds.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        named = sensitive_key(value["name"]) if isinstance(value.get("name"), str) else False  # type: ignore[arg-type]
        document: dict[str, Json] = {}
        for key, held in value.items():
            hide = sensitive_key(key) or (named and key == "value")
            document[_free(redact(key), document)] = _hidden(held) if hide else redact_json(held)
        return document
    if isinstance(value, Sequence):
        return [redact_json(each) for each in value]
    return value


def _hidden(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {redact(key): _hidden(held) for key, held in value.items()}
    if isinstance(value, str):
        return value if kept(value) else marker("value")
    if isinstance(value, Sequence):
        return [_hidden(each) for each in value]
    return value if value is None or isinstance(value, bool) else marker("value")


def _free(key: str, taken: Mapping[str, Json]) -> str:
    # Two keys that were different secrets must not become one entry.
    candidate, number = key, 2
    while candidate in taken:
        candidate, number = f"{key}#{number}", number + 1
    return candidate
