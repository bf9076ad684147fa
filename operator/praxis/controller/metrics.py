"""Metrics, after controller-runtime's and Prometheus' naming. Gauges about Incidents are computed at scrape.

They are computed from what the watch has seen last, so the series of a deleted Incident disappear with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from praxis.api.approval import Verdict
from praxis.api.incident import Incident, IncidentStatus, Outcome, Result
from praxis.api.reasons import ConditionType
from praxis.approval.ruling import Ruling
from praxis.clock import Clock, parse_rfc3339
from praxis.controller.queue import Key, WorkQueue
from praxis.machine import TERMINAL, Phase
from praxis.settings import Deadlines

RESULTS = ("success", "requeue", "superseded", "error")
DURATION_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


def deadline_of(deadlines: Deadlines, phase: Phase) -> float | None:
    """Seconds an incident may stay in a phase; None for the phases that end it."""
    return {
        Phase.NEW: deadlines.new,
        Phase.TRIAGED: deadlines.triaged,
        Phase.INVESTIGATED: deadlines.investigated,
        Phase.AWAITING_APPROVAL: deadlines.awaiting_approval,
        Phase.EXECUTING: deadlines.executing,
        Phase.OBSERVING: deadlines.observing,
    }.get(phase)


def settled(status: IncidentStatus) -> bool:
    """Whether an incident has ended, its memory is written, and nobody is asked to find out what happened."""
    owed = {Phase.RESOLVED: ConditionType.MEMORY_STORED, Phase.RECONCILIATION_REQUIRED: ConditionType.RECONCILED}
    if status.phase not in owed:
        return status.phase in TERMINAL
    condition = status.condition(owed[status.phase])
    return condition is not None and condition.status == "True"


@dataclass(frozen=True)
class Seen:
    """What is kept of an Incident for its gauges."""

    phase: Phase
    since: float
    stalled: str | None
    intent_since: float | None
    settled: bool


class Incidents(Collector):
    """The Incidents as the watch has seen them last."""

    def __init__(self, *, clock: Clock, deadlines: Deadlines) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._seen: dict[Key, Seen] = {}

    def saw(self, incident: Incident) -> None:
        """Keep what the gauges need."""
        status = incident.status
        entered = status.phase_times.get(status.phase) or incident.metadata.creation_timestamp
        stalled = status.condition(ConditionType.STALLED)
        open_step = status.open_step
        self._seen[Key(incident.metadata.namespace, incident.metadata.name)] = Seen(
            phase=status.phase,
            since=parse_rfc3339(entered).timestamp() if entered else self._clock.now().timestamp(),
            stalled=stalled.reason if stalled is not None and stalled.status == "True" else None,
            intent_since=parse_rfc3339(open_step.intent.time).timestamp() if open_step and open_step.intent else None,
            settled=settled(status),
        )

    def gone(self, key: Key) -> None:
        """Forget a deleted Incident."""
        self._seen.pop(key, None)

    def open_keys(self, namespace: str | None = None) -> list[Key]:
        """The Incidents that have not ended, of one namespace or of all."""
        return [
            key
            for key, seen in self._seen.items()
            if seen.phase not in TERMINAL and (namespace is None or key.namespace == namespace)
        ]

    def settled_keys(self) -> list[Key]:
        """The Incidents that have ended and owe nothing: only a person can bring about more work on them."""
        return [key for key, seen in self._seen.items() if seen.settled]

    def keys(self) -> list[Key]:
        """Every Incident that was seen."""
        return list(self._seen)

    def collect(self) -> Iterable[Metric]:
        """The gauges, now."""
        now = self._clock.now().timestamp()
        yield from self._counts()
        age = GaugeMetricFamily(
            "praxis_incident_phase_age_seconds",
            "Seconds since an open incident entered its phase.",
            labels=["namespace", "name", "phase"],
        )
        deadline = GaugeMetricFamily(
            "praxis_incident_phase_deadline_seconds",
            "Seconds an incident may stay in its phase before it counts as stalled.",
            labels=["namespace", "name", "phase"],
        )
        intents = GaugeMetricFamily(
            "praxis_open_intent_age_seconds",
            "Seconds since an intent was written that has no outcome yet.",
            labels=["namespace", "name"],
        )
        for key, seen in self._seen.items():
            labels = [key.namespace, key.name, seen.phase]
            limit = deadline_of(self._deadlines, seen.phase)
            if limit is not None:
                age.add_metric(labels, now - seen.since)
                deadline.add_metric(labels, limit)
            if seen.intent_since is not None:
                intents.add_metric([key.namespace, key.name], now - seen.intent_since)
        yield from (age, deadline, intents)

    def _counts(self) -> Iterable[Metric]:
        phases = GaugeMetricFamily("praxis_incidents", "Incidents by phase.", labels=["phase"])
        for phase in Phase:
            phases.add_metric([phase], sum(seen.phase is phase for seen in self._seen.values()))
        stalled = GaugeMetricFamily(
            "praxis_incident_stalled", "1 for each stalled incident.", labels=["namespace", "name", "phase", "reason"]
        )
        for key, seen in self._seen.items():
            if seen.stalled is not None:
                stalled.add_metric([key.namespace, key.name, seen.phase, seen.stalled], 1)
        intents = GaugeMetricFamily("praxis_open_intents", "Intents that have no outcome yet.")
        intents.add_metric([], sum(seen.intent_since is not None for seen in self._seen.values()))
        yield from (phases, stalled, intents)


class Metrics:
    """The counters of one operator process, every series present from the start."""

    def __init__(self, *, registry: CollectorRegistry, incidents: Incidents, queue: WorkQueue) -> None:
        self.registry = registry
        registry.register(incidents)
        self._reconciles = Counter(
            "praxis_reconcile_total", "Reconciles by phase and result.", ["phase", "result"], registry=registry
        )
        self._durations = Histogram(
            "praxis_reconcile_duration_seconds",
            "Seconds a reconcile took.",
            ["phase"],
            buckets=DURATION_BUCKETS,
            registry=registry,
        )
        self._errors = Counter(
            "praxis_reconcile_errors_total", "Failed reconciles by reason.", ["phase", "reason"], registry=registry
        )
        self._dispatches = Counter(
            "praxis_dispatches_total", "Intents that were acknowledged and acted on.", registry=registry
        )
        self._outcomes = Counter(
            "praxis_outcomes_total", "Outcomes of actions by result.", ["result"], registry=registry
        )
        self._verdicts = Counter(
            "praxis_verdicts_total",
            "Verdicts on approvals and reconciliations.",
            ["kind", "verdict", "reason"],
            registry=registry,
        )
        self.leading = Gauge("praxis_leader", "1 while this process holds the lease.", registry=registry)
        self._last_event = Gauge(
            "praxis_watch_last_event_timestamp_seconds",
            "When the watch of a resource delivered last.",
            ["resource"],
            registry=registry,
        )
        self._queue_gauges(queue)
        for phase in Phase:
            self._durations.labels(phase)
            for result in RESULTS:
                self._reconciles.labels(phase, result)
        for outcome in Result:
            self._outcomes.labels(outcome)

    def _queue_gauges(self, queue: WorkQueue) -> None:
        depth = Gauge("praxis_workqueue_depth", "Keys that wait for a worker.", registry=self.registry)
        depth.set_function(lambda: queue.depth)
        longest = Gauge(
            "praxis_workqueue_longest_running_processor_seconds",
            "Seconds that the key worked on longest has been worked on.",
            registry=self.registry,
        )
        longest.set_function(lambda: queue.longest_running)
        retries = Gauge("praxis_workqueue_retries", "Failed reconciles that were requeued.", registry=self.registry)
        retries.set_function(lambda: queue.retries)

    def reconciled(self, phase: Phase, result: str, seconds: float) -> None:
        """Count a reconcile and how long it took."""
        self._reconciles.labels(phase, result).inc()
        self._durations.labels(phase).observe(seconds)

    def failed(self, phase: Phase, reason: str) -> None:
        """Count a failed reconcile."""
        self._errors.labels(phase, reason).inc()

    def dispatched(self) -> None:
        """Count an intent that was acted on."""
        self._dispatches.inc()

    def concluded(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self._outcomes.labels(outcome.result).inc()

    def verdict(self, kind: str, ruling: Ruling) -> None:
        """Count a verdict."""
        self._verdicts.labels(kind, ruling.verdict or Verdict.REFUSED, ruling.reason).inc()

    def delivered(self, resource: str, timestamp: float) -> None:
        """Note that a watch is alive."""
        self._last_event.labels(resource).set(timestamp)
