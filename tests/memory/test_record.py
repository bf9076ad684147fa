"""An incident in words."""

from __future__ import annotations

import pytest

from praxis.api.incident import Classification, Result, Step
from praxis.api.plan import Diagnosis
from praxis.machine import Phase
from praxis.memory.contract import SUMMARY, TEXT
from praxis.memory.record import recall_text, record_of
from tests import builders

SYMPTOMS = (
    "MemoryLeak (critical) of checkout\n"
    "Checkout is slow.\n"
    "alert alertname=HighLatency service=checkout severity=critical p99 latency of checkout is 4 s"
)


def test_a_question_holds_what_is_known_at_triaged() -> None:
    """Alerts and classification are asked for; what a later phase finds out changes nothing."""
    assert recall_text(builders.incident(Phase.TRIAGED)) == SYMPTOMS
    assert recall_text(builders.incident(Phase.RESOLVED)) == SYMPTOMS


def test_a_question_without_classification_is_the_alerts_own_words() -> None:
    """An incident that nobody classified is described by its summary and alerts."""
    assert recall_text(builders.incident(Phase.NEW, spec={"summary": "Checkout is down"})) == (
        "Checkout is down\n"
        "alert alertname=HighLatency service=checkout severity=critical p99 latency of checkout is 4 s"
    )


def test_a_recurrence_on_another_pod_asks_the_same() -> None:
    """Labels that change from one occurrence to the next are left out."""
    labels = {"alertname": "HighLatency", "service": "checkout", "severity": "critical"}
    alert = builders.alert(labels={**labels, "pod": "checkout-7d4b9c8f6d-abcde", "instance": "10.0.0.1:9090"})

    assert recall_text(builders.incident(Phase.TRIAGED, spec={"alerts": [alert]})) == SYMPTOMS


def test_alerts_that_say_the_same_are_said_once_and_eight_at_most() -> None:
    """Sixty-four alerts of one group do not drown what they are about."""
    same = [builders.alert(fingerprint=f"f{number}") for number in range(64)]
    assert recall_text(builders.incident(Phase.TRIAGED, spec={"alerts": same})) == SYMPTOMS

    different = [builders.alert(fingerprint=f"f{n}", labels={"alertname": f"A{n}"}) for n in range(64)]
    asked = recall_text(builders.incident(Phase.TRIAGED, spec={"alerts": different}))
    assert asked.count("alertname=") == 8


def test_a_record_says_what_happened_and_what_helped() -> None:
    """The record of a resolved incident carries its uid, its words and a sentence for people."""
    incident = builders.incident(Phase.RESOLVED)
    record = record_of(incident)

    assert record.id == "11111111-1111-4111-8111-111111111111"
    assert record.incident == "shop/checkout-latency-1"
    assert record.namespace == "shop"
    assert record.service == "checkout"
    assert record.category == "MemoryLeak"
    assert record.resolved_at == incident.status.phase_times["Resolved"]
    assert record.summary == (
        "MemoryLeak of checkout: restart_function on checkout-fn: Applied (Restarted); then the alert cleared. "
        "Cause: The checkout function leaks memory."
    )
    assert record.text == (
        f"{SYMPTOMS}\n"
        "cause: The checkout function leaks memory.\n"
        "claim: Resident memory doubled in ten minutes.\n"
        "action: restart_function on checkout-fn: Applied (Restarted)\n"
        "end: then the alert cleared"
    )


def test_dry_runs_and_earlier_plans_are_called_what_they_are() -> None:
    """A dry run is not told as something that helped, and a step of an older plan is not given the newer's action."""
    incident = builders.incident(Phase.RESOLVED)
    [applied] = incident.status.steps
    assert applied.outcome is not None
    dry = Step(revision=1, action="x", outcome=applied.outcome.replace(result=Result.DRY_RUN))
    older = applied.replace(revision=2, action="restart-function")

    summary = record_of(incident.replace(status=incident.status.replace(steps=[older, dry]))).summary

    assert "restart-function of plan 2: Applied (Restarted); x of plan 1: DRY RUN, nothing was sent" in summary


def test_secrets_do_not_reach_the_memory() -> None:
    """Words that hold a credential are redacted before they are embedded or shown, also where they are cut."""
    secret = "ghp_" + "a1B2" * 9
    incident = builders.incident(
        Phase.RESOLVED,
        classification=Classification(
            category="MemoryLeak", severity="high", service="checkout", summary=f"leaked {secret}"
        ),
        diagnosis=Diagnosis(summary="x" * 800 + f" password=hunter2 {secret}"),
    )
    record = record_of(incident)

    assert "a1B2" not in record.text + record.summary + recall_text(incident)
    assert "hunter2" not in record.text + record.summary
    assert "[REDACTED:github-token]" in record.text


@pytest.mark.parametrize("padding", range(870, 960, 10))
def test_a_secret_over_the_cut_leaves_no_half(padding: int) -> None:
    """Redaction comes before the cut, wherever the token lies over the end of the summary."""
    secret = "ghp_" + "a1B2" * 9
    incident = builders.incident(Phase.RESOLVED, diagnosis=Diagnosis(summary="x" * padding + f" {secret}"))

    assert "a1B2" not in record_of(incident).summary


def test_long_words_are_cut_at_their_bounds() -> None:
    """The largest incident still makes a record, cut with a sign that it was."""
    alerts = [
        builders.alert(fingerprint=f"f{n}", labels={"alertname": f"A{n}"}, annotations={"description": "é " * 1000})
        for n in range(8)
    ]
    incident = builders.incident(Phase.RESOLVED, spec={"alerts": alerts}, diagnosis=Diagnosis(summary="cause " * 170))
    record = record_of(incident)

    assert len(record.text) == TEXT == 6000
    assert record.text.endswith("…")
    assert len(record.summary) == SUMMARY == 1024
    assert len(recall_text(incident)) == 6000
