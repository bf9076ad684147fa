"""The whole house on one machine: control plane, installation, emulators, gateway, operators, each as its own identity.

The demo shows it, the end-to-end tests break it. Everything is a process of its own that talks over real sockets; the
gateway and the operators use tokens of their own service accounts, people use client certificates.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from praxis.api import admission, crds, rbac
from praxis.api.accounts import Names
from praxis.api.incident import Incident
from praxis.controlplane import ControlPlane
from praxis.demo.function_compute import Admin
from praxis.demo.function_compute.functions import CredentialSeed, FunctionSeed, Seed
from praxis.demo.processes import Running, start

NAMES = Names()
REGION = "ap-southeast-1"
ACCOUNT = "1234567890"
ACCESS_KEY = "LTAIdemo00000000"
WEBHOOK_TOKEN = "demo-bearer-token-0123456789"  # noqa: S105  # of a receiver that listens on loopback for minutes
POLL_SECONDS = 0.1
QUICK: Mapping[str, str] = {
    "PRAXIS_ACTIONS__POLL_INTERVAL": "0.3",
    "PRAXIS_ACTIONS__VERIFY_DEADLINE": "12",
    "PRAXIS_ACTIONS__DISPATCH_WINDOW": "5",
    "PRAXIS_ACTIONS__REQUEST_TIMEOUT": "3",
    "PRAXIS_LEASE_DURATION": "3",
    "PRAXIS_LEASE_RENEW": "1",
    "PRAXIS_RESYNC_INTERVAL": "5",
}
"""Times that suit somebody who watches; the defaults suit production."""


@dataclass(frozen=True)
class Service:
    """A service of the demo shop: its function, and the target that declares it."""

    name: str
    instances: int = 2

    @property
    def target(self) -> str:
        """Name of the RemediationTarget."""
        return f"{self.name}-fn"

    @property
    def secret(self) -> str:
        """The secret of the access key that is limited to this function."""
        return f"demo-secret-of-{self.name}"

    @property
    def access_key(self) -> str:
        """The access key that is limited to this function."""
        return f"{ACCESS_KEY}{self.name}"

    def seed(self) -> FunctionSeed:
        """The emulated function."""
        return FunctionSeed(
            name=self.name,
            region=REGION,
            account_id=ACCOUNT,
            environment={"LOG_LEVEL": "info"},
            instances=self.instances,
            drain_seconds=2.5,
            start_seconds=1.2,
        )

    def manifest(self, namespace: str, endpoint: str) -> dict[str, Any]:
        """The RemediationTarget."""
        return {
            "apiVersion": "praxis.kopachelli.dev/v1alpha1",
            "kind": "RemediationTarget",
            "metadata": {"name": self.target, "namespace": namespace},
            "spec": {
                "kind": "FunctionCompute",
                "functionCompute": {
                    "region": REGION,
                    "accountId": ACCOUNT,
                    "function": self.name,
                    "endpoint": endpoint,
                    "healthPath": "/healthz",
                },
                "credentialsFile": f"{self.name}.json",
                "disposable": True,
                "alertSelector": {"matchLabels": {"service": self.name}},
            },
        }


@dataclass
class Stack:
    """What is running, and how to reach it."""

    plane: ControlPlane
    directory: Path
    namespace: str
    services: Sequence[Service]
    settings: Mapping[str, str]
    started: list[Running] = field(default_factory=list)
    emulator: Admin = field(init=False)
    emulator_url: str = field(init=False)
    model_url: str = field(init=False)
    gateway_url: str = field(init=False)

    @classmethod
    @contextmanager
    def up(
        cls,
        plane: ControlPlane,
        *,
        directory: Path,
        namespace: str = "shop",
        services: Sequence[Service] = (Service("checkout"), Service("payments")),
        settings: Mapping[str, str] = QUICK,
        say: Callable[[str], None] = lambda _: None,
    ) -> Iterator[Stack]:
        """Install everything and start all but the operators; stop what was started in the end."""
        stack = cls(plane=plane, directory=directory, namespace=namespace, services=services, settings=settings)
        try:
            say("installing CRDs, policies and roles")
            stack.install()
            say("starting the Function Compute emulator and the scripted model")
            stack.start_emulators()
            stack.declare()
            say("starting the gateway, as its own service account")
            stack.start_gateway()
            yield stack
        finally:
            for process in reversed(stack.started):
                process.stop()

    def install(self) -> None:
        """Apply what `kubectl apply -k` would, and wait until policies are in force."""
        install(self.plane)
        self.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}])

    def start_emulators(self) -> None:
        """Start the emulator of Function Compute, with a key for each function, and the scripted model."""
        seed = Seed(
            functions=[each.seed() for each in self.services],
            credentials=[
                CredentialSeed(access_key_id=each.access_key, access_key_secret=each.secret, functions=[each.name])
                for each in self.services
            ],
        )
        functions = self.directory / "functions.json"
        functions.write_text(seed.model_dump_json(by_alias=True))
        emulator = self._start(
            "emulator", [sys.executable, "-m", "praxis.demo.function_compute", "--functions", str(functions)]
        )
        self.emulator_url = f"http://127.0.0.1:{emulator.port}"
        self.emulator = Admin(self.emulator_url)
        model = self._start("model", [*PRAXIS, "scripted-model"])
        self.model_url = f"http://127.0.0.1:{model.port}/v1"

    def declare(self) -> None:
        """Declare a target for each service, and mount its credentials."""
        credentials = self.directory / "credentials"
        credentials.mkdir(exist_ok=True)
        for each in self.services:
            document = {"accessKeyId": each.access_key, "accessKeySecret": each.secret}
            (credentials / f"{each.name}.json").write_text(json.dumps(document))
        self.apply([each.manifest(self.namespace, self.emulator_url) for each in self.services])

    def start_gateway(self) -> Running:
        """Start the gateway as its service account."""
        token = self.directory / "webhook-token"
        token.write_text(WEBHOOK_TOKEN)
        gateway = self._start(
            "gateway",
            [*PRAXIS, "gateway", "--port", "0"],
            PRAXIS_GATEWAY_KUBECONFIG=str(self.identity(NAMES.gateway_account)),
            PRAXIS_GATEWAY_NAMESPACE=self.namespace,
            PRAXIS_GATEWAY_BEARER_TOKEN_FILE=str(token),
            PRAXIS_GATEWAY_HOST="127.0.0.1",
        )
        self.gateway_url = f"http://127.0.0.1:{gateway.port}"
        self.wait_until_ready(gateway)
        return gateway

    def start_operator(self, name: str = "operator", **environment: str) -> Running:
        """Start an operator as its service account; returns once it serves its probes."""
        return self._start(
            name,
            [*PRAXIS, "operator", "--http-port", "0"],
            **{
                "PRAXIS_KUBECONFIG": str(self.identity(NAMES.operator_account)),
                "PRAXIS_HTTP_HOST": "127.0.0.1",
                "PRAXIS_MODELS__BASE_URL": self.model_url,
                "PRAXIS_MODELS__FAST": "scripted-fast",
                "PRAXIS_MODELS__REASONING": "scripted-reasoning",
                "PRAXIS_MODELS__EMBEDDING": "scripted-embedding",
                "PRAXIS_ACTIONS__CREDENTIALS_DIR": str(self.directory / "credentials"),
                "PRAXIS_MEMORY_PATH": str(self.directory / "memory.db"),
                "PRAXIS_RECORDER__PATH": str(self.directory / "recorder.db"),
                **self.settings,
                **environment,
            },
        )

    def wait_until_ready(self, process: Running, timeout: float = 60) -> None:
        """Wait until a process says that it is ready: fresh CRDs are served a second after they are established.

        Raises:
            TimeoutError: it is not ready in time; the message shows what it waits for.
        """
        deadline = time.monotonic() + timeout
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{process.port}/readyz", timeout=5):
                    return
            except urllib.error.HTTPError as error:
                waiting_for = error.read().decode(errors="replace").strip()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{process.name} is not ready after {timeout:g} s: {waiting_for}")
            time.sleep(POLL_SECONDS)

    def identity(self, account: str) -> Path:
        """The kubeconfig of one of the installation's service accounts."""
        return self.plane.service_account_kubeconfig(NAMES.namespace, account)

    def person(self, name: str) -> Path:
        """The kubeconfig of a person who may approve."""
        return self.plane.kubeconfig(user=name, groups=[NAMES.approvers_group, NAMES.viewers_group])

    def apply(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Server-side apply, as the cluster's admin."""
        apply(self.plane, documents)

    def post(self, payload: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Post an Alertmanager notification to the gateway; the status and the answer."""
        request = urllib.request.Request(  # noqa: S310  # the gateway of this stack, on loopback
            f"{self.gateway_url}/v1/alertmanager",
            data=json.dumps(payload).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {WEBHOOK_TOKEN}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def incident(self, name: str) -> Incident:
        """An incident, as the API server has it now."""
        found = self.plane.kubectl("get", "incident", name, "-n", self.namespace, "-o", "json")
        return Incident.parse(json.loads(found.stdout))

    def wait(
        self,
        name: str,
        until: Callable[[Incident], bool],
        *,
        timeout: float,
        seen: Callable[[Incident], None] = lambda _: None,
    ) -> Incident:
        """Read the incident until a condition holds; `seen` is told of each reading.

        Raises:
            TimeoutError: it did not hold in time; the message shows where the incident stands.
        """
        deadline = time.monotonic() + timeout
        while True:
            incident = self.incident(name)
            seen(incident)
            if until(incident):
                return incident
            if time.monotonic() > deadline:
                status = incident.status
                raise TimeoutError(f"{name} is in {status.phase} after {timeout:g} s: {status.reason} {status.message}")
            time.sleep(POLL_SECONDS)

    def _start(self, name: str, command: Sequence[str], **environment: str) -> Running:
        port_file = self.directory / f"{name}.port"
        process = start(
            name,
            [*command, "--port-file", str(port_file)],
            directory=self.directory,
            environment=environment,
            port_file=port_file,
        )
        self.started.append(process)
        return process


PRAXIS = [sys.executable, "-m", "praxis"]


def install(plane: ControlPlane) -> None:
    """Apply the CRDs, policies, roles and accounts, and wait until the API server holds them."""
    apply(plane, crds.documents())
    plane.kubectl(
        "wait", "--for=condition=Established", "--timeout=60s", "crd", "-l", "app.kubernetes.io/part-of=praxis"
    )
    apply(plane, [*rbac.accounts(NAMES), *rbac.documents(NAMES), *admission.documents(NAMES)])
    wait_for_policies(plane)


def apply(plane: ControlPlane, documents: Sequence[Mapping[str, Any]]) -> None:
    """Server-side apply, as the cluster's admin."""
    stream = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=stream)


def wait_for_policies(plane: ControlPlane, timeout: float = 60) -> None:
    """Wait until the API server enforces the policies: it reads them a second or two after they are stored.

    Probed with a dry run of what a policy must refuse: an approval in another's name.

    Raises:
        TimeoutError: it still accepts it.
    """
    probe = {
        "apiVersion": "praxis.kopachelli.dev/v1alpha1",
        "kind": "IncidentApproval",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": {
            "incidentRef": {"name": "probe", "uid": "probe"},
            "planDigest": "sha256:" + "0" * 64,
            "decision": "Approve",
            "approver": {"username": "somebody-else"},
            "expiresAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 600)),
        },
    }
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        answer = plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(probe), check=False)
        if answer.returncode != 0 and "must be" in answer.stderr:
            return
        time.sleep(POLL_SECONDS)
    raise TimeoutError("the API server does not enforce the policies")
