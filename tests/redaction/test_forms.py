"""Tokens that their form gives away. Written in pieces, so that no scanner takes this file for a leak."""

from __future__ import annotations

import pytest

from praxis.redaction import redact
from praxis.redaction.forms import RULES

MIXED = "a1B2c3D4e5F6g7H8i9J0"
HEX = "0123456789abcdef"

TOKENS = {
    "aws": ("AKIA" + "IOSFODNN7EXAMPLE", "aws-access-key"),
    "aws-temporary": ("ASIA" + "IOSFODNN7EXAMPLE", "aws-access-key"),
    "alibaba": ("LTAI" + "5tQm3w9x8y7z6a5b4c3d", "alibaba-access-key"),
    "alibaba-old": ("LTAI" + "q3w9x8y7z6a5", "alibaba-access-key"),
    "alibaba-sts": ("STS." + MIXED, "alibaba-sts-token"),
    "github-classic": ("ghp" + "_" + MIXED + "k1L2m3N4o5P6q7R8", "github-token"),
    "github-app": ("ghs" + "_" + MIXED * 2, "github-token"),
    "github-fine-grained": ("github" + "_pat_" + MIXED + "_" + MIXED, "github-token"),
    "gitlab": ("glpat" + "-" + MIXED, "gitlab-token"),
    "slack-bot": ("xoxb" + "-123456789012-1234567890123-" + MIXED, "slack-token"),
    "slack-app": ("xapp" + "-1-A0123-456-" + HEX, "slack-token"),
    "stripe": ("sk" + "_live_" + MIXED, "stripe-key"),
    "stripe-restricted": ("rk" + "_test_" + MIXED, "stripe-key"),
    "webhook": ("whsec" + "_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "webhook-secret"),
    "openai": ("sk" + "-proj-" + MIXED + "_" + MIXED, "model-api-key"),
    "openai-old": ("sk" + "-" + MIXED * 2, "model-api-key"),
    "openrouter": ("sk" + "-or-v1-" + HEX * 4, "model-api-key"),
    "anthropic": ("sk" + "-ant-api03-" + MIXED, "model-api-key"),
    "dashscope": ("sk" + "-" + HEX * 2, "model-api-key"),
    "google": ("AIza" + "SyA1234567890abcdefghijklmnopqrstuv", "google-api-key"),
    "google-oauth": ("ya29" + ".a0AfH6SMBx-" + MIXED, "google-oauth"),
    "npm": ("npm" + "_" + "a1B2" * 9, "npm-token"),
    "pypi": ("pypi" + "-AgEIcHlwaS5vcmc" + MIXED * 3, "pypi-token"),
    "rubygems": ("rubygems" + "_" + HEX * 3, "rubygems-key"),
    "docker": ("dckr" + "_pat_" + MIXED + "abcdefg", "docker-token"),
    "azure": ("abc" + "8Q~" + MIXED + "abcdefghijklmn", "azure-client-secret"),
    "digitalocean": ("dop" + "_v1_" + HEX * 4, "digitalocean-token"),
    "sendgrid": ("SG" + "." + MIXED + "ab." + MIXED * 2 + "abc", "sendgrid-token"),
    "huggingface": ("hf" + "_" + "abcdEFGHij" * 3 + "abcd", "huggingface-token"),
    "vault": ("hvs" + "." + MIXED, "vault-token"),
    "grafana": ("glsa" + "_" + "a1B2" * 8 + "_0123abcd", "grafana-token"),
    "shopify": ("shpat" + "_" + HEX * 2, "shopify-token"),
    "telegram": ("123456789" + ":AA" + "a1B2" * 8 + "c", "telegram-token"),
    "databricks": ("dapi" + HEX * 2, "databricks-token"),
    "atlassian": ("ATATT3" + MIXED * 4, "atlassian-token"),
    "age": ("AGE-SECRET-KEY-" + "1" + "QWERTY0" * 8, "age-key"),
    "jwt": ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "jwt"),
    "jwt-without-its-end": ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0", "jwt"),
    "jwt-header-alone": ("eyJ" + "hbGciOiJIUzI1NiJ9", "jwt"),
    "registry": ("eyJ" + "hdXRocyI6eyJyZWdpc3RyeSI6eyJhdXRoIjoiZFhObGNqcHdZWE56In19fQ==", "registry-auth"),
}


@pytest.mark.parametrize(("token", "name"), TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize(
    "around", ["{}", "got {} from env", '"{}"', "[{}]", "\n{}\n", "x={}&y=1", "({}).", "\\n{}\\t", "用户{}"]
)
def test_a_token_is_replaced_wherever_it_stands(token: str, name: str, around: str) -> None:
    """The marker says what was there; what stood around it stays."""
    assert redact(around.format(token)) == around.format(f"[REDACTED:{name}]")


def test_every_rule_is_exercised() -> None:
    """No rule of the table is without a test of it, here or below."""
    tested = {name for _, name in TOKENS.values()}
    elsewhere = {"aws-key-pair", "alibaba-key-pair", "slack-webhook", "password", "userinfo", "query-secret"}
    assert {rule.name for rule in RULES} == tested | elsewhere


def test_every_rule_names_its_source_and_an_anchor_of_each_match() -> None:
    """A rule without a source cannot be checked; a match without an anchor would never be found."""
    assert all(rule.source and rule.anchors for rule in RULES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "AKIA" + "IOSFODNN7EXAMPLE,wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
            "[REDACTED:aws-key-pair]\n",
        ),
        ("LTAI" + "5tQm3w9x8y7z6a5b4c3d " + "Ab1" * 10, "[REDACTED:alibaba-key-pair]"),
        (
            "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
            "https://hooks.slack.com/services/[REDACTED:slack-webhook]",
        ),
        ("https://bob:hunter2@example.com/a?b=c", "https://bob:[REDACTED:password]@example.com/a?b=c"),
        ("https://bob:p@ss:word@example.com/a", "https://bob:[REDACTED:password]@example.com/a"),
        ("redis://:hunter2@redis:6379/0", "redis://:[REDACTED:password]@redis:6379/0"),
        ("postgres://app:p@ss/w0rd@db:5432/shop?x=1", "postgres://app:[REDACTED:password]@db:5432/shop?x=1"),
        ("mysql+pymysql://app:pa/ss@db/shop", "mysql+pymysql://app:[REDACTED:password]@db/shop"),
        ("amqp://guest:guest@mq:5672/", "amqp://guest:[REDACTED:password]@mq:5672/"),
        ("mongodb+srv://u:p%40ss@c0.example.net", "mongodb+srv://u:[REDACTED:password]@c0.example.net"),
        ("https://0a1b2c3d4e5f6a7b8c9d@sentry.example/1", "https://[REDACTED:userinfo]@sentry.example/1"),
        ("app:pa:ss@tcp(10.0.0.1:3306)/shop", "app:[REDACTED:password]@tcp(10.0.0.1:3306)/shop"),
        (
            "GET /b?X-Amz-Expires=60&X-Amz-Signature=abcdef0123456789&z=2",
            "GET /b?X-Amz-Expires=60&X-Amz-Signature=[REDACTED:query-secret]&z=2",
        ),
        ("?sv=2022&sig=abc%2Bdef123%3D&se=2027", "?sv=2022&sig=[REDACTED:query-secret]&se=2027"),
        ("?OSSAccessKeyId=x1y2z3w4v5&Signature=aB3%2F", "?OSSAccessKeyId=[REDACTED:query-secret]&Signature=aB3%2F"),
        ("https://maps/api?key=0a1b2c3d4e#top", "https://maps/api?key=[REDACTED:query-secret]#top"),
        ("next=%3Fkey%3D0a1b2c3d4e%26x", "next=%3Fkey%3D[REDACTED:query-secret]%26x"),
        ("/login?token=abc&user=bob", "/login?token=[REDACTED:token]&user=bob"),
        ("/cb?access_token=abc#x", "/cb?access_token=[REDACTED:token]"),
        ("/cb?state=1\\u0026sig=0a1b2c3d4e\\u0026x", "/cb?state=1\\u0026sig=[REDACTED:query-secret]\\u0026x"),
    ],
)
def test_urls_and_connection_strings_lose_their_secrets_only(text: str, expected: str) -> None:
    """User, host and the other parameters stay readable."""
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "sha256:" + HEX * 4,
        "registry.example/shop/checkout@sha256:" + "ab" * 32,
        "hmac-sha256:" + HEX * 2,
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "checkout-7d4b9c8f6d-abcde",
        "c-66a1b2c3-1234567890abcdef0123",
        "i-0abcd1234efgh5678",
        "intent-00000001",
        "task-0123456789abcdef0123456789abcdef",
        "sk-frontend-7d4b9c8f6d-abcde",
        "disk-0123456789abcdef0123",
        "https://example.com:8080/a@b",
        "ssh://git@github.com/kopf/kopf.git",
        "git@github.com:kopf/kopf.git",
        "https://example.com/?code=500&key=abc&page=2",
        "10.0.0.1:9090",
        "postgres://db:5432/shop",
        'node_memory_MemAvailable_bytes{instance="10.0.0.1:9100",job="node"} 1.2e+09',
        "STS.Forbidden",
        "arn:aws:iam::123456789012:role/checkout",
        "acs:ram::1234567890:role/fc",
        "2026-01-31T12:00:00.000Z INFO [main] o.a.c.c.C.[Tomcat] Started in 3.2 s",
        "v1.27.3+k3s1",
        "[REDACTED:jwt] and [REDACTED:value]",
    ],
)
def test_ordinary_text_survives(text: str) -> None:
    """Identifiers, digests, names and addresses are what evidence is made of."""
    assert redact(text) == text


@pytest.mark.parametrize("length", [19, 20, 255])
def test_a_token_at_the_bounds_of_its_form(length: int) -> None:
    """A form has a shortest token; what is shorter is a word."""
    token = "ghp" + "_" + ("aB1" * 85)[:length]
    assert redact(token) == (token if length == 19 else "[REDACTED:github-token]")


def test_a_long_token_leaves_no_rest() -> None:
    """A JWT of 100,000 characters in one part of 60,000 and one of 40,000 goes as a whole."""
    token = "eyJ" + "a" * 60_000 + "." + "b" * 40_000
    assert redact(f"x {token} y") == "x [REDACTED:jwt] y"
