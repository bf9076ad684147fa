"""Who may act on a target: `RemediationTarget.status.holder`, claimed by compare-and-swap.

A holder is void once a consistent read shows its incident outside Executing and Observing. An unknown outcome, or an
incident that is gone, stands until a person's reconciliation names the intent: nobody acts on a function that another
request may still change.
"""

from __future__ import annotations

import contextlib

from praxis.api.base import IntentId
from praxis.api.incident import Incident
from praxis.api.reasons import ConditionType
from praxis.api.target import Holder, RemediationTarget
from praxis.approval.reconciliation import releases
from praxis.clock import rfc3339
from praxis.errors import Superseded
from praxis.machine import Phase
from praxis.phases.contract import Tools

HOLDING = frozenset({Phase.EXECUTING, Phase.OBSERVING})


async def claim(
    incident: Incident, target: RemediationTarget, intent: IntentId, tools: Tools
) -> RemediationTarget | None:
    """Claim the target for an intent that is about to be written; None while another incident holds it.

    Claimed even over our own earlier claim: a paused process that wakes up with the former intent finds that it is no
    longer the holder.

    Raises:
        Superseded: the target changed since it was read.
    """
    holder = target.status.holder
    if holder is not None and holder.incident_uid != incident.metadata.uid and await stands(target, holder, tools):
        return None
    assert incident.status.plan is not None, "Executing is entered with a plan"
    return await tools.cluster.claim(
        target,
        Holder(
            incident_uid=incident.metadata.uid,
            incident_name=incident.metadata.name,
            revision=incident.status.plan.revision,
            intent_id=intent,
            writer=tools.writer,
            claimed_at=rfc3339(tools.clock.now()),
        ),
    )


async def stands(target: RemediationTarget, holder: Holder, tools: Tools) -> bool:
    """Whether a holder still keeps others away, by a consistent read of its incident."""
    incident = await tools.cluster.incident(target.metadata.namespace, holder.incident_name)
    if incident is None or incident.metadata.uid != holder.incident_uid:
        found = await tools.cluster.reconciliations(target.metadata.namespace, holder.incident_uid)
        return releases(holder, found) is None
    if incident.status.phase is Phase.RECONCILIATION_REQUIRED:
        reconciled = incident.status.condition(ConditionType.RECONCILED)
        return reconciled is None or reconciled.status != "True"
    return incident.status.phase in HOLDING


async def still_held(target: RemediationTarget, intent: IntentId, tools: Tools) -> bool:
    """Whether this very intent is the target's holder, by a consistent read."""
    targets = await tools.cluster.targets(target.metadata.namespace)
    now = next((each for each in targets if each.metadata.uid == target.metadata.uid), None)
    return now is not None and now.status.holder is not None and now.status.holder.intent_id == intent


async def release(incident: Incident, tools: Tools) -> None:
    """Remove the claims of this incident's plan, for people to see; others could claim over them anyway.

    Of this very plan: a process that was paused before it came here must not free what the next plan has claimed
    meanwhile, maybe with an open intent.

    Raises:
        Superseded: a target changed since it was read.
    """
    assert incident.status.plan is not None, "what was claimed was claimed for a plan"
    mine = (incident.metadata.uid, incident.status.plan.revision)
    for target in await tools.cluster.targets(incident.metadata.namespace):
        holder = target.status.holder
        if holder is not None and (holder.incident_uid, holder.revision) == mine:
            await tools.cluster.release(target)


async def release_void(tools: Tools) -> None:
    """Remove every claim that no longer stands: one whose holder ended before it came to `release`, or is gone.

    Until then nobody could delete the target. Safe beside any claim: it is compare-and-swap on what was judged.
    """
    for target in await tools.cluster.all_targets():
        holder = target.status.holder
        if holder is None or await stands(target, holder, tools):
            continue
        with contextlib.suppress(Superseded):
            await tools.cluster.release(target)
