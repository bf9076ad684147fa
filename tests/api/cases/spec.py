"""Round the spec of an incident, and what it allows the status."""

from __future__ import annotations

from tests.api.cases.contract import allowed, refused
from tests.api.lab import (
    ALERT,
    REAL,
    Lab,
    step,
)


@refused("source-is-final", "where an incident came from never changes")
async def authentication_claimed_later(lab: Lab) -> None:
    stored = await lab.new()
    await lab.merge(stored, source={**stored["spec"]["source"], "authentication": "hmac"})


@refused("resolved-when-clear", "not Resolved while an alert fires")
async def resolved_while_firing(lab: Lab) -> None:
    await lab.go(await lab.observing(), "Resolved")


@refused("resolved-when-clear", "not Resolved while an alert fires")
async def resolved_after_a_refire_was_merged(lab: Lab) -> None:
    await lab.go(await lab.alerts(await lab.cleared(), "firing"), "Resolved")


@refused("resolved-when-clear", "not Resolved while an alert fires")
async def resolved_while_one_of_two_fires(lab: Lab) -> None:
    await lab.go(await lab.alerts(await lab.observing(), "resolved", "firing"), "Resolved")


@refused("resolved-when-clear", "truncated alerts never count as cleared")
async def resolved_with_truncated_alerts(lab: Lab) -> None:
    await lab.go(await lab.merge(await lab.cleared(), truncatedAlerts=1), "Resolved")


@refused("self-resolved-when-clear", "not SelfResolved while an alert fires")
async def self_resolved_while_firing(lab: Lab) -> None:
    await lab.go(await lab.new(), "Closed", reason="SelfResolved")


@refused("self-resolved-when-clear", "truncated alerts never count as cleared")
async def self_resolved_with_truncated_alerts(lab: Lab) -> None:
    stored = await lab.merge(await lab.alerts(await lab.triaged(), "resolved"), truncatedAlerts=1)
    await lab.go(stored, "Closed", reason="SelfResolved")


@allowed
async def self_resolved_when_clear(lab: Lab) -> None:
    await lab.go(await lab.alerts(await lab.triaged(), "resolved"), "Closed", reason="SelfResolved")


@refused("intent-when-firing", "no intent when nothing fires")
async def intent_when_nothing_fires(lab: Lab) -> None:
    await lab.put(await lab.alerts(await lab.executing(), "resolved"), steps=[step(REAL)])


@allowed
async def intent_with_truncated_alerts_only(lab: Lab) -> None:
    stored = await lab.merge(await lab.alerts(await lab.executing(), "resolved"), truncatedAlerts=1)
    await lab.put(stored, steps=[step(REAL)])


@allowed
async def outcome_stored_though_the_alert_cleared_meanwhile(lab: Lab) -> None:
    await lab.put(await lab.alerts(await lab.intent(), "resolved"), steps=[step(REAL, "Applied")])


@refused("ended-episode", "an ended episode takes no more alerts: every alert of it had cleared")
async def refire_merged_into_an_ended_episode(lab: Lab) -> None:
    await lab.alerts(await lab.at("Resolved"), "firing")


@refused("ended-episode", "an ended episode takes no more alerts: every alert of it had cleared")
async def refire_merged_into_a_reconciled_end(lab: Lab) -> None:
    stored = await lab.alerts(await lab.at("ReconciliationRequired"), "resolved")
    await lab.alerts(stored, "firing")


@refused("ended-episode", "an ended episode takes no more alerts: every alert of it had cleared")
async def refire_merged_into_a_dismissed_and_cleared_episode(lab: Lab) -> None:
    await lab.alerts(await lab.alerts(await lab.at("Closed"), "resolved"), "firing")


@refused("lapsed-episode", "an incident that failed or lapsed takes no more firing alerts")
async def alert_joins_a_failed_incident(lab: Lab) -> None:
    await lab.alerts(await lab.at("Failed"), "firing", "firing")


@refused("lapsed-episode", "an incident that failed or lapsed takes no more firing alerts")
async def alert_joins_an_expired_incident(lab: Lab) -> None:
    ended = await lab.go(await lab.awaiting(), "Closed", reason="ApprovalExpired")
    await lab.alerts(ended, "firing", "firing")


@refused("lapsed-episode", "an incident that failed or lapsed takes no more firing alerts")
async def alert_joins_a_dry_run(lab: Lab) -> None:
    ended = await lab.go(await lab.dry_only(), "Closed", reason="DryRunOnly")
    await lab.alerts(ended, "firing", "firing")


@refused("lapsed-episode", "an incident that failed or lapsed takes no more firing alerts")
async def truncated_alerts_join_a_failed_incident(lab: Lab) -> None:
    await lab.merge(await lab.at("Failed"), truncatedAlerts=3)


@allowed
async def alert_of_a_failed_incident_clears(lab: Lab) -> None:
    await lab.alerts(await lab.at("Failed"), "resolved")


@allowed
async def repeat_joins_a_dismissed_incident_that_fires_on(lab: Lab) -> None:
    await lab.alerts(await lab.at("Closed"), "firing", "firing")


@allowed
async def alert_joins_an_incident_that_waits_to_be_reconciled(lab: Lab) -> None:
    await lab.alerts(await lab.at("ReconciliationRequired"), "firing", "firing")


@refused(None, "spec.alerts[0].startsAt in body must be of type date-time")
async def alert_that_began_on_no_day(lab: Lab) -> None:
    await lab.new(alerts=[{**ALERT, "startsAt": "2026-02-30T12:00:00Z"}])


@refused(None, "should have at least 1 items")
async def incident_without_alerts(lab: Lab) -> None:
    await lab.new(alerts=[])


@refused(None, "must have at most 64 items")
async def one_alert_too_many(lab: Lab) -> None:
    await lab.new(alerts=[{**ALERT, "fingerprint": f"f{n}"} for n in range(65)])


@allowed
async def as_many_alerts_as_fit(lab: Lab) -> None:
    await lab.new(alerts=[{**ALERT, "fingerprint": f"f{n}"} for n in range(64)])
