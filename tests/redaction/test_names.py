"""Values that the name before them gives away, in the shapes that logs and manifests have."""

from __future__ import annotations

import pytest

from praxis.redaction import redact


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # logfmt, environment, connection strings
        ("password=hunter2 user=bob", "password=[REDACTED:password] user=bob"),
        ('level=info password="two words" x=1', 'level=info password="[REDACTED:password]" x=1'),
        ("DB_PASSWORD=hunter2\nX=1", "DB_PASSWORD=[REDACTED:password]\nX=1"),
        ("export API_KEY='a b c'", "export API_KEY='[REDACTED:api-key]'"),
        ("Server=db;Password=s3cr;t!;Database=x", "Server=db;Password=[REDACTED:password];Database=x"),
        ("AccountKey=abcd+/==;EndpointSuffix=core", "AccountKey=[REDACTED:accountkey];EndpointSuffix=core"),
        ("aws_secret_access_key = wJalr/K7", "aws_secret_access_key = [REDACTED:secret-access-key]"),
        ("AccessKeySecret: aB1cD2", "AccessKeySecret: [REDACTED:accesskeysecret]"),
        ("user=bob&password=hunter2&x=1", "user=bob&password=[REDACTED:password]&x=1"),
        ("password%3Dhunter2", "password%3D[REDACTED:password]"),
        ("token := abc", "token := [REDACTED:token]"),
        ("'password' => 'hunter2'", "'password' => '[REDACTED:password]'"),
        ("\x1b[36mpassword\x1b[0m=hunter2", "\x1b[36mpassword\x1b[0m=[REDACTED:password]"),
        # JSON, also inside JSON, and dumps of Go and Python
        ('{"m": "apiKey:\\n  \\"abc\\""}', '{"m": "apiKey:\\n  \\"[REDACTED:apikey]\\""}'),
        ('{"m": "key: |\\n  a"}', '{"m": "key: |\\n  a"}'),
        (
            '{"m": "secretKey: |\\n  aB1\\n  cD2\\nhost: db"}',
            '{"m": "secretKey: |\\n  [REDACTED:secretkey]\\nhost: db"}',
        ),
        (
            '{"m": "- name: API_TOKEN\\n  value: aB1\\n"}',
            '{"m": "- name: API_TOKEN\\n  value: [REDACTED:value]"}',
        ),
        ('{"password":"hunter2","user":"bob"}', '{"password":"[REDACTED:password]","user":"bob"}'),
        ('{"dbPassword" : "a\\"b", "n": 1}', '{"dbPassword" : "[REDACTED:password]", "n": 1}'),
        ('{"apiKey":\n    "abc"}', '{"apiKey":\n    "[REDACTED:apikey]"}'),
        (r"{\"password\":\"hunter2\",\"n\":1}", r"{\"password\":\"[REDACTED:password]\",\"n\":1}"),
        (r"{\\\"token\\\":\\\"x\\\"}", r"{\\\"token\\\":\\\"[REDACTED:token]\\\"}"),
        ('{"pin": 1, "password": 123456}', '{"pin": 1, "password": [REDACTED:password]}'),
        ('{"passwords-old": 1, "password": ["a", "b"]}', '{"passwords-old": 1, "password": [[REDACTED:password]]}'),
        ("{'secret': 'x'}", "{'secret': '[REDACTED:secret]'}"),
        ("{Password:hunter2 User:x}", "{Password:[REDACTED:password] User:x}"),
        # YAML
        ("password: hunter2", "password: [REDACTED:password]"),
        ("  db_password: correct horse battery\nnext: 1", "  db_password: [REDACTED:password]\nnext: 1"),
        ("password: |\n  one\n  two\nnext: ok", "password: |\n  [REDACTED:password]\nnext: ok"),
        (
            "- name: DB_PASSWORD\n  value: hunter2\n- name: A",
            "- name: DB_PASSWORD\n  value: [REDACTED:value]\n- name: A",
        ),
        ('{"name":"DB_PASSWORD","value":"hunter2"}', '{"name":"DB_PASSWORD","value":"[REDACTED:value]"}'),
        ("client-key-data: LS0tLS1CRUdJTg==", "client-key-data: [REDACTED:client-key-data]"),
        # headers
        ("Authorization: Bearer abc.def-123", "Authorization: [REDACTED:authorization]"),
        ('-H "Authorization: Basic dXNlcjpwYXNz" -X GET', '-H "Authorization: [REDACTED:authorization]" -X GET'),
        ('{"Authorization":["Bearer abc123"]}', '{"Authorization":["[REDACTED:authorization]"]}'),
        ("authorization: ACS3-HMAC-SHA256 Credential=x", "authorization: [REDACTED:authorization]"),
        ("Cookie: session=abc123; theme=dark\nHost: x", "Cookie: [REDACTED:cookie]\nHost: x"),
        ("Set-Cookie: sid=abc123; HttpOnly", "Set-Cookie: [REDACTED:set-cookie]"),
        ("X-Api-Key: abc", "X-Api-Key: [REDACTED:api-key]"),
        ("got header Bearer abcdef123456", "got header Bearer [REDACTED:token]"),
        # flags and prose
        ("psql --password hunter2 --user x", "psql --password [REDACTED:password] --user x"),
        ("login --token=abc --x", "login --token=[REDACTED:token] --x"),
        ("the password is hunter2", "the password is [REDACTED:password]"),
        ("invalid token: a1B2c3D4", "invalid token: [REDACTED:token]"),
        # a secret of another kind beside one that is known already
        ('password="x [REDACTED:jwt] y"', 'password="[REDACTED:password]"'),
        ("token=[REDACTED:jwt]rest1", "token=[REDACTED:token]"),
        ("Cookie: a=[REDACTED:jwt]; b=s3cr3tvalue", "Cookie: [REDACTED:cookie]"),
    ],
)
def test_a_named_value_is_replaced(text: str, expected: str) -> None:
    """The name and the shape stay, so that one sees what was configured, not how."""
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "invalid token: unexpected end of JSON input",
        "the token: expired",
        'MountVolume.SetUp failed for volume "x" : secret "db-credentials" not found',
        'Error: password authentication failed for user "app"',
        "passwords do not match",
        "the password is required",
        "max_tokens=1024 prompt_tokens: 12 tokens: 5",
        "secretName: db-credentials",
        "secretKeyRef:\n  name: db\n  key: password",
        "serviceAccountToken:\n  path: token\n  expirationSeconds: 3600",
        "password: ${DB_PASSWORD}",
        "password=$(DB_PASSWORD) token=null secret=*** password: <redacted>",
        'password="" token=',
        "PWD=/app bypass=true",
        "authorization: denied by policy",
        "Basic authentication is off, bearer authentication is on",
        'secrets is forbidden: User "x" cannot list resource "secrets" in API group ""',
        "tokenizer: bpe, keyword: search, monkey=1",
        "a password prompt appeared",
        "--password-file /run/secrets/x",
    ],
)
def test_words_about_secrets_survive(text: str) -> None:
    """Speaking of a secret is not telling it: placeholders, references and prose stay."""
    assert redact(text) == text


def test_a_value_that_was_cut_off_goes_to_the_end_of_its_line() -> None:
    """A quote that never closes, because the text was cut, does not save what it opened."""
    assert redact('{"token": "abc def\nnext line') == '{"token": "[REDACTED:token]\nnext line'


@pytest.mark.parametrize("length", [4095, 4096, 4097, 300_000])
@pytest.mark.parametrize("shape", ['"token":"{}",', "token={} ", "token: {}\n", "Cookie: a={}\n"])
def test_a_long_value_leaves_no_rest(shape: str, length: int) -> None:
    """However long a value of one line is, nothing of it stays."""
    if "Cookie" in shape and length > 60_000:
        length = 60_000
    assert "1z" not in redact(shape.format("1z" * (length // 2 + 1)))
