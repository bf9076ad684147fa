"""Documents: by key, by value, and name and value pairs."""

from __future__ import annotations

import pytest

from praxis.redaction import redact_json, sensitive_key

TOKEN = "ghp" + "_" + "a1B2" * 9


def test_what_a_sensitive_key_holds_is_replaced_whatever_it_is() -> None:
    """Strings, numbers, lists and objects; null and booleans tell nothing."""
    assert redact_json(
        {
            "password": "hunter2",
            "apiKey": 42,
            "token": ["a", {"b": "c"}],
            "credentials": {"user": "bob", "on": True, "none": None},
            "user": "bob",
        }
    ) == {
        "password": "[REDACTED:value]",
        "apiKey": "[REDACTED:value]",
        "token": ["[REDACTED:value]", {"b": "[REDACTED:value]"}],
        "credentials": {"user": "[REDACTED:value]", "on": True, "none": None},
        "user": "bob",
    }


def test_strings_are_redacted_anywhere() -> None:
    """In lists, in objects, and in keys."""
    assert redact_json([f"x {TOKEN}", {f"k {TOKEN}": [1, 2.5, None, "plain"]}]) == [
        "x [REDACTED:github-token]",
        {"k [REDACTED:github-token]": [1, 2.5, None, "plain"]},
    ]


def test_two_secret_keys_stay_two_entries() -> None:
    """Redacting keys loses no entry."""
    document = redact_json({TOKEN: 1, TOKEN.replace("a1", "z9"): 2})
    assert document == {"[REDACTED:github-token]": 1, "[REDACTED:github-token]#2": 2}
    assert redact_json(document) == document


def test_an_environment_variable_is_a_key_and_a_value() -> None:
    """As Kubernetes writes them; a reference to a Secret stays, as it tells only where."""
    assert redact_json(
        [
            {"name": "DB_PASSWORD", "value": "hunter2"},
            {"name": "MODE", "value": "fast"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}},
        ]
    ) == [
        {"name": "DB_PASSWORD", "value": "[REDACTED:value]"},
        {"name": "MODE", "value": "fast"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}},
    ]


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "DB_PASSWORD",
        "dbPassword",
        "db.password",
        "x-api-key",
        "accessKeySecret",
        "client_secret",
        "Authorization",
        "Set-Cookie",
        "token",
        "refresh_token",
        "credential",
        "privateKey",
        ".dockerconfigjson",
    ],
)
def test_keys_that_hold_secrets(key: str) -> None:
    """The last word of a key decides, in any spelling."""
    assert sensitive_key(key)


@pytest.mark.parametrize(
    "key", ["secretName", "max_tokens", "tokenizer", "keys", "key", "user", "passwordPolicy", "secretKeyRef", "bypass"]
)
def test_keys_that_do_not(key: str) -> None:
    """A word about secrets inside a longer one does not."""
    assert not sensitive_key(key)
