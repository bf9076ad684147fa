"""What the two servers are started with, and where their files are. Facts about the flags: facts.md §10."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from praxis.controlplane import pki
from praxis.controlplane.binaries import Binaries
from praxis.controlplane.errors import StartFailed

LONGEST_SOCKET_PATH = 107
"""Bytes that Linux allows in the path of a unix socket."""

AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
"""


@dataclass(frozen=True)
class Layout:
    """The files of one control plane, all in one directory that only its owner may enter."""

    root: Path

    @property
    def ca_certificate(self) -> Path:
        """The authority that client and server certificates are checked against."""
        return self.root / "ca.crt"

    @property
    def ca_key(self) -> Path:
        """The authority's key: with it, kubeconfigs for anybody can be made."""
        return self.root / "ca.key"

    @property
    def server_certificate(self) -> Path:
        """The API server's own certificate."""
        return self.root / "server.crt"

    @property
    def server_key(self) -> Path:
        """Its key."""
        return self.root / "server.key"

    @property
    def admin(self) -> Path:
        """Certificate and key of a member of system:masters, in one file."""
        return self.root / "admin.pem"

    @property
    def token_key(self) -> Path:
        """Signs service accounts' tokens."""
        return self.root / "service-accounts.key"

    @property
    def audit_policy(self) -> Path:
        """Everything at level Metadata: who (and as whom), which verb, which object, what came of it."""
        return self.root / "audit-policy.yaml"

    @property
    def audit_log(self) -> Path:
        """One JSON object a line (audit.k8s.io/v1 Event)."""
        return self.root / "audit.log"

    @property
    def etcd_log(self) -> Path:
        """What etcd wrote."""
        return self.root / "etcd.log"

    @property
    def apiserver_log(self) -> Path:
        """What kube-apiserver wrote."""
        return self.root / "kube-apiserver.log"

    @property
    def kubeconfigs(self) -> Path:
        """A directory: one file for each identity."""
        return self.root / "kubeconfigs"

    @property
    def kubectl_cache(self) -> Path:
        """A directory: kubectl's discovery cache, kept out of the user's own."""
        return self.root / "kubectl-cache"

    @property
    def etcd_endpoint(self) -> str:
        """Where etcd listens.

        A socket in this directory: nobody else on the machine can write past the API server, and no port is needed.
        """
        return f"unix://{self.root}/etcd.sock"

    def create(self) -> pki.Authority:
        """Write certificates, keys and policy into the directory; raises `StartFailed` for too long a path."""
        if len(self.etcd_endpoint.removeprefix("unix://").encode()) > LONGEST_SOCKET_PATH:
            raise StartFailed(
                f"{self.root} is too long a path: unix sockets in it must fit into {LONGEST_SOCKET_PATH} bytes. "
                "Choose a shorter state directory, or a shorter TMPDIR."
            )
        authority = pki.Authority.create()
        server, admin = authority.issue_server(), authority.issue_client("admin", ["system:masters"])
        for path, text in {
            self.ca_certificate: authority.credentials.certificate,
            self.ca_key: authority.credentials.key,
            self.server_certificate: server.certificate,
            self.server_key: server.key,
            self.admin: admin.certificate + admin.key,
            self.token_key: pki.new_signing_key(),
            self.audit_policy: AUDIT_POLICY,
        }.items():
            pki.write_private(path, text)
        self.audit_log.touch(mode=0o600)
        self.kubeconfigs.mkdir()
        return authority


def etcd_command(binaries: Binaries, layout: Layout) -> list[str]:
    """etcd, alone, on sockets, and without waiting for the disk: what it holds need not survive a power cut."""
    # A peer URL's path is ignored and its host names the socket, relative to the working directory.
    peer = "unix://etcd-peer.sock"
    return [
        str(binaries.etcd),
        "--name=praxis",
        f"--data-dir={layout.root / 'etcd'}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls={layout.etcd_endpoint}",
        f"--advertise-client-urls={layout.etcd_endpoint}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=praxis={peer}",
    ]


def apiserver_command(binaries: Binaries, layout: Layout, port: int) -> list[str]:
    """kube-apiserver on a loopback port, with RBAC, TokenRequest and an audit log."""
    return [
        str(binaries.apiserver),
        f"--etcd-servers={layout.etcd_endpoint}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        # A socket of ours that never listens holds the port: nobody else can take it, not even during a restart.
        "--permit-port-sharing=true",
        # The default reconciler wants an address that is not loopback.
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--tls-cert-file={layout.server_certificate}",
        f"--tls-private-key-file={layout.server_key}",
        f"--client-ca-file={layout.ca_certificate}",
        "--authorization-mode=RBAC",
        # No controller-manager makes the default service accounts that this plugin would wait for.
        "--disable-admission-plugins=ServiceAccount",
        "--service-account-issuer=https://praxis.local",
        f"--service-account-key-file={layout.token_key}",
        f"--service-account-signing-key-file={layout.token_key}",
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        # Megabytes; a log that rotates would lose what a reader has not read yet.
        "--audit-log-maxsize=4096",
    ]
