"""Planted secrets: every kind of the redactor's promise, in every writing, of a text that no other place shares.

Each is made from its place's name, so that a find says who leaked what. Nothing here is the form of a real credential
in one piece, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
NEEDLE = 10
"""Characters of a secret that are searched for: so much of its beginning or its end is a leak, too."""
PLAIN_TEXT = "the checkout service answers slowly since the last rollout of its cache "


@dataclass(frozen=True)
class Planted:
    """A text that holds a secret, and the fragments of the secret that must be found nowhere."""

    place: str
    kind: str
    text: str
    needles: tuple[str, ...]

    def after(self, characters: int) -> str:
        """The text behind so many characters of prose, to stand where something is cut."""
        filler = PLAIN_TEXT * (characters // len(PLAIN_TEXT) + 1)
        return f"{filler[:characters]} {self.text}"

    def across(self, limit: int) -> str:
        """The text so that its secret stands across a limit, half before and half behind it."""
        middle = self.text.index(self.needles[0]) + len(self.needles[0])
        return self.after(max(0, limit - middle - 1))


Random = random.Random


def _of(alphabet: str, length: int) -> Callable[[Random], str]:
    return lambda chance: "".join(chance.choices(alphabet, k=length))


def _value(chance: Random) -> str:
    """A value of high entropy with all kinds of characters in its first ten, so that none takes it for a word."""
    return "".join(chance.choice(each) for each in (string.ascii_lowercase, string.digits, string.ascii_uppercase) * 8)


TOKENS: Mapping[str, tuple[str, Callable[[Random], str]]] = {
    "aws-access-key": ("AKIA", _of(UPPER, 16)),
    "aws-temporary-key": ("ASIA", _of(UPPER, 16)),
    "alibaba-access-key": ("LTAI", _of(ALNUM, 20)),
    "alibaba-sts-token": ("STS" + ".", _of(ALNUM, 30)),
    "github-token": ("ghp" + "_", _of(ALNUM, 36)),
    "github-app-token": ("ghs" + "_", _of(ALNUM, 36)),
    "github-fine-grained": ("github" + "_pat_", _of(ALNUM, 60)),
    "gitlab-token": ("glpat" + "-", _of(ALNUM, 20)),
    "slack-token": ("xoxb" + "-1234567890-", _of(ALNUM, 24)),
    "stripe-key": ("sk" + "_live_", _of(ALNUM, 24)),
    "dashscope-key": ("sk" + "-", _of(HEX, 32)),
    "openai-key": ("sk" + "-proj-", _of(ALNUM, 40)),
    "anthropic-key": ("sk" + "-ant-api03-", _of(ALNUM, 40)),
    "google-key": ("AIza", _of(ALNUM, 35)),
    "npm-token": ("npm" + "_", _of(ALNUM, 36)),
    "pypi-token": ("pypi" + "-AgEIcHlwaS5vcmc", _of(ALNUM, 60)),
    "docker-token": ("dckr" + "_pat_", _of(ALNUM, 27)),
    "sendgrid-token": ("SG" + "." + "a1B2c3D4e5F6g7H8i9J0ab" + ".", _of(ALNUM, 43)),
    "huggingface-token": ("hf" + "_", _of(ALNUM, 34)),
    "vault-token": ("hvs" + ".", _of(ALNUM, 24)),
    "jwt": ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIx", _of(ALNUM, 60)),
    "webhook-secret": ("whsec" + "_", _of(ALNUM, 32)),
}
AROUND_A_TOKEN = (
    "login with {} failed",
    '{{"level":"error","used":"{}","code":500}}',
    "level=error used={} code=500",
    'upstream said "{{\\"used\\":\\"{}\\"}}"',
    "first line\n{}\nlast line",
    "see https://status.example/{}/details",
)
AROUND_A_VALUE = (
    '{{"apiKey": "{}", "n": 1}}',
    '{{"db": {{"password":"{}"}}, "level": "error"}}',
    'body was {{\\"clientSecret\\": \\"{}\\"}}',
    "level=error password={} user=app",
    'level=warn access_token="{}" status=401',
    "the password is {} as before",
    "login failed, token: {}",
    "started with --api-key {} --verbose",
    "export DB_PASSWORD={}",
    "db:\n  password: {}\n  host: db",
    '"password":\n    "{}"',
    "secretKey: |\n  {}\nhost: db",
    '{{"name": "DB_PASSWORD", "value": "{}"}}',
    "- name: API_TOKEN\n  value: {}",
    "config {{'secret_key': '{}', 'debug': True}}",
    "X-Api-Key: {}",
    "Authorization: Bearer {}",
    '{{"Authorization": "Bearer {}"}}',
    "headers=map[Authorization:[Basic {}]]",
    "proxy-authorization: Basic {}",
    "curl -H 'Authorization: token {}' https://api.example",
    "Cookie: session={}; theme=dark",
    "Set-Cookie: sid={}; HttpOnly",
    "postgres://app:{}@db:5432/shop?sslmode=off",
    "mongodb+srv://app:{}@cluster0.example.net/shop",
    "redis://:{}@cache:6379/0",
    "amqp://app:{}@queue:5672/",
    "app:{}@tcp(db:3306)/shop",
    "Server=db;User Id=app;Password={};Encrypt=true",
    "jdbc:mysql://db/shop?user=app&password={}",
    "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={};EndpointSuffix=x",
    "GET https://app:{}@api.example/v1/orders: 500",
    "GET https://api.example/v1?access_token={}&page=2: 500",
    "GET https://api.example/v1?key={}#top: 500",
    "https://bucket.example/o?Expires=60&Signature={}&x=1",
    'Post "https://api.example/hook?sig={}": context deadline exceeded',
    "https://{}@sentry.example/42",
)
AROUND_A_KEY: Mapping[str, Callable[[list[str]], str]] = {
    "alone": "\n".join,
    "in JSON": lambda lines: '{"tls": "' + "\\n".join(lines) + '"}',
    "indented": lambda lines: "\n".join(f"    {each}" for each in lines),
    "without its end": lambda lines: "\n".join(lines[:4]),
    "without its beginning": lambda lines: "\n".join(lines[2:]),
}


def corpus(place: str) -> tuple[Planted, ...]:
    """Every kind in every writing, for one place."""
    return tuple(_planted(place))


def some(place: str, count: int) -> tuple[Planted, ...]:
    """So many of them, spread over kinds and writings, differently for each place."""
    everything = list(corpus(place))
    Random(place).shuffle(everything)
    return tuple(everything[:count])


def _planted(place: str) -> Iterator[Planted]:
    chance = Random(f"planted in {place}")
    for kind, (prefix, random_part) in TOKENS.items():
        for around in AROUND_A_TOKEN:
            core = random_part(chance)
            yield Planted(place, kind, around.format(prefix + core), _ends(core))
    for around in AROUND_A_VALUE:
        core = _value(chance)
        yield Planted(place, around.split("{")[0].strip() or around[:24], around.format(core), _ends(core))
    yield from _private_keys(place, chance)


def _private_keys(place: str, chance: Random) -> Iterator[Planted]:
    for kind in ("PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"):
        for around, written in AROUND_A_KEY.items():
            lines = [base64.b64encode(chance.randbytes(48), altchars=b"ab").decode() for _ in range(4)]
            text = written([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"])
            yield Planted(place, f"{kind} {around}", text, tuple(each[:16] for each in lines if each in text))


def _ends(core: str) -> tuple[str, ...]:
    return (core[:NEEDLE], core[-NEEDLE:])


def found(needles: Sequence[Planted], haystack: bytes) -> list[Planted]:
    """The planted secrets of which a fragment is in these bytes, as they are or in Base64."""
    return [each for each in needles if any(needle.encode() in haystack for needle in each.needles)]
