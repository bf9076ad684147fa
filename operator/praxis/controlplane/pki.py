"""The certificate authority of one control plane: who holds a certificate of it is the user and the groups it names."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=365)
"""How long certificates hold: longer than anything here should run."""
CLOCK_SKEW = datetime.timedelta(minutes=5)
LONGEST_NAME = 64
"""The most characters that X.509 allows in a common name, which Kubernetes reads as the user name."""


@dataclass(frozen=True)
class Credentials:
    """A certificate and its key, both PEM."""

    certificate: str
    key: str


@dataclass(frozen=True)
class Authority:
    """A self-signed authority, and what it issues."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls) -> Authority:
        """A new authority with a new key."""
        key = _new_key()
        name = _name("praxis-controlplane-ca", ())
        unsigned = (
            _builder(name, key.public_key(), name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(unsigned.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, certificate: Path, key: Path) -> Authority:
        """The authority that was stored with `credentials`."""
        loaded = serialization.load_pem_private_key(key.read_bytes(), password=None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        return cls(x509.load_pem_x509_certificate(certificate.read_bytes()), loaded)

    @property
    def credentials(self) -> Credentials:
        """The authority's own certificate and key, to store."""
        return Credentials(_pem(self.certificate), _key_pem(self.key))

    def issue_client(self, user: str, groups: Iterable[str] = ()) -> Credentials:
        """A client certificate for a user in these groups; raises ValueError for a name that X.509 cannot hold."""
        return self._issue(_name(user, tuple(groups)), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def issue_server(self) -> Credentials:
        """A certificate for a server on this machine's loopback address."""
        names = (x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost"))
        return self._issue(_name("kube-apiserver", ()), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def _issue(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, names: Sequence[x509.GeneralName]
    ) -> Credentials:
        key = _new_key()
        builder = (
            _builder(subject, key.public_key(), self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Credentials(_pem(builder.sign(self.key, hashes.SHA256())), _key_pem(key))


def new_signing_key() -> str:
    """A private key, PEM, with which an API server signs service accounts' tokens and checks them."""
    return _key_pem(_new_key())


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read; whoever reads it meanwhile sees the old text or the new one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123 takes the mode
        file.write(text)
    partial.replace(path)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(user: str, groups: Sequence[str]) -> x509.Name:
    for value in (user, *groups):
        if not 1 <= len(value) <= LONGEST_NAME:
            raise ValueError(f"{value!r} cannot stand in a certificate: a name has 1 to {LONGEST_NAME} characters.")
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _builder(subject: x509.Name, key: ec.EllipticCurvePublicKey, issuer: x509.Name) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()
