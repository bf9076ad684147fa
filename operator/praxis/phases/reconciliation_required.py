"""ReconciliationRequired: the outcome is unknown. A person looks, says what happened, and the target is free again."""

from __future__ import annotations

from praxis.api.incident import EntryKind, Incident
from praxis.api.reasons import ConditionType, Reason
from praxis.api.records import statement_record
from praxis.approval.reconciliation import judge_reconciliations
from praxis.machine import Phase
from praxis.phases.contract import ConditionUpdate, Record, Tools, Transition, Wait
from praxis.redaction import fit


async def reconcile(incident: Incident, tools: Tools) -> Transition | Wait:
    """Record the first valid finding; the phase stays."""
    condition = incident.status.condition(ConditionType.RECONCILED)
    if condition is not None and condition.status == "True":
        return Wait(None)
    findings = await tools.cluster.reconciliations(incident.metadata.namespace, incident.metadata.uid)
    accepted = judge_reconciliations(incident, findings).accepted
    if accepted is None:
        return Wait(
            None,
            Reason.OUTCOME_UNKNOWN,
            conditions=[
                ConditionUpdate(
                    ConditionType.RECONCILED,
                    status=False,
                    reason=Reason.OUTCOME_UNKNOWN,
                    message="look at the function, then: praxis reconcile "
                    f"{incident.metadata.name} -n {incident.metadata.namespace} --observed applied|not-applied",
                )
            ],
        )
    spec, found = accepted.spec, statement_record(accepted.dump())
    return Transition(
        to=Phase.RECONCILIATION_REQUIRED,
        reason=Reason.RECONCILED,
        message=fit(f"{spec.observer.username} found: {spec.observed}: {spec.note}", 1024),
        records=[Record(EntryKind.RECONCILED, Reason.RECONCILED, actor=spec.observer.username, document=found)],
        conditions=[
            ConditionUpdate(
                ConditionType.RECONCILED,
                status=True,
                reason=Reason.RECONCILED,
                message=f"{spec.observed}, found by {spec.observer.username}",
            )
        ],
    )
