"""After whole lives full of secrets: they are nowhere but where their authors put them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from praxis.machine import Phase
from tests.secrets import etcd
from tests.secrets.corpus import Planted, found, some
from tests.secrets.life import House

pytestmark = [pytest.mark.e2e, pytest.mark.controlplane]

AUTHORED = (
    "/registry/events/shop/planted-",
    "/registry/pods/shop/planted-",
)
"""Keys that the test itself wrote, and PRAXIS never writes: its own Events and its own pods."""
SPOKEN = (
    "/registry/praxis.kopachelli.dev/incidentapprovals/",
    "/registry/praxis.kopachelli.dev/incidentreconciliations/",
)
"""Objects whose spec a person wrote, and whose status PRAXIS writes: the spec alone is not searched."""


def searched(stored: etcd.Stored) -> bytes:
    """The part of a value that PRAXIS may have written."""
    if stored.key.startswith(AUTHORED):
        return b""
    if stored.key.startswith(SPOKEN) and stored.value:
        document = json.loads(stored.value)
        del document["spec"]
        return json.dumps(document).encode()
    return stored.value


def leaks(planted: Iterable[Planted], where: str, content: bytes) -> list[str]:
    """A line for each secret that is there."""
    return [f"{where}: {each.kind} of {each.place}" for each in found(list(planted), content)]


def test_the_lives_went_where_they_should(house: House) -> None:
    """Every source was read, every kind of end was reached: what is searched had the occasion to leak."""
    phases = [each.status.phase for each in house.incidents]
    assert phases == [Phase.RESOLVED, Phase.CLOSED, Phase.RECONCILIATION_REQUIRED, Phase.FAILED]
    excerpts = {each.tool for incident in house.incidents for each in incident.status.evidence if each.excerpt}
    assert {"pod_logs", "list_events", "list_pods", "function_status", "prometheus_query"} <= excerpts
    shown = "".join(each.excerpt for incident in house.incidents for each in incident.status.evidence)
    assert shown.count("[REDACTED:") > 50
    assert len(house.kubelet.asked) >= 4
    assert len(house.prometheus.asked) >= 4


def test_nothing_is_in_etcd(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    """Not in what is stored now, nor in anything that was stored since etcd's last compaction."""
    everything = [*etcd.stored(house.stack.plane.etcd_endpoint), *etcd.history(house.stack.plane.etcd_endpoint)]
    seen = {(each.key, each.value): each for each in everything}
    found_there = [line for each in seen.values() for line in leaks(house.planted, each.key, searched(each))]
    size = sum(len(each.value) for each in seen.values())
    with capsys.disabled():
        print(
            f"\n{len(house.planted)} secrets, {len(seen)} values under {len({each.key for each in everything})} keys, "
            f"{size} bytes of etcd, {len(found_there)} found"
        )
    assert found_there == []


def test_nothing_is_in_logs_metrics_or_files(house: House) -> None:
    """Of operator and gateway; and neither in the memory nor in the flight recorder, nor in their write-ahead logs."""
    stores = [house.stack.directory / name for name in ("memory.db", "recorder.db")]
    files = [house.operator.log, house.gateway.log, *stores, *(Path(f"{store}-wal") for store in stores)]
    places = {path.name: path.read_bytes() for path in files if path.exists()} | {
        f"metrics of {name}": text for name, text in house.metrics.items()
    }
    assert {"operator.log", "gateway.log", "memory.db", "recorder.db"} <= places.keys()
    assert {"metrics of operator", "metrics of gateway"} <= places.keys()
    assert all(places.values())
    assert [line for name, content in places.items() for line in leaks(house.planted, name, content)] == []


def test_nothing_is_in_requests_to_the_model(house: House) -> None:
    """Whatever was asked, in whatever turn, with the model's own answers quoted back to it."""
    requests = list(house.model.requests)
    assert len(requests) > 20
    bodies = [json.dumps(each.body, ensure_ascii=False).encode() for each in requests]
    lines = [line for number, body in enumerate(bodies) for line in leaks(house.planted, f"request {number}", body)]
    assert lines == []


def test_the_search_finds_what_is_there(house: House) -> None:
    """Secrets that a ConfigMap, a status, an Event and a log do hold are found, each of them, under its key."""
    planted = some("the positive control", 200)
    plane = house.stack.plane
    texts = {f"s{number}": each.text for number, each in enumerate(planted)}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "control"}, "data": texts}
    plane.request("POST", "/api/v1/namespaces/default/configmaps", document)
    try:
        [now] = [each for each in etcd.stored(plane.etcd_endpoint) if each.key.endswith("/configmaps/default/control")]
        assert found(planted, searched(now)) == list(planted)
    finally:
        plane.request("DELETE", "/api/v1/namespaces/default/configmaps/control")
    then = [each for each in etcd.history(plane.etcd_endpoint) if each.key.endswith("/configmaps/default/control")]
    assert found(planted, b"".join(map(searched, then))) == list(planted)
    authored = [each for each in etcd.stored(plane.etcd_endpoint) if each.key.startswith((*AUTHORED, *SPOKEN))]
    assert len(found(house.planted, b"".join(each.value for each in authored))) > 100
