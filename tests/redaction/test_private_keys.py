"""Private keys: whole, in one line, with a prefix on each line, and with either end cut off."""

from __future__ import annotations

import pytest

from praxis.redaction import redact

LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
BEGIN = "-----BEGIN {}PRIVATE KEY-----"
END = "-----END {}PRIVATE KEY-----"


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_a_whole_key_is_one_marker(kind: str) -> None:
    """From its first line to its last."""
    key = "\n".join([BEGIN.format(kind), LINE, LINE, "abc=", END.format(kind)])
    assert redact(f"before\n{key}\nafter") == "before\n[REDACTED:private-key]\nafter"


def test_a_pgp_key_is_one_marker() -> None:
    """Its last words are PRIVATE KEY BLOCK."""
    key = f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{LINE}\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----"
    assert redact(f"{key}\nafter") == "[REDACTED:private-key]\nafter"


def test_a_key_in_a_json_string() -> None:
    """Escaped line ends are still line ends."""
    key = "\\n".join([BEGIN.format(""), LINE, END.format("")])
    assert redact(f'{{"a":"{key}\\n","b":1}}') == '{"a":"[REDACTED:private-key]\\n","b":1}'


def test_a_key_whose_lines_carry_a_prefix() -> None:
    """As a log collector writes it."""
    lines = [BEGIN.format(""), LINE, "abc=", END.format("")]
    text = "\n".join(f"2026-01-31T12:00:00Z app {each}" for each in lines)
    assert redact(f"{text}\nafter") == "2026-01-31T12:00:00Z app [REDACTED:private-key]\nafter"


@pytest.mark.parametrize("lines", [1, 2, 3, 30])
def test_a_key_without_its_end(lines: int) -> None:
    """Cut anywhere after its first line, nothing of it stays."""
    text = "\n".join(["before", BEGIN.format(""), *[LINE] * lines])
    assert redact(text[:-20]) == "before\n[REDACTED:private-key]"


def test_the_text_after_a_key_without_its_end_survives() -> None:
    """A key that just stops does not take the log with it."""
    text = "\n".join([BEGIN.format(""), LINE, "the pod was restarted", "again"])
    assert redact(text) == "[REDACTED:private-key]\nthe pod was restarted\nagain"


@pytest.mark.parametrize("lines", [1, 2, 30])
def test_a_key_without_its_beginning(lines: int) -> None:
    """The tail of a log may begin in the middle of a key, and of a line."""
    text = "\n".join([*[LINE] * lines, "abc=", END.format("RSA "), "after"])
    assert redact(text[20:]) == "[REDACTED:private-key]\nafter"


def test_a_key_without_both_ends() -> None:
    """Lines of 64 Base64 characters, two or more, are no prose."""
    assert redact(f"{LINE}\n{LINE}\n") == "[REDACTED:base64-block]\n"
    assert redact(f"before\n{LINE}\n{LINE}\nabc=") == "before\n[REDACTED:base64-block]"


def test_a_list_of_digests_is_no_key() -> None:
    """Lines of 64 hex digits stay."""
    digests = ("0123456789abcdef" * 4 + "\n") * 3
    assert redact(digests) == digests
    assert redact(digests.upper()) == digests.upper()


def test_public_keys_and_certificates_with_their_frame_are_no_private_key() -> None:
    """A certificate's frame stays, so that one sees what it was."""
    text = f"-----BEGIN CERTIFICATE-----\n{LINE}\n-----END CERTIFICATE-----"
    assert redact(text) == text


def test_a_key_without_its_end_before_more_words() -> None:
    """The last line of a key that was cut off is the key's, also when somebody wrote on behind it."""
    text = "\n".join([BEGIN.format(""), LINE, f"{LINE} and so on"])
    assert redact(text) == "[REDACTED:private-key] and so on"


def test_a_key_without_its_beginning_in_a_json_string() -> None:
    """What stands before it on the same line stays."""
    assert redact(f'{{"a": "{LINE}\\n{LINE}\\n{END.format("")}"}}') == '{"a": "[REDACTED:private-key]"}'


def test_a_key_without_both_ends_in_a_json_string() -> None:
    """Escaped line ends are line ends here, too."""
    assert redact(f'{{"a": "{LINE}\\n{LINE}\\nabc="}}') == '{"a": "[REDACTED:base64-block]"}'
