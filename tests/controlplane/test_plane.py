"""A real kube-apiserver and etcd: who one is on it, what it writes down, and that nothing of it is left."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from praxis.controlplane import ControlPlane
from praxis.controlplane.binaries import KUBERNETES_VERSION
from praxis.controlplane.errors import KubectlFailed, RequestRefused, StartFailed, Unreachable
from praxis.controlplane.process import ProcessIdentity
from tests.controlplane.conftest import executable, mode, script, wait_for_end

pytestmark = pytest.mark.controlplane

PARENT = """
import json, sys
from praxis.controlplane import ControlPlane

with ControlPlane.start() as plane:
    print(json.dumps({name: process.pid for name, process in plane.processes.items()}), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def own() -> Iterator[ControlPlane]:
    """A second control plane beside the shared one, which tests may stop and start."""
    with ControlPlane.start() as running:
        yield running


def who(plane: ControlPlane, kubeconfig: Path) -> tuple[str, set[str]]:
    """User name and groups, as the API server sees the bearer (SelfSubjectReview)."""
    answer = json.loads(plane.kubectl("auth", "whoami", "-o", "json", kubeconfig=kubeconfig).stdout)
    user = answer["status"]["userInfo"]
    return user["username"], set(user["groups"])


def audited(plane: ControlPlane, name: str) -> list[dict[str, Any]]:
    """The audit log's entries about objects of this name."""
    events = [json.loads(line) for line in plane.audit_log.read_text().splitlines()]
    return [event for event in events if event.get("objectRef", {}).get("name") == name]


def namespaces(plane: ControlPlane) -> set[str]:
    """Names of those that exist."""
    return {line.partition("/")[2] for line in plane.kubectl("get", "ns", "-o", "name").stdout.splitlines()}


def test_it_is_the_kubernetes_it_should_be(plane: ControlPlane) -> None:
    """Server and kubectl name the version that they were built from."""
    versions = json.loads(plane.kubectl("version", "-o", "json").stdout)

    assert versions["serverVersion"]["gitVersion"] == f"v{KUBERNETES_VERSION}"
    assert versions["clientVersion"]["gitVersion"] == f"v{KUBERNETES_VERSION}"
    assert versions["serverVersion"]["minor"] == KUBERNETES_VERSION.split(".")[1]


def test_a_person_is_who_the_kubeconfig_says(plane: ControlPlane) -> None:
    """User and groups of a client certificate, and nothing more than what everybody is."""
    kubeconfig = plane.kubeconfig("alice@example.org", ["praxis-approvers", "staff"])

    assert who(plane, kubeconfig) == (
        "alice@example.org",
        {"praxis-approvers", "staff", "system:authenticated"},
    )


def test_the_admin_is_in_system_masters(plane: ControlPlane) -> None:
    """The identity that kubectl has when none is given."""
    name, groups = who(plane, plane.admin_kubeconfig)

    assert (name, "system:masters" in groups) == ("admin", True)
    assert plane.kubectl("auth", "can-i", "*", "*").stdout == "yes\n"


def test_each_identity_has_one_kubeconfig(plane: ControlPlane) -> None:
    """The order of the groups is no difference, a group is; names that differ only in odd characters stay apart."""
    first = plane.kubeconfig(user="alice", groups=["a", "b"])
    content = first.read_text()

    assert plane.kubeconfig("alice", ["b", "a", "b"]) == first
    assert first.read_text() == content
    assert len({first, plane.kubeconfig("alice", ["a"]), plane.kubeconfig("al/ice"), plane.kubeconfig("al:ice")}) == 4
    assert mode(first) == 0o600


def test_a_kubeconfig_stands_alone(plane: ControlPlane, tmp_path: Path) -> None:
    """Copied anywhere it works: it refers to no other file."""
    copy = tmp_path / "copy"
    copy.write_text(plane.kubeconfig("alice").read_text())

    assert who(plane, copy)[0] == "alice"
    assert yaml.safe_load(copy.read_text())["clusters"][0]["cluster"]["server"] == plane.server
    assert plane.ca_file.read_text().startswith("-----BEGIN CERTIFICATE-----")


def test_a_service_account_is_who_its_token_says(plane: ControlPlane) -> None:
    """By a token of TokenRequest, with the account's namespace as the default one."""
    plane.create_service_account("controlplane-accounts", "robot")
    kubeconfig = plane.service_account_kubeconfig("controlplane-accounts", "robot")

    name, groups = who(plane, kubeconfig)

    assert name == "system:serviceaccount:controlplane-accounts:robot"
    assert "system:serviceaccounts:controlplane-accounts" in groups
    assert yaml.safe_load(kubeconfig.read_text())["contexts"][0]["context"]["namespace"] == "controlplane-accounts"


def test_a_token_holds_for_as_long_as_asked(plane: ControlPlane) -> None:
    """Each call requests a new one."""
    plane.create_service_account("controlplane-accounts", "brief")

    def token() -> str:
        path = plane.service_account_kubeconfig("controlplane-accounts", "brief", lifetime=600)
        return str(yaml.safe_load(path.read_text())["users"][0]["user"]["token"])

    first = token()
    payload = first.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["exp"] - claims["iat"] == 600
    assert claims["iss"] == "https://praxis.local"
    assert token() != first


def test_creating_a_service_account_twice_is_harmless(plane: ControlPlane) -> None:
    """A test need not know whether another one made it."""
    plane.create_service_account("controlplane-accounts", "twice")
    plane.create_service_account("controlplane-accounts", "twice")

    plane.kubectl("get", "serviceaccount", "twice", "-n", "controlplane-accounts")


def test_a_token_needs_an_account(plane: ControlPlane) -> None:
    """Nothing is made on the way: the API server's words and status are passed on."""
    with pytest.raises(RequestRefused, match='serviceaccounts "never-made" not found') as refused:
        plane.service_account_kubeconfig("default", "never-made")
    assert refused.value.status == 404
    with pytest.raises(RequestRefused) as refused:
        plane.create_service_account("no such name", "robot")
    assert refused.value.status == 422


def test_rbac_is_in_force(plane: ControlPlane) -> None:
    """Neither a person nor a service account may do anything that no role gives them."""
    plane.create_service_account("controlplane-accounts", "robot")
    robot = plane.service_account_kubeconfig("controlplane-accounts", "robot")

    for identity in (plane.kubeconfig("alice", ["staff"]), robot):
        refused = plane.kubectl("get", "secrets", "-A", kubeconfig=identity, check=False)
        assert refused.returncode == 1
        assert "Forbidden" in refused.stderr


def test_the_audit_log_names_who_did_what(plane: ControlPlane) -> None:
    """User, verb, object and answer, once for each request, on disk when the answer comes."""
    alice = plane.kubeconfig("alice", ["staff"])
    plane.kubectl("delete", "configmap", "audited", kubeconfig=alice, check=False)

    (event,) = audited(plane, "audited")
    assert event["level"] == "Metadata"
    assert event["stage"] == "ResponseComplete"
    assert (event["user"]["username"], event["verb"]) == ("alice", "delete")
    assert "staff" in event["user"]["groups"]
    assert event["responseStatus"]["code"] == 403


def test_the_audit_log_tells_who_acted_as_whom(plane: ControlPlane) -> None:
    """An impersonated user does not hide the one who impersonates."""
    plane.kubectl("get", "configmap", "impersonated", "--as=bob", check=False)

    (event,) = audited(plane, "impersonated")
    assert (event["user"]["username"], event["impersonatedUser"]["username"]) == ("admin", "bob")


def test_kubectl_takes_input(plane: ControlPlane) -> None:
    """What `-f -` reads; without any it reads nothing, least of all the terminal."""
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fed", "namespace": "default"}}

    plane.kubectl("apply", "-f", "-", stdin=json.dumps(document))
    assert plane.kubectl("get", "configmap", "fed", "-o", "name").stdout == "configmap/fed\n"
    assert "no objects passed" in plane.kubectl("apply", "-f", "-", check=False).stderr


def test_a_failing_kubectl_is_an_error(plane: ControlPlane) -> None:
    """The message holds the command and what kubectl said; `check=False` hands over the result instead."""
    with pytest.raises(KubectlFailed, match=r'kubectl get configmap absent ended with 1: .*"absent" not found'):
        plane.kubectl("get", "configmap", "absent")
    assert plane.kubectl("get", "configmap", "absent", check=False).returncode == 1


def test_kubectl_leaves_the_users_files_alone(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cache is with the control plane's files, and the user's own KUBECONFIG is not read."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))

    plane.kubectl("get", "namespaces")
    assert list(tmp_path.iterdir()) == []


def test_two_run_side_by_side(plane: ControlPlane, own: ControlPlane) -> None:
    """Neither knows the other's objects or identities."""
    own.kubectl("create", "namespace", "only-here")

    assert "only-here" in namespaces(own)
    assert "only-here" not in namespaces(plane)
    stranger = own.kubectl("get", "namespaces", f"--server={plane.server}", check=False)
    assert "certificate signed by unknown authority" in stranger.stderr


def test_the_api_server_can_be_restarted(own: ControlPlane) -> None:
    """The same URL, the same objects, and kubeconfigs made before still work."""
    own.create_service_account("default", "survivor")
    survivor = own.service_account_kubeconfig("default", "survivor")
    before = own.processes

    own.stop_apiserver()
    with pytest.raises(Unreachable, match=r"no answer from https://127\.0\.0\.1:"):
        own.request("GET", "/api/v1/namespaces")
    assert "no answer" in str(own.unreadiness())
    own.start_apiserver()

    assert own.processes["kube-apiserver"] != before["kube-apiserver"]
    assert own.processes["etcd"] == before["etcd"]
    assert who(own, survivor)[0] == "system:serviceaccount:default:survivor"
    assert own.unreadiness() is None


def test_starting_what_runs_changes_nothing(own: ControlPlane) -> None:
    """A second start only waits for readiness."""
    before = own.processes

    own.start_apiserver()
    assert own.processes == before


def test_nobody_gets_the_port_meanwhile(own: ControlPlane) -> None:
    """The port is taken for as long as the control plane is there, also while no API server listens on it."""
    port = urlsplit(own.server).port
    own.stop_apiserver()
    try:
        with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
            other.bind(("127.0.0.1", port))
    finally:
        own.start_apiserver()


def test_etcd_is_for_its_owner_only(own: ControlPlane) -> None:
    """Whoever could write to etcd would need no RBAC: it listens on no port, in a directory that is its owner's."""
    etcd = Path("/proc") / str(own.processes["etcd"].pid)
    path = Path(own.etcd_endpoint.removeprefix("unix://"))

    assert path.is_socket()
    assert mode(path.parent) == 0o700
    connections = [line.split() for line in (etcd / "net" / "tcp").read_text().splitlines()[1:]]
    assert not sockets(etcd) & {f"socket:[{columns[9]}]" for columns in connections}
    bound = [line.split() for line in (etcd / "net" / "unix").read_text().splitlines()[1:]]
    names = {columns[7] for columns in bound if f"socket:[{columns[6]}]" in sockets(etcd) and len(columns) > 7}
    assert names == {str(path), "etcd-peer.sock"}


def sockets(process: Path) -> set[str]:
    """The sockets that a process has open, as /proc names them."""
    return {str(entry.readlink()) for entry in (process / "fd").iterdir() if entry.is_symlink()}


def test_stopping_leaves_nothing(own_temporary_directory: Path) -> None:
    """No process, no file, no port; stopping again does nothing."""
    with ControlPlane.start() as brief:
        started = list(brief.processes.values())
        brief.kubectl("get", "namespaces", kubeconfig=brief.kubeconfig("alice"), check=False)
        assert len(started) == 3
        assert list(own_temporary_directory.iterdir()) == [brief.audit_log.parent]

    assert not any(process.alive for process in started)
    assert list(own_temporary_directory.iterdir()) == []
    brief.stop()


def test_nothing_outlives_a_killed_parent(own_temporary_directory: Path) -> None:
    """SIGKILL of the process that runs it ends the servers and removes their files."""
    with script(PARENT) as parent:
        assert parent.stdout is not None
        pids = json.loads(parent.stdout.readline())
        parent.kill()
        parent.wait()
        for pid in pids.values():
            wait_for_end(pid)

    assert set(pids) == {"supervisor", "etcd", "kube-apiserver"}
    assert list(own_temporary_directory.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_start_leaves_nothing(
    assets: Path, own_temporary_directory: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """A signal while the API server is getting ready: what was started is stopped."""
    arrived = tmp_path / "arrived"
    os.mkfifo(arrived)
    tell = f"open({str(arrived)!r}, 'w').write(f'{{os.getppid()}} {{os.getpid()}}')"
    executable(assets / "kube-apiserver", f"#!{sys.executable} -SE\nimport os, signal\n{tell}\nsignal.pause()\n")

    with script(PARENT) as parent:
        pids = [int(pid) for pid in arrived.read_text().split()]
        parent.send_signal(number)
        parent.wait()
        for pid in pids:
            wait_for_end(pid)

    assert list(own_temporary_directory.iterdir()) == []


@pytest.mark.parametrize("broken", ["etcd", "kube-apiserver"])
def test_a_server_that_ends_is_told_with_its_log(assets: Path, own_temporary_directory: Path, broken: str) -> None:
    """The error names the server and ends with what it last wrote; nothing is left."""
    executable(assets / broken, "#!/bin/sh\nseq 100\necho 'bad flag' >&2\nexit 1\n")

    with pytest.raises(StartFailed, match=rf"{broken} ended by itself\. The end of its log:\n72\n(.|\n)*\nbad flag$"):
        ControlPlane.start()
    assert list(own_temporary_directory.iterdir()) == []


def test_a_server_that_does_not_get_ready_is_told(assets: Path, own_temporary_directory: Path) -> None:
    """When the time is up, the error says what was waited for; nothing is left."""
    with pytest.raises(StartFailed, match=r"Not ready in 0\.2 s: no answer: .*refused"):
        ControlPlane.start(timeout=0.2)
    assert list(own_temporary_directory.iterdir()) == []


def test_a_program_that_cannot_be_run_is_told(assets: Path, own_temporary_directory: Path) -> None:
    """A binary for another machine, say."""
    executable(assets / "etcd", "neither a script nor a program")

    with pytest.raises(StartFailed, match=f"Could not start {re.escape(str(assets / 'etcd'))}: "):
        ControlPlane.start()
    assert list(own_temporary_directory.iterdir()) == []


def test_a_supervisor_that_cannot_be_started_leaves_nothing(
    assets: Path, own_temporary_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine out of processes, say: the system's error, and no directory."""
    monkeypatch.setattr("sys.executable", "/nowhere/python")

    with pytest.raises(FileNotFoundError):
        ControlPlane.start()
    assert list(own_temporary_directory.iterdir()) == []


def test_too_long_a_temporary_directory_is_told(assets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux bounds the paths of sockets; the error says what to change."""
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))

    with pytest.raises(StartFailed, match=r"too long a path.*a shorter TMPDIR"):
        ControlPlane.start()
    assert list(deep.iterdir()) == []


def test_a_reused_pid_is_no_api_server(own: ControlPlane, bystander: subprocess.Popen[bytes]) -> None:
    """Stopping what ended by itself touches no process, whatever has its number now."""
    ended = own.processes["kube-apiserver"]
    ended.end(60)

    own.stop_apiserver()
    own.start_apiserver()
    running = ProcessIdentity.of(bystander.pid)
    assert running is not None
    assert running.alive
