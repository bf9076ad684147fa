"""The policies on a real kube-apiserver: who may do what, whatever RBAC grants.

`people.almighty(name)` authenticates under that very name with every right of RBAC, so that only a policy refuses;
`people.robot` and `people.operator` hold real tokens of real service accounts.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import API_VERSION, GROUP, VERSION, Resource
from praxis.api.incident import Incident
from praxis.api.target import RemediationTarget
from praxis.controlplane import ControlPlane
from praxis.errors import Refused
from praxis.kube import Kube, resource_path
from praxis.machine import TRANSITIONS
from tests import builders
from tests.api.conftest import NAMES, NAMESPACE, People
from tests.api.lab import REAL, TIME, Document, Lab, holder, step
from tests.api.test_rules import legal

pytestmark = pytest.mark.controlplane

OPERATOR = "system:serviceaccount:praxis-system:praxis-operator"
GATEWAY = "system:serviceaccount:praxis-system:praxis-gateway"
OTHER_ROBOT = "system:serviceaccount:argocd:argocd-application-controller"
NAMESPACE_CONTROLLER = "system:serviceaccount:kube-system:namespace-controller"
GARBAGE_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
ROBOTS = [OPERATOR, GATEWAY, OTHER_ROBOT, "system:node:worker-1", "system:kube-controller-manager"]
ARMOUR = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"
"""What looks signed to the API server."""
KINDS = [Incident, IncidentApproval, IncidentReconciliation, RemediationTarget]
EDGES = [(str(source), str(each)) for source, following in TRANSITIONS.items() for each in following]
PERSONAL = [(IncidentApproval, "approver", "approve"), (IncidentReconciliation, "observer", "reconcile")]


def named(each: Any) -> str:
    """A kind, or anything else, in the id of a test."""
    return str(getattr(each, "kind", each))


def path(kind: type[Resource], name: str | None = None, subresource: str | None = None) -> str:
    """The path of an object in the namespace of these tests."""
    return resource_path(f"/apis/{GROUP}/{VERSION}", kind.plural, NAMESPACE, name, subresource)


def statement(kind: type[Resource], username: str, *, expires: timedelta = timedelta(hours=1)) -> Document:
    """An approval or a reconciliation in somebody's name."""
    made = builders.approval(username) if kind is IncidentApproval else builders.reconciliation(username)
    document = builders.manifest(made)
    document["metadata"] = {"generateName": "statement-", "namespace": NAMESPACE}
    if kind is IncidentApproval:
        document["spec"]["expiresAt"] = (datetime.now(UTC) + expires).strftime("%Y-%m-%dT%H:%M:%SZ")
    return document


async def forbidden(attempt: Any) -> str:
    """What the API server says when it forbids the attempt."""
    with pytest.raises(Refused) as refusal:
        await attempt
    assert refusal.value.status == 403
    return str(refusal.value)


# ---- people approve, as themselves ----


@pytest.mark.parametrize(("kind", "field", "verb"), PERSONAL, ids=named)
async def test_person_in_the_group(people: People, kind: type[Resource], field: str, verb: str) -> None:
    """A person of the group praxis-approvers decides as themselves."""
    alice = await people.person("alice", "praxis-approvers")
    stored = (await alice.create(path(kind), statement(kind, "alice"))).document
    assert stored["spec"][field]["username"] == "alice"


@pytest.mark.parametrize(("kind", "field", "verb"), PERSONAL, ids=named)
async def test_person_outside_the_group(people: People, kind: type[Resource], field: str, verb: str) -> None:
    """A person outside the group cannot decide."""
    bob = await people.person("bob")
    said = await forbidden(bob.create(path(kind), statement(kind, "bob")))
    assert f'User "bob" cannot create resource "{kind.plural}"' in said


@pytest.mark.parametrize(("kind", "field", "verb"), PERSONAL, ids=named)
async def test_in_another_name(people: People, kind: type[Resource], field: str, verb: str) -> None:
    """Nobody decides in another's name."""
    alice = await people.person("alice", "praxis-approvers")
    said = await forbidden(alice.create(path(kind), statement(kind, "bob")))
    assert f"spec.{field}.username must be you: alice" in said


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize(("kind", "field", "verb"), PERSONAL, ids=named)
async def test_almighty_robot(people: People, kind: type[Resource], field: str, verb: str, robot: str) -> None:
    """A robot does not decide, though RBAC lets it do anything; neither as itself nor in a person's name."""
    kube = await people.almighty(robot)
    for username in (robot, "alice"):
        said = await forbidden(kube.create(path(kind), statement(kind, username)))
        assert f"only people {verb}; {robot} is not a person" in said


@pytest.mark.parametrize(("kind", "field", "verb"), PERSONAL, ids=named)
async def test_own_accounts(people: People, kind: type[Resource], field: str, verb: str) -> None:
    """The operator's and the gateway's own tokens lack the right, before any policy is asked."""
    for kube, name in ((await people.operator(), OPERATOR), (await people.gateway(), GATEWAY)):
        said = await forbidden(kube.create(path(kind), statement(kind, name)))
        assert f'User "{name}" cannot create resource "{kind.plural}"' in said


async def test_service_account_that_rbac_lets_approve(people: People, guarded: ControlPlane) -> None:
    """A service account that an admin put into the approver role is refused by the policy."""
    guarded.create_service_account("robots", "deployer")
    guarded.kubectl(
        "create", "clusterrolebinding", "robots-approve", "--clusterrole=praxis-approver",
        "--serviceaccount=robots:deployer", check=False,
    )  # fmt: skip
    robot = await people.robot("robots", "deployer")
    said = await forbidden(robot.create(path(IncidentApproval), statement(IncidentApproval, "alice")))
    assert "only people approve; system:serviceaccount:robots:deployer is not a person" in said


@pytest.mark.parametrize(
    "expires",
    [timedelta(days=-1), timedelta(seconds=-30), timedelta(hours=24, seconds=30), timedelta(days=365)],
    ids=str,
)
async def test_expiry_out_of_bounds(people: People, expires: timedelta) -> None:
    """An approval that expired, or that would count for more than a day, is refused."""
    alice = await people.person("alice", "praxis-approvers")
    document = statement(IncidentApproval, "alice", expires=expires)
    said = await forbidden(alice.create(path(IncidentApproval), document))
    assert "spec.expiresAt must lie within 24 hours from now" in said


@pytest.mark.parametrize("expires", [timedelta(seconds=30), timedelta(hours=23, minutes=59, seconds=30)], ids=str)
async def test_expiry_within_bounds(people: People, expires: timedelta) -> None:
    """An approval may count for any time up to a day."""
    alice = await people.person("alice", "praxis-approvers")
    await alice.create(path(IncidentApproval), statement(IncidentApproval, "alice", expires=expires))


async def test_labels_of_an_approval(people: People) -> None:
    """An admin may label an approval that somebody else gave; what it says stays."""
    alice, admin = await people.person("alice", "praxis-approvers"), await people.almighty("admin")
    stored = (await alice.create(path(IncidentApproval), statement(IncidentApproval, "alice"))).document
    at = path(IncidentApproval, stored["metadata"]["name"])
    labelled = (await admin.merge_patch(at, {"metadata": {"labels": {"team": "shop"}}})).document
    assert labelled["spec"] == stored["spec"]
    with pytest.raises(Refused, match="an approval never changes"):
        await admin.merge_patch(at, {"spec": {"approver": {"username": "admin"}}})


# ---- status is the operator's ----


async def an_object(people: People, kind: type[Resource]) -> str:
    """The name of a new object of a kind."""
    lab = await people.lab()
    if kind is Incident:
        return str((await lab.new())["metadata"]["name"])
    if kind is RemediationTarget:
        return str((await lab.target())["metadata"]["name"])
    alice = await people.person("alice", "praxis-approvers")
    return str((await alice.create(path(kind), statement(kind, "alice"))).document["metadata"]["name"])


STATUS: dict[type[Resource], Document] = {
    Incident: {"message": "a word"},
    IncidentApproval: {"verdict": "Refused", "reason": "Expired", "message": "too late"},
    IncidentReconciliation: {"verdict": "Refused", "reason": "IntentMismatch", "message": "another intent"},
    RemediationTarget: {"holder": holder()},
}


@pytest.mark.parametrize("kind", KINDS, ids=named)
async def test_status_by_the_operator(people: People, kind: type[Resource]) -> None:
    """The operator's own token writes the status of every kind."""
    at = path(kind, await an_object(people, kind), "status")
    stored = (await (await people.operator()).merge_patch(at, {"status": STATUS[kind]})).document
    assert STATUS[kind].items() <= stored["status"].items()


@pytest.mark.parametrize("name", ["admin", "alice", *(each for each in ROBOTS if each != OPERATOR)])
@pytest.mark.parametrize("kind", KINDS, ids=named)
async def test_status_by_anybody_else(people: People, kind: type[Resource], name: str) -> None:
    """Nobody else writes status, though RBAC lets them do anything."""
    at = path(kind, await an_object(people, kind), "status")
    said = await forbidden((await people.almighty(name)).merge_patch(at, {"status": STATUS[kind]}))
    assert f"only the operator writes status; {name} does not" in said


@pytest.mark.parametrize(("source", "destination"), EDGES, ids=named)
async def test_edge_by_the_operator(people: People, source: str, destination: str) -> None:
    """The operator's own token takes every edge of the table, on incidents of the gateway, with every policy bound."""
    stored = await legal(await people.lab(await people.gateway()), source, destination)
    assert stored["status"]["phase"] == destination


async def test_whole_life_by_the_operator(people: People) -> None:
    """A step of each kind of outcome is stored by the operator's own token."""
    lab = await people.lab(await people.gateway())
    for result in ("Applied", "NotApplied", "Unknown"):
        stored = await lab.outcome(result)
        assert [each["outcome"]["result"] for each in stored["status"]["steps"]] == [result, "DryRun"]


async def test_scale_is_no_way_in(people: People) -> None:
    """There is no other subresource through which a status or a spec could be written."""
    admin = await people.almighty("admin")
    for kind in KINDS:
        name = await an_object(people, kind)
        with pytest.raises(Refused) as refusal:
            await admin.merge_patch(path(kind, name, "scale"), {"spec": {"replicas": 2}})
        assert refusal.value.status == 404


# ---- what happened is said by the gateway and by people ----


def incident() -> Document:
    """A new incident."""
    document = builders.manifest(builders.history(builders.Phase.NEW)[0])
    document["metadata"] = {"generateName": "incident-", "namespace": NAMESPACE}
    return document


async def test_gateway_and_people_write_the_spec(people: People) -> None:
    """The gateway's own token and a person create an incident and change its spec."""
    for kube in (await people.gateway(), await people.almighty("admin")):
        name = (await kube.create(path(Incident), incident())).document["metadata"]["name"]
        stored = (await kube.merge_patch(path(Incident, name), {"spec": {"summary": "again"}})).document
        assert (stored["spec"]["summary"], stored["metadata"]["generation"]) == ("again", 2)


@pytest.mark.parametrize("robot", [each for each in ROBOTS if each != GATEWAY])
async def test_other_robots_do_not_write_the_spec(people: People, robot: str) -> None:
    """No other robot creates an incident or changes its spec: not the operator either."""
    kube = await people.almighty(robot)
    said = f"of robots only the gateway writes the spec of an Incident; {robot} does not"
    assert said in await forbidden(kube.create(path(Incident), incident()))
    name = await an_object(people, Incident)
    assert said in await forbidden(kube.merge_patch(path(Incident, name), {"spec": {"summary": "nothing to see"}}))
    await kube.merge_patch(path(Incident, name), {"metadata": {"labels": {"seen": "true"}}})


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize(
    "metadata",
    [
        {"finalizers": ["example.com/keep"]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": NAMESPACE, "uid": "gone"}]},
    ],
    ids=["finalizers", "ownerReferences"],
)
@pytest.mark.parametrize(
    ("kind", "what"),
    [(Incident, "an Incident"), (IncidentApproval, "a decision"), (IncidentReconciliation, "a decision")],
    ids=named,
)
async def test_robots_neither_keep_nor_collect(
    people: People, robot: str, metadata: Document, kind: type[Resource], what: str
) -> None:
    """No robot makes an incident or a decision undeletable, or has it deleted by the garbage collector."""
    kube = await people.almighty(robot)
    name = await an_object(people, kind)
    said = f"robots add no {next(iter(metadata))} to {what}"
    assert said in await forbidden(kube.merge_patch(path(kind, name), {"metadata": metadata}))


async def test_controllers_remove_finalizers(people: People) -> None:
    """Kubernetes' own controllers may take away a finalizer that a person set."""
    admin, collector = await people.almighty("admin"), await people.almighty(NAMESPACE_CONTROLLER)
    at = path(Incident, await an_object(people, Incident))
    await admin.merge_patch(at, {"metadata": {"finalizers": ["example.com/keep"]}})
    stored = (await collector.merge_patch(at, {"metadata": {"finalizers": None}})).document
    assert "finalizers" not in stored["metadata"]


async def test_gateway_deletes_nothing(people: People) -> None:
    """The gateway's own token deletes no incident, nor does the operator's."""
    name = await an_object(people, Incident)
    for kube in (await people.gateway(), await people.operator()):
        assert "cannot delete resource" in await forbidden(kube.delete(path(Incident, name)))


@pytest.mark.parametrize("robot", [OPERATOR, GATEWAY])
async def test_targets_are_declared_by_others(people: People, robot: str) -> None:
    """What acts, and what listens, declare no target, though RBAC lets them do anything."""
    kube = await people.almighty(robot)
    document = builders.manifest(builders.target())
    document["metadata"] = {"generateName": "target-", "namespace": NAMESPACE}
    said = f"targets are declared by admins, not by {robot}"
    assert said in await forbidden(kube.create(path(RemediationTarget), document))
    name = await an_object(people, RemediationTarget)
    at = path(RemediationTarget, name)
    assert said in await forbidden(kube.merge_patch(at, {"metadata": {"finalizers": ["example.com/keep"]}}))


# ---- what must not go ----


async def gone(kube: Kube, kind: type[Resource], stored: Document) -> bool:
    """Whether an object can be deleted."""
    at = path(kind, stored["metadata"]["name"])
    await kube.delete(at)
    with pytest.raises(Refused) as refusal:
        await kube.get(at)
    return refusal.value.not_found


async def test_open_intent_stays(people: People) -> None:
    """An incident with an open intent cannot be deleted by anybody; with its outcome stored it can."""
    lab = await people.lab()
    stored = await lab.intent()
    at = path(Incident, stored["metadata"]["name"])
    for name in ("admin", NAMESPACE_CONTROLLER):
        kube = await people.almighty(name)
        assert "an intent is open: its outcome is not known yet" in await forbidden(kube.delete(at))
    await lab.put(stored, steps=[step(REAL, "Unknown")])
    assert await gone(await people.almighty("admin"), Incident, stored)


async def test_incident_without_intent_goes_at_once(people: People) -> None:
    """An incident without an open intent is deleted at once: nobody holds it back."""
    lab, admin = await people.lab(), await people.almighty("admin")
    for stored in (await lab.new(), await lab.executing(), await lab.dry_only()):
        assert await gone(admin, Incident, stored)


async def test_open_intent_survives_the_deletion_of_all(people: People, guarded: ControlPlane) -> None:
    """Deleting every incident of a namespace spares the one with an open intent."""
    guarded.kubectl("create", "namespace", "sweep", check=False)
    lab = Lab(author=await people.almighty("admin"), operator=await people.operator(), namespace="sweep")
    kept = await lab.intent()
    await forbidden((await people.almighty("admin")).delete(lab.path(Incident)))
    listed = (await (await people.operator()).get(lab.path(Incident))).document["items"]
    assert [each["metadata"]["name"] for each in listed] == [kept["metadata"]["name"]]


async def test_held_target_stays(people: People) -> None:
    """A held target cannot be deleted, even by an admin; a released one can."""
    lab, admin = await people.lab(), await people.almighty("admin")
    stored = await lab.held()
    at = path(RemediationTarget, stored["metadata"]["name"])
    assert f"held by incident {builders.INCIDENT}; delete the target once that is over" in await forbidden(
        admin.delete(at)
    )
    await lab.write_status(stored, {}, RemediationTarget)
    assert await gone(admin, RemediationTarget, stored)


async def test_held_target_goes_with_its_namespace(people: People) -> None:
    """The namespace controller deletes a held target: a namespace must be able to go."""
    stored = await (await people.lab()).held()
    assert await gone(await people.almighty(NAMESPACE_CONTROLLER), RemediationTarget, stored)


def test_names_of_these_tests() -> None:
    """The literal names above are those of the default installation."""
    assert (NAMES.operator, NAMES.gateway) == (OPERATOR, GATEWAY)
    assert (API_VERSION, TIME[:4]) == ("praxis.kopachelli.dev/v1alpha1", "2026")
