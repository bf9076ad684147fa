"""Quoted text cannot steer the terminal of the person who is about to decide."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.cli.terminal import Screen, line, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("p99 is 4 s\n\tof 1 s", "p99 is 4 s\n\tof 1 s", id="line breaks and tabs stay"),
        pytest.param("\x1b[31mred\x1b[0m", "red", id="colours"),
        pytest.param("a\x1b[2K\x1b[1Ab", "ab", id="erase and cursor"),
        pytest.param("\x1b]0;title\x07x", "x", id="window title"),
        pytest.param("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click", id="hyperlink"),
        pytest.param("\x1bP+q544e\x1b\\x", "x", id="device control string"),
        pytest.param("\x9b31mred", "red", id="eight-bit CSI"),
        pytest.param("\x9d0;title\x9cx", "x", id="eight-bit OSC"),
        pytest.param("\x1bcx", "x", id="reset"),
        pytest.param("\x1b(0x", "x", id="character set"),
        pytest.param("safe\roverwritten", "safeoverwritten", id="carriage return"),
        pytest.param("a\r\nb", "a\nb", id="line ends of others"),
        pytest.param("ab\x08\x08cd\x07\x00", "abcd", id="backspace, bell, nul"),
        pytest.param("dele\u202ete\u2066x", "deletex", id="bidirectional marks"),
        pytest.param("a\u200bb\ufeffc\u2028d", "abcd", id="zero width, line separator"),
        pytest.param("\x1b]0;never ends", "0;never ends", id="unterminated"),
        pytest.param("Größe 内存 🚀", "Größe 内存 🚀", id="text of the world"),
    ],
)
def test_only_text_is_left(text: str, shown: str) -> None:
    """Escape sequences, controls and invisible marks are gone; everything readable stays."""
    assert plain(text) == shown


@given(st.text())
def test_no_control_ever_reaches_the_terminal(text: str) -> None:
    """Whatever was quoted, no control, format or separator character is left but line breaks and tabs."""
    left = {unicodedata.category(each) for each in plain(text) if each not in "\n\t"}
    assert not left & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(st.text(alphabet="\x1b[]0;mA\x07\\\x9b", max_size=30))
def test_cleaning_what_is_clean_changes_nothing(text: str) -> None:
    """Removing one sequence does not leave another."""
    assert plain(plain(text)) == plain(text)


def test_a_name_stays_on_its_line() -> None:
    """A quoted name cannot pretend to be the next line of what is shown."""
    assert line("checkout\n  phase  Resolved\x1b[1A") == "checkout phase Resolved"


def test_markup_is_text() -> None:
    """What looks like markup, a link or an emoji code is printed as it is written."""
    out = io.StringIO()
    Screen(out).quote("[bold red]x[/] :boom: [link=https://evil.example]y[/link]")
    assert out.getvalue() == "      │ [bold red]x[/] :boom: [link=https://evil.example]y[/link]\n"


def test_every_quoted_line_is_marked_and_the_rest_is_counted() -> None:
    """A quotation cannot pass for the command's own words, nor flood the screen."""
    out = io.StringIO()
    Screen(out).quote("one\ntwo\nthree", limit=2)
    assert out.getvalue().splitlines() == [
        "      │ one",
        "      │ two",
        "      │ … 1 more lines; praxis show -o wide shows them",
    ]


def test_an_empty_field_is_not_shown() -> None:
    """A field without a value takes no line."""
    out = io.StringIO()
    Screen(out).field("target", "")
    Screen(out).field("target", "checkout-fn")
    assert out.getvalue() == "  target       checkout-fn\n"
