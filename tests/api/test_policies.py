"""Every validation of every policy is needed: taken out of a running API server, an attempt passes that it refused.

The policies are installed on a control plane of its own, as one weakened policy lets everybody through.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from praxis.api import admission
from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.incident import Incident
from praxis.api.target import RemediationTarget
from praxis.controlplane import ControlPlane
from praxis.errors import Refused
from praxis.kube import resource_path
from tests import builders
from tests.api.conftest import NAMES, People, install_guards
from tests.api.lab import Document
from tests.api.test_admission import NAMESPACE_CONTROLLER, OPERATOR, OTHER_ROBOT, an_object, incident, path, statement

pytestmark = pytest.mark.controlplane

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
IN_FORCE_SECONDS = 60.0
"""For a changed policy to be in force; it takes a second or two."""
Attempt = Callable[[People], Awaitable[Any]]


async def deciding(people: People, kind: Any, who: str, as_: str, **changes: Any) -> None:
    """Somebody creates a decision in a name."""
    await (await people.almighty(who)).create(path(kind), statement(kind, as_, **changes))


async def patching(people: People, kind: Any, who: str, patch: Document, *subresource: str) -> None:
    """Somebody changes an object."""
    at = path(kind, await an_object(people, kind), *subresource)
    await (await people.almighty(who)).merge_patch(at, patch)


async def deleting(people: People, kind: Any, who: str, stored: Document) -> None:
    """Somebody deletes an object."""
    await (await people.almighty(who)).delete(path(kind, stored["metadata"]["name"]))


async def writing_signers(people: People, who: str) -> None:
    """Somebody says who may sign."""
    document = {"metadata": {"name": "praxis-allowed-signers"}, "data": {"allowed_signers": ""}}
    kube = await people.almighty(who)
    await kube.create(resource_path("/api/v1", "configmaps", NAMES.namespace), document)
    await kube.delete(resource_path("/api/v1", "configmaps", NAMES.namespace, "praxis-allowed-signers"))


async def opening(people: People) -> Document:
    """An incident with an open intent."""
    return await (await people.lab()).intent()


async def holding(people: People) -> Document:
    """A target that is held."""
    return await (await people.lab()).held()


async def declaring(people: People, who: str) -> None:
    """Somebody declares a target."""
    document = builders.manifest(builders.target())
    document["metadata"] = {"generateName": "target-"}
    await (await people.almighty(who)).create(path(RemediationTarget), document)


async def approving(people: People) -> Document:
    """A person's decision, unsigned."""
    name = await an_object(people, IncidentApproval)
    return {"metadata": {"name": name}}


KEPT = {"finalizers": ["example.com/keep"]}
OWNED = {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "gone"}]}
ATTEMPTS: dict[tuple[str, int], Attempt] = {
    ("praxis-approvals-by-people", 0): lambda p: deciding(p, IncidentApproval, OTHER_ROBOT, OTHER_ROBOT),
    ("praxis-approvals-by-people", 1): lambda p: deciding(p, IncidentApproval, "alice", "bob"),
    ("praxis-approvals-by-people", 2): lambda p: deciding(
        p, IncidentApproval, "alice", "alice", expires=timedelta(hours=25)
    ),
    ("praxis-reconciliations-by-people", 0): lambda p: deciding(p, IncidentReconciliation, OTHER_ROBOT, OTHER_ROBOT),
    ("praxis-reconciliations-by-people", 1): lambda p: deciding(p, IncidentReconciliation, "alice", "bob"),
    ("praxis-status-by-operator", 0): lambda p: patching(
        p, Incident, "admin", {"status": {"message": "a word"}}, "status"
    ),
    ("praxis-incidents-by-gateway", 0): lambda p: _creating_an_incident(p, OPERATOR),
    ("praxis-incidents-by-gateway", 1): lambda p: patching(p, Incident, OPERATOR, {"metadata": KEPT}),
    ("praxis-incidents-by-gateway", 2): lambda p: patching(p, Incident, OPERATOR, {"metadata": OWNED}),
    ("praxis-targets-by-admins", 0): lambda p: declaring(p, OPERATOR),
    ("praxis-open-intents-stay", 0): lambda p: _after(opening(p), lambda it: deleting(p, Incident, "admin", it)),
    ("praxis-held-targets-stay", 0): lambda p: _after(
        holding(p), lambda it: deleting(p, RemediationTarget, "admin", it)
    ),
    ("praxis-signers-by-admins", 0): lambda p: writing_signers(p, OTHER_ROBOT),
    ("praxis-decisions-stay", 0): lambda p: _after(
        approving(p), lambda it: deleting(p, IncidentApproval, OTHER_ROBOT, it)
    ),
    ("praxis-decisions-stay", 1): lambda p: patching(p, IncidentApproval, OTHER_ROBOT, {"metadata": KEPT}),
    ("praxis-decisions-stay", 2): lambda p: patching(p, IncidentApproval, OTHER_ROBOT, {"metadata": OWNED}),
}


async def _after(before: Awaitable[Document], then: Callable[[Document], Awaitable[None]]) -> None:
    await then(await before)


async def _creating_an_incident(people: People, who: str) -> None:
    await (await people.almighty(who)).create(path(Incident), incident())


def every_validation() -> list[tuple[str, int]]:
    """Each policy's validations."""
    documents = [each for each in admission.documents(NAMES) if each["kind"] == "ValidatingAdmissionPolicy"]
    return [
        (each["metadata"]["name"], index) for each in documents for index in range(len(each["spec"]["validations"]))
    ]


def test_every_validation_has_an_attempt() -> None:
    """Nothing is left out of the table below, and nothing in it is gone."""
    assert sorted(ATTEMPTS) == sorted(every_validation())
    assert NAMESPACE_CONTROLLER.startswith("system:serviceaccount:kube-system:")


@pytest.fixture(scope="module")
def weakened_plane() -> Iterator[ControlPlane]:
    """A control plane with everything installed, on which nobody else relies."""
    with ControlPlane.start() as plane:
        install_guards(plane)
        yield plane


@pytest.fixture
async def anybody(weakened_plane: ControlPlane) -> AsyncIterator[People]:
    """Anybody on it."""
    async with contextlib.AsyncExitStack() as stack:
        yield People(weakened_plane, stack)


@pytest.mark.parametrize(("policy", "index"), every_validation(), ids=str)
async def test_nothing_else_forbids(
    weakened_plane: ControlPlane,
    anybody: People,
    policy: str,
    index: int,
    record_property: Callable[[str, object], None],
) -> None:
    """With the validation, the attempt is forbidden; without it, it passes."""
    attempt = ATTEMPTS[policy, index]
    assert await forbidden(anybody, attempt), "it is not forbidden to begin with"
    whole = weakened_plane.request("GET", f"{POLICIES}/{policy}")["spec"]
    weak = copy.deepcopy(whole)
    weak["validations"][index]["expression"] = "true"
    replace(weakened_plane, policy, weak)
    try:
        await until(anybody, attempt, is_forbidden=False)
    finally:
        replace(weakened_plane, policy, whole)
    await until(anybody, attempt, is_forbidden=True)
    record_property("guard", f"{policy}: {whole['validations'][index]['expression']}")
    record_property("caught_by", f"tests/api/test_policies.py::test_nothing_else_forbids[{policy}-{index}]")


def replace(plane: ControlPlane, policy: str, spec: Document) -> None:
    """Give a policy another spec."""
    installed = plane.request("GET", f"{POLICIES}/{policy}")
    plane.request("PUT", f"{POLICIES}/{policy}", {**installed, "spec": spec})


async def until(people: People, attempt: Attempt, *, is_forbidden: bool) -> None:
    """Wait until what the policy says has come into force."""
    async with asyncio.timeout(IN_FORCE_SECONDS):
        while True:
            if await forbidden(people, attempt) is is_forbidden:
                return
            await asyncio.sleep(0.1)


async def forbidden(people: People, attempt: Attempt) -> bool:
    """Whether a policy refuses the attempt."""
    try:
        await attempt(people)
    except Refused as refusal:
        if refusal.status != 403:
            raise
        return True
    return False
