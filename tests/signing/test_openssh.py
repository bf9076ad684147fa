"""Signing and verifying with the real ssh-keygen and ssh-agent."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from praxis.approval.signature import Unverified, Verified
from praxis.errors import NeedsPerson, RetryLater
from praxis.signing.openssh import sign, verify
from praxis.signing.signers import AllowedSigners
from tests.signing.conftest import Keygen, public

AT = datetime(2026, 2, 1, 12, 0, tzinfo=UTC)
CONTENT = b'{"decision":"Approve"}'
NOT_LISTED = "its key is not one that is listed for alice, or it is revoked"
CHANGED = "it is a signature of something else: the decision was changed after it was signed"
NOBODY = "no key is listed for alice in ConfigMap praxis-allowed-signers; an admin adds it there"


def found(armour: str, allowed: str, *, revoked: str = "", content: bytes = CONTENT, username: str = "alice") -> object:
    """What is found on a signature of the content."""
    signers = AllowedSigners(allowed=allowed, revoked=revoked)
    return verify(content, armour, username=username, signers=signers, at=AT)


@pytest.mark.parametrize(
    "options",
    [("-t", "ed25519"), ("-t", "ecdsa", "-b", "256"), ("-t", "ecdsa", "-b", "521"), ("-t", "rsa", "-b", "3072")],
    ids=["ed25519", "ecdsa-256", "ecdsa-521", "rsa"],
)
def test_every_kind_of_key(keygen: Keygen, options: tuple[str, ...]) -> None:
    """What alice signs with her listed key verifies, and says which key it was."""
    key = keygen("alice", *options)
    fingerprint = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(key)], check=True, capture_output=True, text=True
    ).stdout.split()[1]
    assert found(sign(CONTENT, key), f"alice {public(key)}\n") == Verified(fingerprint)


def test_a_key_in_an_agent(keygen: Keygen, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the public half alone the agent signs: the private one need not be on this machine."""
    key = keygen("alice")
    agent = subprocess.run(["ssh-agent", "-s"], check=True, capture_output=True, text=True).stdout
    variables = dict(re.findall(r"(SSH_AUTH_SOCK|SSH_AGENT_PID)=([^;]+);", agent))
    try:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)
        key.unlink()
        armour = sign(CONTENT, key.with_suffix(".pub"))
    finally:
        os.kill(int(variables["SSH_AGENT_PID"]), 15)
    assert isinstance(found(armour, f"alice {public(key)}\n"), Verified)


def test_a_certificate(keygen: Keygen) -> None:
    """A line with `cert-authority` accepts keys that this authority certified for the principal, and no others."""
    authority, key = keygen("authority"), keygen("alice")
    certify = ("ssh-keygen", "-q", "-s", str(authority), "-I", "alice's", "-V", "20260101:20270101")
    subprocess.run([*certify, "-n", "alice", str(key.with_suffix(".pub"))], check=True, capture_output=True)
    armour = sign(CONTENT, key.with_name("alice-cert.pub"))
    lines = "".join(f"{name} cert-authority {public(authority)}\n" for name in ("alice", "bob"))
    assert isinstance(found(armour, lines), Verified)
    assert isinstance(found(armour, lines, username="bob"), Unverified)


@pytest.mark.parametrize(
    "line",
    [
        "alice {key}",
        "bob,alice {key}",
        '"alice" {key}',
        'alice namespaces="praxis-approval,git" {key}',
        'alice valid-after="20260201115959Z",valid-before="20260201120001Z" {key}',
        "\t alice {key} a comment",
        "# alice's\n\nalice {key}",
        "alice ssh-ed25519 AAAAnonsense\nalice {key}",
    ],
)
def test_lines_that_list_her(keygen: Keygen, line: str) -> None:
    """Whatever OpenSSH takes, as long as her name stands there."""
    key = keygen("alice")
    assert isinstance(found(sign(CONTENT, key), line.format(key=public(key))), Verified)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", NOBODY),
        ("bob {key}", NOBODY),
        ("* {key}", NOBODY),
        ("ali?e {key}", NOBODY),
        ("*,!bob {key}", NOBODY),
        ("Alice {key}", NOBODY),
        ("# alice {key}", NOBODY),
        ("alice", NOBODY),
        ("alice,!alice {key}", NOT_LISTED),
        ("alice {other}", NOT_LISTED),
        ("bob {key}\nalice {other}", NOT_LISTED),
        ('alice namespaces="git" {key}', "its key is not allowed for namespace praxis-approval"),
        ('alice valid-before="20260201115959Z" {key}', "its key was not valid any more when the decision was created"),
        ('alice valid-before="20260201115959" {key}', "its key was not valid any more when the decision was created"),
        ('alice valid-after="20260201120001Z" {key}', "its key was not valid yet when the decision was created"),
    ],
)
def test_lines_that_do_not(keygen: Keygen, line: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern names nobody, a name is spelled as it is, and times without a zone are UTC wherever this runs."""
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    key, other = keygen("alice"), keygen("other")
    assert found(sign(CONTENT, key), line.format(key=public(key), other=public(other))) == Unverified(why)


def test_revoked(keygen: Keygen) -> None:
    """A revoked key counts no more, however long it stays listed; another's revocation changes nothing."""
    key, other = keygen("alice"), keygen("other")
    armour, allowed = sign(CONTENT, key), f"alice {public(key)}\n"
    assert found(armour, allowed, revoked=f"{public(key)}\n") == Unverified(NOT_LISTED)
    assert isinstance(found(armour, allowed, revoked=f"{public(other)}\n"), Verified)
    assert isinstance(found(armour, allowed, revoked="\n"), Verified)
    assert isinstance(found(armour, allowed, revoked=f"# left\n\n {public(other)} bob's\n"), Verified)


@pytest.mark.parametrize(
    "line", ["no key at all", "ssh-ed25519", "ssh-ed25519 AAAAnonsense", "ssh-rsa {key}", "SSHKRL"]
)
def test_a_list_of_revoked_keys_that_cannot_be_read(keygen: Keygen, line: str) -> None:
    """Nothing is known of any signature: OpenSSH would let none pass, a valid no neither."""
    key = keygen("alice")
    broken = f"# left\n{line.format(key=public(key).split()[1])}\n"
    with pytest.raises(NeedsPerson, match="line 2 of revoked_keys is no public key"):
        found(sign(CONTENT, key), f"alice {public(key)}\n", revoked=broken)


def test_a_binary_list_is_not_left_out() -> None:
    """kubectl stores a KRL as binary data; without it the keys that it revokes would count."""
    stored = {"data": {"allowed_signers": "alice ssh-ed25519 AAAA"}}
    assert AllowedSigners.of(stored) == AllowedSigners("alice ssh-ed25519 AAAA")
    assert AllowedSigners.of({}) == AllowedSigners("")
    with pytest.raises(NeedsPerson, match="revoked_keys is binary"):
        AllowedSigners.of({**stored, "binaryData": {"revoked_keys": "U1NIS1JM"}})


@pytest.mark.parametrize("username", ["*", "*@example.com", "ev?@example.com", "!eve", "eve,zoe"])
def test_who_calls_themselves_like_a_pattern(keygen: Keygen, username: str) -> None:
    """Literally in the list, and matched by OpenSSH: they sign for nobody."""
    key = keygen("eve")
    armour = sign(CONTENT, key)
    assert found(armour, f'{username} {public(key)}\n"{username}" {public(key)}\n', username=username) == Unverified(
        f"no key is listed for {username} in ConfigMap praxis-allowed-signers; an admin adds it there"
    )


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("kill -9 $$", "ssh-keygen ended with -9 while it verified a signature"),
        ("exit 127", "ssh-keygen ended with 127 while it verified a signature"),
    ],
)
def test_a_check_that_breaks_off_says_nothing(
    keygen: Keygen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    """It is no refusal, and is not remembered as one."""
    key = keygen("alice")
    armour, allowed = sign(CONTENT, key), f"alice {public(key)}\n"
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "ssh-keygen"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        with pytest.raises(RetryLater, match=says):
            found(armour, allowed)
    assert isinstance(found(armour, allowed), Verified)


def test_a_full_disk_says_nothing(keygen: Keygen, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signature cannot be written to where `ssh-keygen` reads it."""
    key = keygen("alice")
    armour = sign(CONTENT, key)
    monkeypatch.setattr("tempfile.tempdir", "/proc/none")
    with pytest.raises(RetryLater, match="ssh-keygen could not be run"):
        found(armour, f"alice {public(key)}\n")


def test_made_for_something_else(keygen: Keygen) -> None:
    """What she signed for Git passes for no approval."""
    key = keygen("alice")
    command = ["ssh-keygen", "-Y", "sign", "-q", "-f", str(key), "-n", "git"]
    armour = subprocess.run(command, input=CONTENT, check=True, capture_output=True).stdout.decode()
    assert found(armour, f"alice {public(key)}\n") == Unverified(
        "it was made for another purpose, not in the sshsig namespace praxis-approval"
    )


@pytest.mark.parametrize(
    "armour",
    [
        "",
        "nonsense",
        "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n",
        "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n",
        "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----",
        "\udc80",
        "\x00",
    ],
)
def test_no_signature_at_all(keygen: Keygen, armour: str) -> None:
    """What cannot be read verifies nothing, and nothing breaks."""
    assert isinstance(found(armour, f"alice {public(keygen('alice'))}\n"), Unverified)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_change_of_either_is_seen(keygen: Keygen, tmp_path: Path, data: st.DataObject) -> None:
    """Whichever byte of the content or letter of the signature is changed, it does not verify."""
    key = tmp_path / "alice"
    if not key.exists():
        keygen("alice")
    armour, allowed = sign(CONTENT, key), f"alice {public(key)}\n"
    changed = data.draw(st.binary(max_size=64).filter(lambda content: content != CONTENT))
    assert found(armour, allowed, content=changed) == Unverified(CHANGED)
    # Behind magic and version: OpenSSH takes any version that is not newer than its own.
    letters = [index for index, letter in enumerate(armour) if letter.isalnum() and 46 < index < len(armour) - 32]
    index = data.draw(st.sampled_from(letters))
    # The bits of the last letter before the padding are not all used.
    other = "A" if armour[index] not in "ABCD" else "w"
    assert isinstance(found(armour[:index] + other + armour[index + 1 :], allowed), Unverified)


def test_without_openssh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without ssh-keygen it says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NeedsPerson, match=r"ssh-keygen is not installed: signatures need OpenSSH's client tools"):
        sign(CONTENT, tmp_path / "key")
    with pytest.raises(NeedsPerson, match="ssh-keygen is not installed"):
        found("anything of this test alone", "alice ssh-ed25519 AAAA\n")


def test_a_key_that_does_not_sign(tmp_path: Path) -> None:
    """A file that is no key is told; ssh-keygen itself says why."""
    (tmp_path / "key").write_text("no key")
    with pytest.raises(NeedsPerson, match=r"ssh-keygen did not sign with .*key; it ended with 255"):
        sign(CONTENT, tmp_path / "key")
