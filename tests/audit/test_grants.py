"""Least privilege, measured: what the shipped roles grant is what their holders are seen to use, verb by verb."""

from __future__ import annotations

from typing import Any

import pytest

from praxis.api import rbac
from praxis.api.accounts import Names
from praxis.demo.stack import NAMES
from tests.audit.lives import GITOPS, Done

pytestmark = [pytest.mark.e2e, pytest.mark.controlplane]


def granted() -> dict[str, set[str]]:
    """What each shipped role, the opt-in one too, grants: `verb resource.group`."""
    found: dict[str, set[str]] = {}
    for document in [*rbac.documents(NAMES), *rbac.signing(Names(signing_accounts=(GITOPS,)))]:
        for rule in document.get("rules", ()):
            found.setdefault(document["metadata"]["name"], set()).update(_of(rule))
    return found


def _of(rule: dict[str, Any]) -> set[str]:
    return {
        f"{verb} " + ".".join(filter(None, (resource, group)))
        for verb in rule["verbs"]
        for resource in rule["resources"]
        for group in rule["apiGroups"]
    }


@pytest.mark.parametrize("role", sorted(granted()))
def test_every_granted_verb_is_used(done: Done, role: str) -> None:
    """The audit log of whole lives shows each of them: a verb that nobody needs is taken out of the role."""
    assert sorted(granted()[role] - done.used().get(role, set())) == []


def test_nothing_is_asked_for_in_vain(done: Done) -> None:
    """The accounts of operator and gateway ask for nothing that their roles do not give them."""
    accounts = {NAMES.operator, f"system:serviceaccount:{NAMES.namespace}:{NAMES.gateway_account}"}
    refused = [
        (event["verb"], event["requestURI"])
        for event in done.events()
        if event["user"]["username"] in accounts
        and event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    ]
    assert refused == []
