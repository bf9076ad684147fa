"""What of the watch is news: what others changed, not what the operator wrote itself."""

from __future__ import annotations

import asyncio
from typing import Any

from prometheus_client import CollectorRegistry

from praxis.clock import SystemClock
from praxis.controller import watch
from praxis.controller.canary import Canary
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.queue import Key, WorkQueue
from praxis.controller.watch import News
from praxis.settings import Deadlines


def event(type_: str | None = "MODIFIED", *, uid: str = "u1", generation: int = 1, **status: Any) -> dict[str, Any]:
    """A watch event of an object called shop/memory."""
    metadata = {"namespace": "shop", "name": "memory", "uid": uid, "generation": generation}
    return {"type": type_, "object": {"metadata": metadata, "status": status}}


def test_a_status_that_changes_is_no_news() -> None:
    """What is written down of a failure does not wake the incident up that is backing off from it."""
    news = News()
    assert news.told("incidents", event("ADDED"))
    assert not news.told("incidents", event(conditions=[{"type": "Stalled", "message": "request 1"}]))
    assert not news.told("incidents", event(None, conditions=[{"type": "Stalled", "message": "request 2"}]))


def test_a_spec_that_changes_is_news_once() -> None:
    """An alert that was merged in, or a deletion that waits, raises the generation."""
    news = News()
    news.told("incidents", event("ADDED"))
    assert news.told("incidents", event(generation=2))
    assert not news.told("incidents", event(generation=2))


def test_an_object_of_the_same_name_is_news() -> None:
    """Deleted and created anew, seen or not, it is another object; so is one of another kind."""
    news = News()
    news.told("incidents", event("ADDED"))
    assert news.told("incidentapprovals", event("ADDED"))
    assert news.told("incidents", event(uid="u2"))
    assert news.told("incidents", event("DELETED", uid="u2"))
    assert news.told("incidents", event("ADDED", uid="u2"))


def test_a_target_that_is_held_or_free_is_news_and_another_claim_is_not() -> None:
    """Whoever waits for the target is woken up when it is released; an incident does not wake itself by claiming."""
    news = News()
    assert news.told("remediationtargets", event("ADDED"))
    assert news.told("remediationtargets", event(holder={"intentId": "a"}))
    assert not news.told("remediationtargets", event(holder={"intentId": "b"}))
    assert news.told("remediationtargets", event())


async def test_what_a_watch_tells_after_its_end_is_dropped() -> None:
    """One that was left behind tells an older version late: the canary must not take it for the newest."""
    clock, metered = SystemClock(), CollectorRegistry()
    incidents, queue = Incidents(clock=clock, deadlines=Deadlines()), WorkQueue(clock=clock)
    canary = Canary(cluster=None, clock=clock, registry=metered, deadline=120.0)  # type: ignore[arg-type]
    delivery = watch.Delivery(
        queue=queue,
        incidents=incidents,
        metrics=Metrics(registry=metered, incidents=incidents, queue=queue),
        canary=canary,
        clock=clock,
    )
    over = asyncio.Event()
    handlers = watch.registry(kube=None, delivery=delivery, over=over)  # type: ignore[arg-type]
    (target,) = [each.fn for each in handlers._watching._handlers if each.id.endswith(".target")]

    async def told(version: str) -> str:
        told = event()
        told["object"]["metadata"]["resourceVersion"] = version
        await target(event=told, namespace="shop")  # type: ignore[arg-type, call-arg, misc]
        return canary._watches["remediationtargets"].told[Key("shop", "memory")][0]

    assert await told("1") == "1"
    assert await told("2") == "2"
    over.set()
    assert await told("1") == "2"
