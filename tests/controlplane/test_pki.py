"""Certificates that say who somebody is, and files that only their owner reads."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from praxis.controlplane.pki import Authority, Credentials, write_private
from tests.controlplane.conftest import mode


@pytest.fixture(scope="module")
def authority() -> Authority:
    """An authority."""
    return Authority.create()


def certificate(credentials: Credentials) -> x509.Certificate:
    """The certificate, parsed."""
    return x509.load_pem_x509_certificate(credentials.certificate.encode())


def usages(issued: x509.Certificate) -> list[x509.ObjectIdentifier]:
    """What it may be used for."""
    return list(issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_a_client_certificate_names_user_and_groups(authority: Authority) -> None:
    """The common name is the user, each organisation a group; it is no server's and no authority's."""
    issued = certificate(authority.issue_client("alice@example.org", ["approvers", "viewers"]))

    names = {name.oid: name.value for name in issued.subject}
    assert names[NameOID.COMMON_NAME] == "alice@example.org"
    groups = issued.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [group.value for group in groups] == ["approvers", "viewers"]
    assert usages(issued) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not issued.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    issued.verify_directly_issued_by(authority.certificate)


def test_the_server_certificate_is_for_loopback_alone(authority: Authority) -> None:
    """It cannot be presented as a client's."""
    issued = certificate(authority.issue_server())

    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["127.0.0.1", "localhost"]
    assert usages(issued) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_certificates_hold_from_a_little_before_now(authority: Authority) -> None:
    """A reader whose clock is a minute behind accepts them at once."""
    issued = certificate(authority.issue_client("alice"))
    now = datetime.datetime.now(datetime.UTC)

    assert issued.not_valid_before_utc < now - datetime.timedelta(minutes=1)
    assert issued.not_valid_after_utc > now + datetime.timedelta(days=300)


def test_an_authority_survives_being_stored(authority: Authority, tmp_path: Path) -> None:
    """Loaded again, it issues certificates that the first one's readers accept."""
    (tmp_path / "crt").write_text(authority.credentials.certificate)
    (tmp_path / "key").write_text(authority.credentials.key)

    loaded = Authority.load(tmp_path / "crt", tmp_path / "key")

    certificate(loaded.issue_client("alice")).verify_directly_issued_by(authority.certificate)
    assert isinstance(loaded.key, ec.EllipticCurvePrivateKey)


@pytest.mark.parametrize(("user", "groups"), [("", []), ("u" * 65, []), ("alice", [""]), ("alice", ["g" * 65])])
def test_names_that_a_certificate_cannot_hold_are_refused(authority: Authority, user: str, groups: list[str]) -> None:
    """The error names the value and the limit."""
    with pytest.raises(ValueError, match="cannot stand in a certificate: a name has 1 to 64 characters"):
        authority.issue_client(user, groups)


def test_secrets_are_for_their_owner_only(tmp_path: Path) -> None:
    """Whatever the umask says; a second write replaces the text, and nothing else is left beside it."""
    path = tmp_path / "key"
    before = os.umask(0)
    try:
        write_private(path, "first")
        write_private(path, "second")
    finally:
        os.umask(before)

    assert path.read_text() == "second"
    assert mode(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]
