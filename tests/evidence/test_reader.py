"""The read-only client: GET, one namespace, a short list of resources."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from praxis.controlplane import ControlPlane
from praxis.errors import Refused, RetryLater
from praxis.evidence import reader
from praxis.evidence.contract import Scope
from praxis.evidence.reader import READABLE, ReadOnlyKube
from praxis.evidence.toolbox import EvidenceToolbox
from praxis.kube import Kube
from praxis.machine import Phase
from tests import builders
from tests.evidence.conftest import READER, Namespace

pytestmark = pytest.mark.controlplane


@pytest.mark.parametrize(
    "resource", ["secrets", "configmaps", "serviceaccounts", "incidents", "pods/exec", "../secrets", "", "Pods"]
)
async def test_refuses_what_is_not_evidence(plane: ControlPlane, scope: Scope, resource: str) -> None:
    """Secrets, and all that is not listed, also for a connection that could read everything."""
    async with await Kube.connect(plane.admin_kubeconfig) as admin:
        with pytest.raises(Refused, match="not read as evidence"):
            await ReadOnlyKube(admin).list(scope, resource)


def test_nothing_that_is_read_holds_the_values_of_secrets() -> None:
    """The list, literally: whoever adds to it must change this too."""
    assert set(READABLE) == {"pods", "events", "deployments", "statefulsets", "replicasets", "daemonsets"}


def test_offers_no_verb_but_reading() -> None:
    """No method writes, and none takes a namespace or a path."""
    public = {name for name, _ in inspect.getmembers(ReadOnlyKube, inspect.isfunction) if not name.startswith("_")}
    assert public == {"list", "log"}
    for name in public:
        parameters = inspect.signature(getattr(ReadOnlyKube, name)).parameters
        assert not {"namespace", "path", "method"} & set(parameters)


async def test_an_incident_without_namespace_reads_nothing(kube: Kube) -> None:
    """An empty namespace would mean all of them."""
    scope = Scope(incident=builders.incident(Phase.TRIAGED, namespace=""), targets=())
    with pytest.raises(Refused, match="no namespace"):
        await ReadOnlyKube(kube).list(scope, "pods")


async def test_a_namespace_cannot_lead_elsewhere(kube: Kube) -> None:
    """Its name is quoted into the path."""
    scope = Scope(incident=builders.incident(Phase.TRIAGED, namespace="x/../../secrets"), targets=())
    with pytest.raises(Refused):
        await ReadOnlyKube(kube).list(scope, "pods")


@pytest.fixture
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pages of two."""
    monkeypatch.setattr(reader, "PAGE", 2)
    monkeypatch.setattr(reader, "PAGES", 2)


@pytest.mark.usefixtures("short_pages")
@pytest.mark.parametrize(("count", "read"), [(3, 3), (4, 4), (5, 4)])
async def test_long_lists_are_read_page_by_page_up_to_a_bound(
    kube: Kube, namespace: Namespace, scope: Scope, count: int, read: int
) -> None:
    """Below, at and above two pages of two; above, the listing says that there was more."""
    for number in range(count):
        namespace.create("/api/v1", "pods", _pod(f"p{number}"))

    listing = await ReadOnlyKube(kube).list(scope, "pods")

    assert [each["metadata"]["name"] for each in listing.items] == [f"p{number}" for number in range(read)]
    assert listing.partial is (count > read)


async def test_an_unreachable_api_server_is_an_outage(no_cluster: ReadOnlyKube) -> None:
    """Raised as such here, an observation to the model."""
    scope = Scope(incident=builders.incident(Phase.TRIAGED), targets=())
    with pytest.raises(RetryLater):
        await no_cluster.list(scope, "pods")
    seen = await EvidenceToolbox(kube=no_cluster).call(scope, "list_pods", "{}")
    assert seen.excerpt.startswith("error: GET /api/v1/namespaces/shop/pods: ")


async def test_only_reading_reaches_the_api_server(
    plane: ControlPlane, toolbox: EvidenceToolbox, namespace: Namespace, scope: Scope
) -> None:
    """The audit log of the API server: every tool, each with nothing but get and list in the incident's namespace."""
    namespace.create("/api/v1", "pods", _pod("p"))
    for name, arguments in [
        ("list_events", "{}"),
        ("list_pods", "{}"),
        ("list_workloads", "{}"),
        ("pod_logs", '{"pod": "p"}'),
    ]:
        await toolbox.call(scope, name, arguments)

    entries = [json.loads(line) for line in plane.audit_log.read_text().splitlines()]
    mine = [each for each in entries if each["user"]["username"] == READER and _here(each, namespace.name)]
    assert {(each["verb"], each["objectRef"]["resource"], each["objectRef"].get("subresource")) for each in mine} == {
        ("list", "events", None),
        ("list", "pods", None),
        ("get", "pods", "log"),
        ("list", "deployments", None),
        ("list", "statefulsets", None),
        ("list", "daemonsets", None),
        ("list", "replicasets", None),
    }
    assert {each["verb"] for each in entries if each["user"]["username"] == READER} == {"list", "get"}


def _here(entry: dict[str, Any], namespace: str) -> bool:
    return entry.get("objectRef", {}).get("namespace") == namespace


def _pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "image": "x"}]},
    }
