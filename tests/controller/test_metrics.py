"""Metrics: named after the conventions, present from the start, and gone with the incident they speak of."""

from __future__ import annotations

from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from praxis.api.approval import Verdict
from praxis.api.base import Condition
from praxis.api.incident import Incident, Result, Step
from praxis.api.reasons import Reason
from praxis.approval.ruling import Ruling
from praxis.controller.metrics import RESULTS, Incidents, Metrics, deadline_of
from praxis.controller.queue import Key, WorkQueue
from praxis.machine import TERMINAL, Phase
from praxis.settings import Deadlines
from tests import builders
from tests.phases.world import HandClock, Time

AT = {"namespace": "shop", "name": "checkout-latency-1"}


class Scraped:
    """A registry of its own, with a clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = Time()
        clock = HandClock(self.time)
        self.registry = CollectorRegistry()
        self.queue = WorkQueue(clock=clock)
        self.incidents = Incidents(clock=clock, deadlines=Deadlines())
        self.metrics = Metrics(registry=self.registry, incidents=self.incidents, queue=self.queue)

    def value(self, metric: str, **labels: str) -> float | None:
        """Of a series, None when there is none."""
        return self.registry.get_sample_value(metric, labels)

    def series(self, name: str) -> list[dict[str, str]]:
        """The labels of every series of a metric."""
        return [sample.labels for family in self.registry.collect() for sample in family.samples if sample.name == name]


def stalled(incident: Incident, status: str = "True") -> Incident:
    condition = Condition(
        type="Stalled", status=status, reason="TargetHeld", last_transition_time="2026-01-31T12:00:00.000000Z"
    )
    return incident.replace(status=incident.status.replace(conditions=[condition]))


def with_open_intent() -> Incident:
    """An intent that was written at 12:00:05."""
    incident = builders.incident(Phase.EXECUTING)
    intent = builders.incident(Phase.OBSERVING).status.steps[0].intent
    step = Step(revision=1, action="restart-function", intent=intent)
    return incident.replace(status=incident.status.replace(steps=[step]))


@pytest.mark.parametrize(
    ("phase", "condition", "settled"),
    [
        (Phase.EXECUTING, None, False),
        (Phase.CLOSED, None, True),
        (Phase.FAILED, None, True),
        (Phase.RESOLVED, None, False),
        (Phase.RESOLVED, ("MemoryStored", "False"), False),
        (Phase.RESOLVED, ("MemoryStored", "True"), True),
        (Phase.RECONCILIATION_REQUIRED, None, False),
        (Phase.RECONCILIATION_REQUIRED, ("Reconciled", "False"), False),
        (Phase.RECONCILIATION_REQUIRED, ("Reconciled", "True"), True),
    ],
)
def test_what_has_ended_and_owes_nothing_is_settled(
    phase: Phase, condition: tuple[str, str] | None, settled: bool
) -> None:
    """A memory to be written, or a person who is asked, is work that waits; a resync must not forget it."""
    scraped, incident = Scraped(), builders.incident(phase)
    if condition is not None:
        made = Condition(
            type=condition[0], status=condition[1], reason="Stored", last_transition_time="2026-01-31T12:00:00.000000Z"
        )
        incident = incident.replace(status=incident.status.replace(conditions=[made]))
    scraped.incidents.saw(incident)
    assert scraped.incidents.settled_keys() == ([Key("shop", "checkout-latency-1")] if settled else [])


def test_every_phase_result_and_outcome_is_there_before_anything_happened() -> None:
    """A series that appears with its first event cannot be told from one that was lost."""
    scraped = Scraped()
    for phase in Phase:
        assert scraped.value("praxis_incidents", phase=phase) == 0
        assert scraped.value("praxis_reconcile_duration_seconds_count", phase=phase) == 0
        for result in RESULTS:
            assert scraped.value("praxis_reconcile_total", phase=phase, result=result) == 0
    for outcome in Result:
        assert scraped.value("praxis_outcomes_total", result=outcome) == 0
    assert scraped.value("praxis_open_intents") == 0
    assert scraped.value("praxis_dispatches_total") == 0
    assert scraped.value("praxis_leader") == 0
    assert scraped.value("praxis_workqueue_depth") == 0


def test_incidents_are_counted_by_phase_as_they_were_seen_last() -> None:
    """Each counts once, where it stands."""
    scraped = Scraped()
    scraped.incidents.saw(builders.incident(Phase.NEW))
    scraped.incidents.saw(builders.incident(Phase.NEW, name="other"))
    scraped.incidents.saw(builders.incident(Phase.TRIAGED))
    assert scraped.value("praxis_incidents", phase="New") == 1
    assert scraped.value("praxis_incidents", phase="Triaged") == 1


def test_age_and_deadline_of_the_phase() -> None:
    """Seconds since the phase was entered, beside the bound that an alert compares it with."""
    scraped = Scraped()
    scraped.incidents.saw(builders.incident(Phase.AWAITING_APPROVAL))
    # Entered at 12:00:03, looked at 12:01:00.
    assert scraped.value("praxis_incident_phase_age_seconds", **AT, phase="AwaitingApproval") == 57
    assert scraped.value("praxis_incident_phase_deadline_seconds", **AT, phase="AwaitingApproval") == 86400
    scraped.time.wall += timedelta(seconds=10)
    assert scraped.value("praxis_incident_phase_age_seconds", **AT, phase="AwaitingApproval") == 67


def test_a_new_incident_is_as_old_as_it_is_stored() -> None:
    """New is entered by being created."""
    scraped = Scraped()
    scraped.incidents.saw(builders.incident(Phase.NEW))
    assert scraped.value("praxis_incident_phase_age_seconds", **AT, phase="New") == 60


@pytest.mark.parametrize("phase", sorted(TERMINAL))
def test_what_has_ended_grows_no_older(phase: Phase) -> None:
    """An ended incident has no deadline, so no age that could pass one."""
    scraped = Scraped()
    scraped.incidents.saw(builders.incident(phase))
    assert scraped.series("praxis_incident_phase_age_seconds") == []
    assert scraped.series("praxis_incident_phase_deadline_seconds") == []
    assert deadline_of(Deadlines(), phase) is None


def test_a_stalled_incident_says_why_only_while_it_is() -> None:
    """Its reason is a label; the series ends with the condition."""
    scraped = Scraped()
    scraped.incidents.saw(stalled(builders.incident(Phase.EXECUTING)))
    assert scraped.series("praxis_incident_stalled") == [{**AT, "phase": "Executing", "reason": "TargetHeld"}]
    scraped.incidents.saw(stalled(builders.incident(Phase.EXECUTING), "False"))
    assert scraped.series("praxis_incident_stalled") == []


def test_an_open_intent_shows_with_its_age() -> None:
    """The one number that says that something may be under way."""
    scraped = Scraped()
    scraped.incidents.saw(with_open_intent())
    assert scraped.value("praxis_open_intents") == 1
    assert scraped.value("praxis_open_intent_age_seconds", **AT) == 55
    scraped.incidents.saw(builders.incident(Phase.OBSERVING))
    assert scraped.value("praxis_open_intents") == 0
    assert scraped.series("praxis_open_intent_age_seconds") == []


def test_the_series_of_a_deleted_incident_disappear() -> None:
    """No gauge of its name is left."""
    scraped = Scraped()
    scraped.incidents.saw(stalled(with_open_intent()))
    scraped.incidents.gone(Key("shop", "checkout-latency-1"))
    assert "checkout-latency-1" not in generate_latest(scraped.registry).decode()
    scraped.incidents.gone(Key("shop", "checkout-latency-1"))
    assert scraped.incidents.keys() == []


def test_open_keys_are_those_that_have_not_ended() -> None:
    """Of one namespace, or of all."""
    scraped = Scraped()
    scraped.incidents.saw(builders.incident(Phase.NEW, name="a"))
    scraped.incidents.saw(builders.incident(Phase.EXECUTING, name="b", namespace="payments"))
    scraped.incidents.saw(builders.incident(Phase.CLOSED, name="c"))
    assert scraped.incidents.open_keys() == [Key("shop", "a"), Key("payments", "b")]
    assert scraped.incidents.open_keys("shop") == [Key("shop", "a")]


def test_counters_count() -> None:
    """One each."""
    scraped = Scraped()
    scraped.metrics.reconciled(Phase.NEW, "requeue", 0.2)
    scraped.metrics.failed(Phase.NEW, Reason.BUDGET_SPENT)
    scraped.metrics.dispatched()
    outcome = builders.incident(Phase.OBSERVING).status.steps[0].outcome
    assert outcome is not None
    scraped.metrics.concluded(outcome)
    scraped.metrics.verdict(
        "IncidentApproval", Ruling(uid="u", name="n", verdict=Verdict.REFUSED, reason=Reason.EXPIRED, message="")
    )
    scraped.metrics.delivered("incidents", 1769860800.0)
    scraped.metrics.leading.set(1)
    assert scraped.value("praxis_reconcile_total", phase="New", result="requeue") == 1
    assert scraped.value("praxis_reconcile_duration_seconds_sum", phase="New") == 0.2
    assert scraped.value("praxis_reconcile_errors_total", phase="New", reason="BudgetSpent") == 1
    assert scraped.value("praxis_dispatches_total") == 1
    assert scraped.value("praxis_outcomes_total", result="Applied") == 1
    assert scraped.value("praxis_verdicts_total", kind="IncidentApproval", verdict="Refused", reason="Expired") == 1
    assert scraped.value("praxis_watch_last_event_timestamp_seconds", resource="incidents") == 1769860800.0
    assert scraped.value("praxis_leader") == 1


async def test_the_queue_shows_what_waits_and_what_takes_long() -> None:
    """Depth, the longest running, and how often was retried."""
    scraped = Scraped()
    await scraped.queue.add(Key("shop", "a"))
    await scraped.queue.add(Key("shop", "b"), after=60)
    assert scraped.value("praxis_workqueue_depth") == 1
    scraped.queue._running[Key("shop", "c")] = 1000.0
    scraped.time.boot += 12
    assert scraped.value("praxis_workqueue_longest_running_processor_seconds") == 12
    scraped.queue.retries = 3
    assert scraped.value("praxis_workqueue_retries") == 3


def test_what_is_exposed_holds_the_conventions() -> None:
    """Everything is under praxis_, counters end in _total, and each has a sentence of help."""
    scraped = Scraped()
    scraped.incidents.saw(stalled(with_open_intent()))
    families = list(text_string_to_metric_families(generate_latest(scraped.registry).decode()))
    assert families
    for family in families:
        assert family.name.startswith("praxis_"), family.name
        assert family.documentation.endswith("."), family.name
        if family.type == "counter":
            names = {each.name for each in family.samples} - {f"{family.name}_created"}
            assert names <= {f"{family.name}_total"}
