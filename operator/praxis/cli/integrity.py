"""What a person's own machine can check before they sign: that what is shown is what the digests bind."""

from __future__ import annotations

from praxis.approval.validity import intact
from praxis.cli.cluster import Found
from praxis.digest import first_broken, same
from praxis.phases.triaged import evidence_digest


def faults(found: Found) -> list[str]:
    """Every way in which the stored incident is not what it claims to be; a plan with one must not be approved."""
    return [*_plan_faults(found), *_trail_faults(found)]


def _plan_faults(found: Found) -> list[str]:
    incident, plan = found.incident, found.incident.status.plan
    if plan is None:
        return []
    result = []
    if not intact(incident, plan):
        result.append(
            f"the stored plan is not what its digest {plan.digest} names: its actions were changed since it was drafted"
        )
    if not same(evidence_digest(incident.status.evidence), plan.evidence_digest):
        result.append("the evidence that is stored is not the evidence that the plan rests on")
    return result


def _trail_faults(found: Found) -> list[str]:
    # The stored document is checked, not the model's view of it: an entry's hash covers fields of newer versions too.
    status = found.document.get("status") or {}
    trail = status.get("trail") or []
    try:
        broken = first_broken(found.incident.metadata.uid, trail)
    except ValueError as error:
        return [f"the trail cannot be hashed: {error}"]
    if broken is not None:
        return [f"the trail is broken at entry {broken}: it is misnumbered, unlinked or altered"]
    if trail and status.get("head") != trail[-1]["hash"]:
        return ["status.head is not the hash of the last trail entry"]
    return []
