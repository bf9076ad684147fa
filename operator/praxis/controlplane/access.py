"""Reaching a running control plane as somebody: kubeconfigs for people and service accounts, kubectl, requests."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import yaml

from praxis.controlplane import pki
from praxis.controlplane.errors import KubectlFailed, RequestRefused, Unreachable
from praxis.controlplane.servers import Layout

TOKEN_LIFETIME = 12 * 3600
"""Seconds that a service account's token holds, unless another time is asked for."""
REQUEST_TIMEOUT = 10.0


class Access:
    """Kubeconfigs and requests for the control plane whose files are in `layout`; it must be running for requests."""

    def __init__(self, layout: Layout, server: str, kubectl: Path) -> None:
        self._layout = layout
        self._kubectl = kubectl
        self.server = server
        """The API server's URL, https://127.0.0.1:PORT."""

    @property
    def ca_file(self) -> Path:
        """The certificate, PEM, that the API server's own is checked against."""
        return self._layout.ca_certificate

    @property
    def audit_log(self) -> Path:
        """The API server's audit log: one JSON object a line for each request that was answered, level Metadata."""
        return self._layout.audit_log

    @property
    def etcd_endpoint(self) -> str:
        """Where etcd listens, as etcd's clients take it: unix:///PATH."""
        return self._layout.etcd_endpoint

    @property
    def admin_kubeconfig(self) -> Path:
        """A kubeconfig for `admin` in system:masters, whom RBAC lets do anything."""
        return self.kubeconfig("admin", ["system:masters"])

    def kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig with a client certificate for a person; the same file each time for the same identity.

        Raises ValueError for a name of more than 64 characters, which a certificate cannot hold.
        """
        identity = json.dumps([user, sorted(set(groups))])
        path = self._path("user", user, identity)
        if not path.exists():
            issued = self._authority.issue_client(user, sorted(set(groups)))
            credentials = {
                "client-certificate-data": _base64(issued.certificate),
                "client-key-data": _base64(issued.key),
            }
            self._write(path, user, credentials)
        return path

    def service_account_kubeconfig(self, namespace: str, name: str, *, lifetime: int = TOKEN_LIFETIME) -> Path:
        """A kubeconfig with a fresh token (TokenRequest) of a service account that exists; rewrites the same file.

        `lifetime` is in seconds, 600 or more. Raises `RequestRefused` when there is no such service account (see
        `create_service_account`).
        """
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": lifetime},
        }
        accounts = f"/api/v1/namespaces/{quote(namespace, safe='')}/serviceaccounts"
        answer = self.request("POST", f"{accounts}/{quote(name, safe='')}/token", body)
        path = self._path("serviceaccount", f"{namespace}-{name}", f"{namespace}/{name}")
        self._write(path, name, {"token": answer["status"]["token"]}, namespace)
        return path

    def create_service_account(self, namespace: str, name: str) -> None:
        """Create a service account, and its namespace, unless they exist; raises `RequestRefused` otherwise."""
        for path, kind, created in (
            ("/api/v1/namespaces", "Namespace", namespace),
            (f"/api/v1/namespaces/{quote(namespace, safe='')}/serviceaccounts", "ServiceAccount", name),
        ):
            try:
                self.request("POST", path, {"apiVersion": "v1", "kind": kind, "metadata": {"name": created}})
            except RequestRefused as refused:
                if refused.status != http.client.CONFLICT:
                    raise

    def kubectl(
        self, *args: str, kubeconfig: Path | None = None, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as an identity, admin unless said otherwise; its output is captured as text.

        Raises `KubectlFailed` when it ends with another code than 0, unless `check` is false.
        """
        done = subprocess.run(
            [self._kubectl, f"--kubeconfig={kubeconfig or self.admin_kubeconfig}", *args],
            env={**os.environ, "KUBECACHEDIR": str(self._layout.kubectl_cache)},
            # Without input of ours it must not read that of the terminal.
            **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(args)} ended with {done.returncode}: {done.stderr.strip()}")
        return done

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One request as admin, answered in JSON; `path` begins with /api.

        Raises `RequestRefused` for an error status, `Unreachable` when no answer came.
        """
        try:
            status, text = self._send(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            log = self._layout.apiserver_log
            raise Unreachable(f"{method} {path}: no answer from {self.server} ({error}); see {log}.") from error
        if status >= http.client.BAD_REQUEST:
            raise RequestRefused(f"{method} {path}: {_message(text)}", status=status)
        decoded: dict[str, Any] = json.loads(text)
        return decoded

    def unreadiness(self) -> str | None:
        """Why the API server is not ready, in its own words; None when it is."""
        try:
            status, text = self._send("GET", "/readyz?verbose=true")
        except (OSError, http.client.HTTPException) as error:
            return f"no answer: {error}"
        if status == http.client.OK:
            return None
        return "; ".join(line for line in text.splitlines() if not line.startswith("[+]"))

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, str]:
        address = urlsplit(self.server)
        assert address.hostname is not None
        connection = http.client.HTTPSConnection(
            address.hostname, address.port, context=self._tls, timeout=REQUEST_TIMEOUT
        )
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca_file))
        context.load_cert_chain(self._layout.admin)
        return context

    @cached_property
    def _authority(self) -> pki.Authority:
        return pki.Authority.load(self._layout.ca_certificate, self._layout.ca_key)

    def _path(self, kind: str, readable: str, identity: str) -> Path:
        digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
        return self._layout.kubeconfigs / f"{kind}-{re.sub(r'[^A-Za-z0-9.-]+', '-', readable)[:60]}-{digest}.yaml"

    def _write(self, path: Path, user: str, credentials: Mapping[str, str], namespace: str = "default") -> None:
        cluster = {"server": self.server, "certificate-authority-data": _base64(self.ca_file.read_text())}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "praxis",
            "clusters": [{"name": "praxis", "cluster": cluster}],
            "users": [{"name": user, "user": dict(credentials)}],
            "contexts": [{"name": "praxis", "context": {"cluster": "praxis", "user": user, "namespace": namespace}}],
        }
        pki.write_private(path, yaml.safe_dump(document, sort_keys=False))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _message(text: str) -> str:
    """The sentence of a Kubernetes Status, or the text itself."""
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text.strip()
