"""The list of those who may sign, on a real kube-apiserver: who may write it and take it away, whatever RBAC grants."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from praxis.api.base import GROUP
from praxis.controlplane import ControlPlane
from praxis.errors import Refused
from praxis.kube import resource_path
from tests.api.conftest import NAMES, NAMESPACE, People
from tests.api.lab import Document
from tests.api.test_admission import GARBAGE_COLLECTOR, NAMESPACE_CONTROLLER, ROBOTS, forbidden

pytestmark = pytest.mark.controlplane

RBAC_SECONDS = 30.0
"""For a binding to be in force; it takes a moment."""


def configmap(name: str | None = None) -> str:
    """The path of a ConfigMap, or of all, in the namespace of the installation."""
    return resource_path("/api/v1", "configmaps", NAMES.namespace, name)


def signers(name: str = "praxis-allowed-signers") -> Document:
    """A list of signers."""
    return {"metadata": {"name": name}, "data": {"allowed_signers": "alice ssh-ed25519 AAAA"}}


@pytest.fixture
async def listed(people: People) -> AsyncIterator[str]:
    """Where an admin's list of signers is, while it is there."""
    admin = await people.almighty("admin")
    at = configmap("praxis-allowed-signers")
    await admin.create(configmap(), signers())
    yield at
    with contextlib.suppress(Refused):
        await admin.delete(at)


@pytest.mark.parametrize("robot", [*ROBOTS, GARBAGE_COLLECTOR])
async def test_signers_stay(people: People, listed: str, robot: str) -> None:
    """A robot with every right of RBAC neither changes the list, nor deletes it, alone or with all ConfigMaps."""
    kube = await people.almighty(robot)
    said = f"in the whole cluster, which {robot} may not"
    assert said in await forbidden(kube.merge_patch(listed, {"data": {"allowed_signers": "mallory ssh-ed25519 AAAA"}}))
    assert said in await forbidden(kube.delete(listed))
    assert said in await forbidden(kube.delete(configmap()))
    assert (await kube.get(listed)).document["data"] == {"allowed_signers": "alice ssh-ed25519 AAAA"}


async def test_signers_go_with_their_namespace(people: People, listed: str) -> None:
    """The namespace controller deletes the list, as all the others, but does not write one."""
    controller = await people.almighty(NAMESPACE_CONTROLLER)
    await forbidden(controller.merge_patch(listed, {"data": {"allowed_signers": ""}}))
    await controller.delete(configmap())
    with pytest.raises(Refused) as refusal:
        await controller.get(listed)
    assert refusal.value.not_found
    await forbidden(controller.create(configmap(), signers()))


async def test_signers_are_not_for_the_admin_of_one_namespace(people: People, guarded: ControlPlane) -> None:
    """Who has every right there, but there only, lists nobody, and cannot give themselves the right."""
    namespace = f"--namespace={NAMES.namespace}"
    guarded.kubectl("create", "rolebinding", "nell", "--clusterrole=cluster-admin", "--user=nell", namespace)
    nell = await people.person("nell")
    try:
        await eventually(lambda: nell.create(configmap(), signers("nells")))
        said = "in the whole cluster, which nell may not"
        assert said in await forbidden(nell.create(configmap(), signers()))
        role = ("create", "role", "nell", "--verb=*", f"--resource=allowedsigners.{GROUP}", namespace)
        guarded.kubectl(*role, kubeconfig=guarded.kubeconfig("nell", []), check=False)
        assert said in await forbidden(nell.create(configmap(), signers()))
        await nell.delete(configmap("nells"))
    finally:
        guarded.kubectl("delete", "rolebinding", "nell", namespace)


async def test_signers_are_for_who_may_update_them(people: People, guarded: ControlPlane) -> None:
    """Whoever has that right in the whole cluster writes the list; RBAC still has to let them write ConfigMaps."""
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "delete"]},
        {"apiGroups": [GROUP], "resources": ["allowedsigners"], "verbs": ["update"]},
    ]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "lists-signers"}}
    guarded.kubectl("apply", "-f", "-", stdin=json.dumps({**role, "rules": rules}))
    guarded.kubectl("create", "clusterrolebinding", "lists-signers", "--clusterrole=lists-signers", "--user=olga")
    olga = await people.person("olga")
    try:
        await eventually(lambda: olga.create(configmap(), signers()))
        await olga.delete(configmap("praxis-allowed-signers"))
    finally:
        guarded.kubectl("delete", "clusterrolebinding,clusterrole", "lists-signers")


async def eventually(attempt: Callable[[], Awaitable[Any]]) -> None:
    """Try until RBAC knows of the right."""
    deadline = time.monotonic() + RBAC_SECONDS
    while True:
        try:
            await attempt()
        except Refused as refusal:
            if refusal.status != 403 or time.monotonic() > deadline:
                raise
        else:
            return
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("name", ["kube-root-ca.crt", "praxis-allowed-signers-2"])
async def test_other_config_maps_are_not_concerned(people: People, name: str) -> None:
    """Robots write what else there is in that namespace, and one of that name in another."""
    robot = await people.almighty("system:serviceaccount:kube-system:root-ca-cert-publisher")
    with contextlib.suppress(Refused):
        await robot.delete(configmap(name))
    await robot.create(configmap(), signers(name))
    await robot.merge_patch(configmap(name), {"data": {"more": "yes"}})
    await robot.delete(configmap(name))
    elsewhere = resource_path("/api/v1", "configmaps", NAMESPACE, "praxis-allowed-signers")
    await robot.create(resource_path("/api/v1", "configmaps", NAMESPACE), signers())
    await robot.delete(elsewhere)
