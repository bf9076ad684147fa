"""Signing and verifying with `ssh-keygen -Y`.

OpenSSH is the reference: keys in an agent or on hardware, certificates, validity and revocation are as people know them
from their own `ssh-keygen` (PROTOCOL.sshsig, ssh-keygen(1)). Needs OpenSSH 8.9, and writes to the temporary directory.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

from praxis.api.accounts import SIGNERS_CONFIG_MAP
from praxis.approval.signature import Finding, Unverified, Verified
from praxis.errors import NeedsPerson, RetryLater
from praxis.signing.signers import AllowedSigners

NAMESPACE: Final = "praxis-approval"
"""The namespace of sshsig: a signature made for Git or for a file never passes for an approval."""
VERIFY_SECONDS: Final = 10
"""For one `ssh-keygen -Y verify`; it takes milliseconds."""
ENDED = frozenset({0, 255})
"""How `ssh-keygen` ends when it has an answer."""
REMEMBERED = 1024
"""Verifications whose result is kept: each is asked again at every look at an incident, and never changes."""

_GOOD = re.compile(rf'^Good "{NAMESPACE}" signature .*? with \S+ key (SHA256:[A-Za-z0-9+/]+)$', re.MULTILINE)
_WHY = (
    ("namespace does not match", f"it was made for another purpose, not in the sshsig namespace {NAMESPACE}"),
    ("incorrect signature", "it is a signature of something else: the decision was changed after it was signed"),
    ("key has expired", "its key was not valid any more when the decision was created"),
    ("key is not yet valid", "its key was not valid yet when the decision was created"),
    ("not permitted for use in signature namespace", f"its key is not allowed for namespace {NAMESPACE}"),
)


def program() -> str:
    """The path of `ssh-keygen`. Raises NeedsPerson: it is not installed."""
    found = shutil.which("ssh-keygen")
    if found is None:
        raise NeedsPerson("ssh-keygen is not installed: signatures need OpenSSH's client tools, 8.9 or newer")
    return found


def sign(content: bytes, key: Path) -> str:
    """The armoured signature of content with a private key, or with the agent's or the hardware's key of a public one.

    `ssh-keygen` asks for a passphrase or a touch on the terminal by itself.

    Raises:
        NeedsPerson: there is no `ssh-keygen`, or it did not sign; it has said why on stderr.
    """
    command = [program(), "-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE]
    done = subprocess.run(command, input=content, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise NeedsPerson(f"ssh-keygen did not sign with {key}; it ended with {done.returncode}")
    return done.stdout.decode("ascii")


def verify(content: bytes, armour: str, *, username: str, signers: AllowedSigners, at: datetime) -> Finding:
    """Whether this is the user's signature of the content, by a key that was valid at a time and is not revoked now.

    Raises:
        NeedsPerson: `ssh-keygen` is not installed, or the list of revoked keys is not what it reads: nothing is known.
        RetryLater: `ssh-keygen` could not run to its end: nothing is known.
    """
    signers.readable()
    lines = signers.lines_for(username)
    if not lines:
        return Unverified(f"no key is listed for {username} in ConfigMap {SIGNERS_CONFIG_MAP}; an admin adds it there")
    return _verified(content, armour, username=username, lines=lines, revoked=signers.revoked, at=at)


@lru_cache(maxsize=REMEMBERED)
def _verified(content: bytes, armour: str, *, username: str, lines: str, revoked: str, at: datetime) -> Finding:
    command = [program(), "-Y", "verify", "-n", NAMESPACE, "-I", username, "-f", "allowed_signers"]
    command += ["-s", "signature", "-O", f"verify-time={at.astimezone(UTC):%Y%m%d%H%M%S}"]
    command += ["-r", "revoked_keys"] if revoked.strip() else []
    try:
        with tempfile.TemporaryDirectory(prefix="praxis-signature-") as directory:
            for name, text in {"allowed_signers": lines, "revoked_keys": revoked, "signature": armour}.items():
                (Path(directory) / name).write_text(text, encoding="utf-8")
            done = subprocess.run(
                command,
                input=content,
                capture_output=True,
                check=False,
                cwd=directory,
                timeout=VERIFY_SECONDS,
                # Times without a zone, here and in the list, are UTC wherever the operator runs.
                env={"TZ": "UTC", "LC_ALL": "C", "PATH": os.environ.get("PATH", "")},
            )
    except subprocess.TimeoutExpired as error:
        raise RetryLater(f"ssh-keygen did not verify a signature within {VERIFY_SECONDS} s") from error
    except OSError as error:
        raise RetryLater(f"ssh-keygen could not be run: {error}") from error
    except (ValueError, UnicodeError) as error:
        return Unverified(f"it cannot be checked: {error}")
    if done.returncode not in ENDED:  # killed, as for want of memory: that says nothing of the signature
        raise RetryLater(f"ssh-keygen ended with {done.returncode} while it verified a signature")
    good = _GOOD.search(done.stdout.decode("utf-8", "replace"))
    if done.returncode == 0 and good is not None:
        return Verified(good[1])
    return Unverified(_why(done.stderr.decode("utf-8", "replace"), username))


def _why(said: str, username: str) -> str:
    for words, meaning in _WHY:
        if words in said:
            return meaning
    if "parse signature" in said or "invalid format" in said:
        return "it is no SSH signature"
    return f"its key is not one that is listed for {username}, or it is revoked"
