"""Events: what is told, once, on the right object, and never at anybody's cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from praxis.api.reasons import Reason
from praxis.controller.events import WARNINGS, EventRecorder
from praxis.errors import AnswerLost, Refused, RetryLater
from praxis.kube import Document, Reply, resource_path
from praxis.machine import Phase
from tests import builders
from tests.controller.conftest import Stage
from tests.phases.world import HandClock, Time
from tests.proxy import answer, drop_before

NOTES: Sequence[tuple[int, int]] = [(1023, 1023), (1024, 1024), (1025, 1024)]


async def events(stage: Stage) -> list[dict[str, Any]]:
    """As stored."""
    path = resource_path("/apis/events.k8s.io/v1", "events", stage.namespace)
    return list((await stage.admin.get(path)).document["items"])


def recorder(stage: Stage) -> EventRecorder:
    return EventRecorder(kube=stage.operator, clock=stage.clock, instance="operator-0")


@pytest.mark.controlplane
async def test_an_event_is_told_on_its_object_and_twice_is_once(stage: Stage) -> None:
    """The same said again is the same Event; another time of the same reason is another one."""
    incident = await stage.incident(Phase.NEW)
    for once_per in ("head-1", "head-1", "head-2"):
        await recorder(stage).record(incident, "Classified", "MemoryLeak", once_per=once_per, action="Triaged")
    first, second = await events(stage)
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["regarding"] == {
        "apiVersion": "praxis.kopachelli.dev/v1alpha1",
        "kind": "Incident",
        "namespace": stage.namespace,
        "name": "inc-1",
        "uid": incident.metadata.uid,
    }
    said = {key: first[key] for key in ("type", "reason", "note", "action", "reportingController", "reportingInstance")}
    assert said == {
        "type": "Normal",
        "reason": "Classified",
        "note": "MemoryLeak",
        "action": "Triaged",
        "reportingController": "praxis.kopachelli.dev/operator",
        "reportingInstance": "operator-0",
    }


@pytest.mark.controlplane
@pytest.mark.parametrize("length", [199, 200, 201, 253], ids=["below", "at", "above", "longest"])
async def test_an_incident_with_any_name_has_events(stage: Stage, length: int) -> None:
    """Also where the cut falls on a dash or a dot, with which no name may end."""
    name = ("a" * 150 + "-" * 102)[: length - 1] + "a"
    incident = await stage.incident(Phase.NEW, name=name)
    await recorder(stage).record(incident, "Classified", "MemoryLeak", once_per="1", action="Triaged")
    assert len(await events(stage)) == 1


@pytest.mark.controlplane
@pytest.mark.parametrize(("length", "kept"), NOTES, ids=["below", "at", "above"])
async def test_a_long_message_is_cut_where_the_api_server_would_refuse_it(stage: Stage, length: int, kept: int) -> None:
    """A note holds 1,024 characters."""
    incident = await stage.incident(Phase.NEW)
    await recorder(stage).record(incident, "Classified", "x" * length, once_per="1", action="Triaged")
    (event,) = await events(stage)
    assert len(event["note"]) == kept


@pytest.mark.controlplane
@pytest.mark.parametrize(
    "fault", [answer(500), answer(403), answer(422), drop_before()], ids=["500", "403", "422", "cut"]
)
async def test_an_event_that_cannot_be_written_stops_nothing(stage: Stage, fault: Any) -> None:
    """It is logged; nobody hears of it otherwise."""
    incident = await stage.incident(Phase.NEW)
    stage.proxy.spoil(fault, method="POST", path="/events")
    await recorder(stage).record(incident, "Classified", "MemoryLeak", once_per="1", action="Triaged")
    assert await events(stage) == []


class Answers:
    """The API server's one answer to an Event."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error
        self.created: list[Document] = []

    async def create(self, path: str, document: Document) -> Reply:
        """Take it or refuse it."""
        if self._error is not None:
            raise self._error
        self.created.append(document)
        return Reply(document, None)


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (Refused("already there", status=409), ""),
        (Refused("forbidden", status=403), "event refused"),
        (RetryLater("away"), "event not written"),
        (AnswerLost("cut"), "event not written"),
    ],
)
async def test_what_is_there_already_is_not_worth_a_word(
    error: Exception, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A conflict says that it was told before; everything else is a warning."""
    kube: Any = Answers(error)
    await EventRecorder(kube=kube, clock=HandClock(Time()), instance="x").record(
        builders.incident(Phase.NEW), "Classified", "", once_per="1", action="Triaged"
    )
    assert [each.message for each in caplog.records] == ([logged] if logged else [])


@pytest.mark.parametrize(
    ("reason", "action", "kind"),
    [
        (Reason.PLAN_PROPOSED, "AwaitingApproval", "Normal"),
        (Reason.OUTCOME_UNKNOWN, "ReconciliationRequired", "Warning"),
        (Reason.PLAN_SUPERSEDED, "Refused", "Warning"),
        (Reason.ACCEPTED, "Accepted", "Normal"),
    ],
)
async def test_what_a_person_should_look_at_is_a_warning(reason: Reason, action: str, kind: str) -> None:
    """By its reason, or because a verdict refuses; an empty message is its reason."""
    kube: Any = Answers(None)
    await EventRecorder(kube=kube, clock=HandClock(Time()), instance="x").record(
        builders.incident(Phase.NEW), reason, "", once_per="1", action=action
    )
    assert (kube.created[0]["type"], kube.created[0]["note"]) == (kind, reason)
    assert kube.created[0]["eventTime"] == "2026-01-31T12:01:00.000000Z"


def test_no_good_news_is_a_warning() -> None:
    """The list of warnings holds faults only."""
    good = {Reason.CLASSIFIED, Reason.APPROVED, Reason.RESTARTED, Reason.ALERT_CLEARED, Reason.ACCEPTED, Reason.STORED}
    assert not good & WARNINGS
