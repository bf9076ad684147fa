"""What must hold of any text: redacting twice changes nothing, no secret survives its surroundings, time is linear."""

from __future__ import annotations

import re
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praxis.redaction import forms, names, private_keys, redact, redact_json

SECRETS = {
    "github": "ghp" + "_" + "a1B2" * 9,
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
}
PIECES = (
    *("password", "token", "secret", "apiKey", "Authorization", "Cookie", "Bearer ", "=", ":", ": ", " ", "\n", "\n  "),
    *('"', "'", '\\"', "{", "}", "[", "]", ",", ";", "&", "?", "://", "@", "user:", "hunter2", "correct horse", "|"),
    *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw", "- ", "--"),
    *("name: DB_PASSWORD", "value: ", "is ", "null", "${X}", "[REDACTED:x]", "%3D", "\x1b[0m", "sig=", "é", "pwd", "`"),
    *("=>", "postgres", "@tcp(", "<", "\\n", "\t", "A" * 64 + "\n", "abcD1" * 13),
)
SURROUNDINGS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
TEXTS = st.lists(st.sampled_from([*PIECES, *SECRETS.values()]), max_size=14).map("".join)
DOCUMENTS = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(TEXTS)
@settings(max_examples=500, deadline=None)
def test_redacting_twice_changes_nothing(text: str) -> None:
    """A digest over redacted text does not depend on how often it was redacted."""
    once = redact(text)
    assert redact(once) == once


@given(DOCUMENTS)
@settings(max_examples=200, deadline=None)
def test_redacting_a_document_twice_changes_nothing(document: Any) -> None:
    """The same for documents."""
    once = redact_json(document)
    assert redact_json(once) == once


@given(st.sampled_from(sorted(SECRETS)), SURROUNDINGS, SURROUNDINGS)
@settings(max_examples=500, deadline=None)
def test_a_token_survives_in_no_surroundings(which: str, before: str, after: str) -> None:
    """Whatever stands around a token, with a break between, it does not come through."""
    assert SECRETS[which] not in redact(f"{before} {SECRETS[which]} {after}")


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_can_be_redacted(text: str) -> None:
    """No input makes it fail."""
    assert isinstance(redact(text), str)


def _patterns() -> dict[str, re.Pattern[str]]:
    found = {f"rule {rule.name} {number}": rule.pattern for number, rule in enumerate(forms.RULES)}
    for module in (names, private_keys):
        held = {name: value for name, value in vars(module).items() if isinstance(value, re.Pattern)}
        found |= {f"{module.__name__}.{name}": value for name, value in held.items()}
    return found


def _unbounded(tree: Any) -> list[str]:
    """The repetitions that can both run without a bound and give back what they took."""
    found = []
    for operation, argument in tree:
        if operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT) and argument[1] == _constants.MAXREPEAT:
            found.append(str(operation))
        for part in _parts(argument):
            found += _unbounded(part)
    return found


def _parts(argument: Any) -> list[Any]:
    if isinstance(argument, _parser.SubPattern):
        return [argument]
    if isinstance(argument, tuple | list):
        return [part for each in argument for part in _parts(each)]
    return []


@pytest.mark.parametrize("pattern", _patterns().values(), ids=_patterns())
def test_every_repetition_is_bounded(pattern: re.Pattern[str]) -> None:
    """A repetition without a bound must be possessive: tried again from each of n places, the other kind costs n²."""
    assert _unbounded(_parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)) == []


def test_the_check_of_repetitions_sees_them() -> None:
    """The check above is not blind."""
    assert _unbounded(_parser.parse(r"(?:a+|b)(?=c*)")) == ["MAX_REPEAT", "MAX_REPEAT"]
    assert _unbounded(_parser.parse(r"a{1,9}b++")) == []


HOSTILE = ["a", "a:", "://a:", "postgres://", "eyJ", "eyJa.", "sk-", "xox-", "--", "password=", "password: ", "token:"]
HOSTILE += [
    '"password":"',
    "password: [",
    "password: |\n  ",
    "name: ",
    "name: password\n",
    "authorization: a",
    "cookie: a",
]
HOSTILE += [
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----\n",
    "AAAA\n",
    "-----BEGIN PRIVATE KEY-----\nAAAA\n",
]
HOSTILE += [
    "A" * 64 + "\n",
    "Aa1+" * 16 + "\n",
    "[REDACTED:a]",
    "@tcp(",
    "x@tcp(",
    "Q~",
    "password=;a",
    "\x1b[",
    "\\",
    '"',
]
ANCHORS = "@tcp( Q~ eyJ ://= PRIVATE KEY hooks.slack.com sk- xox- "


@pytest.mark.timeout(240)
def test_a_mebibyte_of_anything_hostile_ends() -> None:
    """Each repeated up to 128 KiB and all of them in one mebibyte; with work of n² this would take hours."""
    for piece in HOSTILE:
        redact((ANCHORS + piece * (128 * 1024 // len(piece)))[: 128 * 1024])
    redact("".join(piece * (1024 * 1024 // len(HOSTILE) // len(piece)) for piece in HOSTILE))
