"""From what was seen to what is kept: printable, redacted, digested whole, then cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.api import bounds
from praxis.api.incident import Evidence
from praxis.digest import digest
from praxis.evidence.observation import QUERY, Seen, failed, observe, printable

TOKEN = "ghp" + "_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("length", "kept", "truncated"), [(4095, 4095, False), (4096, 4096, False), (4097, 4096, True)]
)
@pytest.mark.parametrize("newest_last", [False, True])
def test_one_line_at_the_bound(length: int, kept: int, truncated: bool, newest_last: bool) -> None:
    """A line that fits stays whole; one that does not is cut hard, as there is no better place."""
    seen = observe("q", Seen("x" * length, newest_last=newest_last))
    assert (len(seen.excerpt), seen.truncated) == (kept, truncated)


@pytest.mark.parametrize(
    ("newest_last", "first", "last"), [(False, "line 000", "line 454"), (True, "line 046", "line 500")]
)
def test_lines_are_cut_whole(newest_last: bool, first: str, last: str) -> None:
    """From the end, or from the beginning where the newest stands last; 455 lines of 9 characters fit."""
    seen = observe("q", Seen("\n".join(f"line {number:03}" for number in range(501)), newest_last=newest_last))
    lines = seen.excerpt.splitlines()
    assert (lines[0], lines[-1], len(lines)) == (first, last, 455)
    assert seen.truncated


def test_lines_that_end_at_the_bound_are_all_kept() -> None:
    """The line end after the last character that fits is not needed."""
    fitting = "x" * 1000 + "\n" + "y" * 3095
    assert observe("q", Seen(f"{fitting}\nmore")).excerpt == fitting
    assert observe("q", Seen(f"more\n{fitting}", newest_last=True)).excerpt == fitting


def test_the_digest_is_of_the_whole_redacted_result() -> None:
    """What was cut away is still bound; what was redacted is not, so that a secret cannot be guessed from it."""
    long = "\n".join(f"line {number:04}" for number in range(1000))
    assert observe("q", Seen(f"{long}\n{TOKEN}")).digest == digest(f"{long}\n[REDACTED:github-token]")
    assert observe("q", Seen(f"{long}\nend")).digest != observe("q", Seen(f"{long}\nEnd")).digest
    assert observe("q", Seen("a\r\nb\n")).digest == digest("a\nb")


@pytest.mark.parametrize("offset", range(-45, 5))
@pytest.mark.parametrize("newest_last", [False, True])
def test_a_token_over_the_cut_leaves_no_half(offset: int, newest_last: bool) -> None:
    """A token at any offset of the bound is gone before the text is cut there."""
    before = "x" * (bounds.EXCERPT + offset) + " "
    text = f"{before}{TOKEN} y" if not newest_last else f"y {TOKEN} {before}"
    assert "a1B2" not in observe("q", Seen(text, newest_last=newest_last)).excerpt


@pytest.mark.parametrize("offset", range(0, 1400, 97))
def test_a_key_over_the_cut_leaves_no_line(offset: int) -> None:
    """A private key of many lines, wherever it lies over the bound."""
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"
    key = f"-----BEGIN PRIVATE KEY-----\n{line * 20}-----END PRIVATE KEY-----\n"
    filler = "a line of a log\n" * ((bounds.EXCERPT - offset) // 16)
    assert "MIIE" not in observe("q", Seen(filler + key)).excerpt
    assert "MIIE" not in observe("q", Seen(key + filler, newest_last=True)).excerpt


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link", "link"),
        ("a\x00b\x07c\x7fd\x9be", "abcde"),
        ("safe\u202eelbisrever", "safeelbisrever"),
        ("to\u200bken", "token"),
        ("one\r\ntwo\rthree\tfour\n", "one\ntwothree\tfour\n"),
        ("\ud800half", "half"),
        ("用户 é 🙂", "用户 é 🙂"),
    ],
)
def test_what_a_terminal_obeys_or_nobody_sees_is_removed(text: str, expected: str) -> None:
    """Line ends, tabs and every script stay."""
    assert printable(text) == expected


def test_escapes_do_not_hide_a_secret() -> None:
    """They are removed before the redactor looks."""
    hidden = TOKEN[:10] + "\x1b[0m" + TOKEN[10:20] + "\u200b" + TOKEN[20:]
    assert observe("q", Seen(f"got {hidden}")).excerpt == "got [REDACTED:github-token]"


def test_a_query_is_redacted_and_bounded() -> None:
    """Also what the model asks may hold what it read somewhere."""
    assert observe(f"x={TOKEN}", Seen("y")).query == "x=[REDACTED:github-token]"
    assert [len(observe("q" * length, Seen("y")).query) for length in (1023, 1024, 1025)] == [1023, 1024, 1024]
    assert "a1B2" not in observe("q" * (QUERY - 10) + " " + TOKEN, Seen("y")).query


def test_a_failure_is_an_observation() -> None:
    """It begins with `error:`, is redacted like everything, and is no truncated truth."""
    seen = failed("q", f"no access with {TOKEN}")
    assert seen.excerpt == "error: no access with [REDACTED:github-token]"
    assert seen.truncated is False


def test_a_partial_result_is_marked() -> None:
    """Even if all of the text fits."""
    assert observe("q", Seen("y", partial=True)).truncated


@given(st.text(max_size=300), st.booleans())
def test_any_text_makes_evidence_that_the_api_server_takes(text: str, newest_last: bool) -> None:
    """Whatever a log holds fits the schema of an Incident's status."""
    seen = observe(text, Seen(text * 30, newest_last=newest_last))
    Evidence(id="e1", tool="t", query=seen.query, excerpt=seen.excerpt, digest=seen.digest, time="2026-01-31T12:00:00Z")
    seen.excerpt.encode()
