"""Consistent reads as the operator makes them, on a real API server; what is amiss with it comes by proxy."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from praxis.api.target import Holder
from praxis.errors import NeedsPerson, Superseded
from praxis.kube import resource_path
from praxis.signing.signers import AllowedSigners
from tests.controller.conftest import NAMES, Stage
from tests.proxy import Exchange, Fault

pytestmark = pytest.mark.controlplane

POLICY = "validatingadmissionpolicies", "praxis-open-intents-stay"
BINDING = "validatingadmissionpolicybindings", "praxis-open-intents-stay"
CRD = "customresourcedefinitions", "incidents.praxis.kopachelli.dev"


def altered(name: str, change: Callable[[dict[str, Any]], object] | None) -> Fault:
    """The object is in the list, and something about it is otherwise; or it is not in the list."""

    async def fault(exchange: Exchange) -> web.Response:
        status, body = await exchange.forward()
        listed = json.loads(body)
        [item] = [each for each in listed["items"] if each["metadata"]["name"] == name]
        if change is None:
            listed["items"].remove(item)
        else:
            change(item)
        return web.json_response(listed, status=status)

    return fault


async def test_guards(stage: Stage) -> None:
    """Four CRDs, nine policies and nine bindings, each by uid and generation."""
    guards = await stage.cluster.guards()
    assert stage.proxy.count("GET", "labelSelector=app.kubernetes.io") == 3
    kinds = [each.kind for each in guards]
    assert [kinds.count(kind) for kind in sorted(set(kinds))] == [4, 9, 9]
    assert all(each.uid and each.generation >= 1 for each in guards)


@pytest.mark.parametrize(("plural", "name"), [POLICY, BINDING, CRD])
async def test_an_absent_guard(stage: Stage, plural: str, name: str) -> None:
    """What is not installed guards nothing, and says so by name."""
    stage.proxy.spoil(altered(name, None), method="GET", path=f"/{plural}")
    with pytest.raises(NeedsPerson, match=f"{name} is not installed, or has lost its label app.kubernetes.io") as error:
        await stage.cluster.guards()
    assert error.value.reason == "InstallationDiffers"


@pytest.mark.parametrize(
    ("guard", "change", "says"),
    [
        (POLICY, lambda it: it["spec"].update(failurePolicy="Ignore"), "spec.failurePolicy is 'Ignore', not 'Fail'"),
        (BINDING, lambda it: it["spec"].update(validationActions=["Audit"]), "'Audit', not 'Deny'"),
        (CRD, lambda it: it["metadata"].update(deletionTimestamp="2026-12-01T00:00:00Z"), "is being deleted"),
    ],
)
async def test_a_changed_guard(
    stage: Stage, guard: tuple[str, str], change: Callable[[dict[str, Any]], object], says: str
) -> None:
    """One that says anything else than the operator was built with is named, with the difference."""
    plural, name = guard
    stage.proxy.spoil(altered(name, change), method="GET", path=f"/{plural}")
    with pytest.raises(NeedsPerson, match="the installation is not what this operator was built with") as error:
        await stage.cluster.guards()
    assert says in str(error.value)


async def test_a_claim_is_compare_and_swap(stage: Stage) -> None:
    """Of two that read the same target one claims it; the other learns that it was too late."""
    target = await stage.declare()
    first, second = (
        Holder(
            incident_uid=f"uid-{name}",
            incident_name=name,
            revision=1,
            intent_id=f"intent-of-{name}",
            writer="w",
            claimed_at="2026-12-01T00:00:00Z",
        )
        for name in ("first", "second")
    )
    claimed = await stage.cluster.claim(target, first)
    assert claimed.status.holder == first
    with pytest.raises(Superseded, match="changed since it was read"):
        await stage.cluster.claim(target, second)
    with pytest.raises(Superseded, match="changed since it was read"):
        await stage.cluster.release(target)
    [stored] = await stage.cluster.targets(stage.namespace)
    assert stored.status.holder == first
    await stage.cluster.release(claimed)
    [stored] = await stage.cluster.targets(stage.namespace)
    assert stored.status.holder is None


async def test_allowed_signers(stage: Stage) -> None:
    """None while the admins keep no list; then theirs, of which either part may be left out."""
    path = resource_path("/api/v1", "configmaps", NAMES.namespace, "praxis-allowed-signers")
    assert await stage.cluster.allowed_signers() is None
    document = {"metadata": {"name": "praxis-allowed-signers"}, "data": {"allowed_signers": "alice ssh-ed25519 A\n"}}
    await stage.admin.create(resource_path("/api/v1", "configmaps", NAMES.namespace), document)
    try:
        assert await stage.cluster.allowed_signers() == AllowedSigners("alice ssh-ed25519 A\n", "")
        await stage.admin.merge_patch(path, {"data": {"allowed_signers": None, "revoked_keys": "ssh-ed25519 A\n"}})
        assert await stage.cluster.allowed_signers() == AllowedSigners("", "ssh-ed25519 A\n")
        await stage.admin.merge_patch(path, {"data": None})
        assert await stage.cluster.allowed_signers() == AllowedSigners("", "")
    finally:
        await stage.admin.delete(path)
