"""Verdicts, on a real API server: each person is told once and for good what became of what they said."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from praxis.api.approval import Decision, IncidentApproval, IncidentReconciliation
from praxis.api.incident import EntryKind, Incident, IncidentStatus
from praxis.api.reasons import Reason
from praxis.api.records import statement_record
from praxis.controller.events import EventRecorder
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.queue import Key, WorkQueue
from praxis.controller.status import applied, difference
from praxis.controller.verdicts import Verdicts
from praxis.errors import RetryLater
from praxis.kube import Kube, path_of, resource_path
from praxis.machine import Phase
from praxis.phases.contract import Record, Transition
from praxis.settings import OperatorSettings
from tests import builders
from tests.controller.conftest import NAMES, Stage
from tests.proxy import answer, drop_after, first

pytestmark = pytest.mark.controlplane


class Court:
    """Gives verdicts on a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.registry, queue = CollectorRegistry(), WorkQueue(clock=stage.clock)
        settings = OperatorSettings()
        self._verdicts = Verdicts(
            kube=stage.operator,
            cluster=stage.cluster,
            clock=stage.clock,
            quorum=settings.quorum,
            events=EventRecorder(kube=stage.operator, clock=stage.clock, instance="operator-0"),
            metrics=Metrics(
                registry=self.registry,
                incidents=Incidents(clock=stage.clock, deadlines=settings.deadlines),
                queue=queue,
            ),
        )

    async def settle(self, incident: Incident | None, name: str = "inc-1") -> None:
        """Once."""
        await self._verdicts.settle(Key(self.stage.namespace, name), incident)

    async def say(self, by: str, of: Incident, decision: Decision = Decision.APPROVE, **changes: Any) -> str:
        """A person decides; the name of the approval."""
        fields: dict[str, Any] = {"expires": self.stage.clock.now() + timedelta(hours=1), **changes}
        given = builders.approval(by, of=of, decision=decision, **fields)
        await self.stage.say(given)
        return given.metadata.name

    async def approval(self, name: str) -> IncidentApproval:
        """As stored."""
        reply = await self.stage.admin.get(path_of(IncidentApproval, self.stage.namespace, name))
        return IncidentApproval.model_validate(reply.document)

    def count(self, **labels: str) -> float:
        """Of the metric."""
        return self.registry.get_sample_value("praxis_verdicts_total", labels) or 0.0


OTHER = "sha256:" + "0" * 64


async def test_a_refusal_says_why_once_and_for_good(stage: Stage) -> None:
    """Verdict, reason, sentence, condition, Event and count; a second look writes nothing."""
    court = Court(stage)
    incident = await stage.incident(Phase.AWAITING_APPROVAL)
    name = await court.say("alice", incident, plan_digest=OTHER)
    await court.settle(incident)
    status = (await court.approval(name)).status
    assert (status.verdict, status.reason) == ("Refused", "PlanSuperseded")
    assert status.message is not None
    assert "which is not the current one" in status.message
    (condition,) = status.conditions
    assert (condition.type, condition.status, condition.reason) == ("Accepted", "False", "PlanSuperseded")
    assert condition.message == status.message
    writes = stage.proxy.count("PATCH")
    await court.settle(incident)
    assert stage.proxy.count("PATCH") == writes == 1
    assert court.count(kind="IncidentApproval", verdict="Refused", reason="PlanSuperseded") == 1
    path = resource_path("/apis/events.k8s.io/v1", "events", stage.namespace)
    (event,) = (await stage.admin.get(path)).document["items"]
    assert (event["type"], event["reason"], event["regarding"]["name"]) == ("Warning", "PlanSuperseded", name)


async def test_what_may_still_count_has_no_verdict(stage: Stage) -> None:
    """Neither a pending approval, nor one that would be acted on but is not yet."""
    court = Court(stage)
    two = await stage.incident(Phase.AWAITING_APPROVAL, name="inc-1", approvers=("alice", "bob"))
    pending = await court.say("alice", two)
    await court.settle(two)
    assert (await court.approval(pending)).status.verdict is None
    one = await stage.incident(Phase.AWAITING_APPROVAL, name="inc-2")
    enough = await court.say("alice", one)
    await court.settle(one, "inc-2")
    assert (await court.approval(enough)).status.verdict is None
    assert stage.proxy.count("PATCH") == 0


async def test_what_the_incident_went_by_is_accepted(stage: Stage) -> None:
    """Read from the stored incident, so a crash between the two writes changes nothing."""
    court = Court(stage)
    awaiting = await stage.incident(Phase.AWAITING_APPROVAL)
    name = await court.say("alice", awaiting)
    approval = await court.approval(name)
    await stage.direct.json_patch(stage.status_of("inc-1"), difference(awaiting.status, accepted(awaiting, approval)))
    stored = await stage.stored()
    assert stored.status.phase is Phase.EXECUTING
    await court.settle(stored)
    status = (await court.approval(name)).status
    assert (status.verdict, status.reason) == ("Accepted", "Accepted")
    assert status.conditions[0].status == "True"


def accepted(incident: Incident, approval: IncidentApproval) -> IncidentStatus:
    """The status of an incident that has just gone by an approval."""
    return applied(
        incident,
        Transition(
            to=Phase.EXECUTING,
            reason=Reason.APPROVED,
            message="approved by alice",
            changes={"approvals": [builders.bound(approval)]},
            records=[
                Record(EntryKind.DECIDED, Reason.APPROVED, actor="alice", document=statement_record(approval.dump()))
            ],
        ),
        actor=builders.OPERATOR,
        now=builders.NOW,
    )


async def test_an_approval_of_no_incident_is_refused_but_a_finding_is_not(stage: Stage) -> None:
    """What is said of an incident that is gone may yet free a target."""
    court = Court(stage)
    incident = await stage.incident(Phase.RECONCILIATION_REQUIRED)
    name = await court.say("alice", incident)
    finding = builders.reconciliation("alice", of=incident)
    path = stage.plane.kubeconfig("alice", [NAMES.approvers_group])
    async with await Kube.connect(path) as alice:
        await alice.create(path_of(IncidentReconciliation, stage.namespace), builders.manifest(finding))
    await stage.delete()
    await court.settle(None)
    assert (await court.approval(name)).status.reason == "IncidentNotFound"
    reply = await stage.admin.get(path_of(IncidentReconciliation, stage.namespace, finding.metadata.name))
    assert "verdict" not in reply.document.get("status", {})


async def test_no_verdict_on_an_incident_that_moved_on(stage: Stage) -> None:
    """A slow replica that holds the former plan must not refuse an approval of the next one for good."""
    court = Court(stage)
    former = await stage.incident(Phase.AWAITING_APPROVAL)
    uid, at = former.metadata.uid, {"name": "inc-1", "namespace": stage.namespace}
    states = builders.replanned(builders.history(Phase.AWAITING_APPROVAL, uid=uid, **at)[-1])
    before = former
    for state in states:
        await stage.direct.json_patch(stage.status_of("inc-1"), difference(before.status, state.status))
        before = await stage.stored()
    name = await court.say("alice", before)
    await court.settle(former)
    assert (await court.approval(name)).status.verdict is None
    await court.settle(before)
    assert (await court.approval(name)).status.verdict is None
    assert stage.proxy.count("PATCH") == 0


async def test_no_verdict_for_a_namesake(stage: Stage) -> None:
    """Seen as gone, and created anew by now: its approvals are its own."""
    court = Court(stage)
    incident = await stage.incident(Phase.AWAITING_APPROVAL)
    name = await court.say("alice", incident)
    await court.settle(None)
    assert (await court.approval(name)).status.verdict is None


async def test_of_two_verdicts_the_first_stands(stage: Stage) -> None:
    """Two replicas at once: the second write is refused by its fence, and nothing is told twice."""
    incident = await stage.incident(Phase.AWAITING_APPROVAL)
    one, two = Court(stage), Court(stage)
    name = await one.say("alice", incident, plan_digest=OTHER)

    async def meanwhile() -> None:
        await two.settle(incident)

    stage.proxy.spoil(first(meanwhile), path="incidentapprovals")
    await one.settle(incident)
    assert (await one.approval(name)).status.verdict == "Refused"
    labels = {"kind": "IncidentApproval", "verdict": "Refused", "reason": "PlanSuperseded"}
    assert (one.count(**labels), two.count(**labels)) == (0, 1)


async def test_a_verdict_whose_answer_was_lost_is_found_at_the_next_look(stage: Stage) -> None:
    """It is final wherever it came from; what could not be written is tried again."""
    court = Court(stage)
    incident = await stage.incident(Phase.AWAITING_APPROVAL)
    name = await court.say("alice", incident, plan_digest=OTHER)
    stage.proxy.spoil(drop_after(), path="incidentapprovals")
    with pytest.raises(RetryLater):
        await court.settle(incident)
    await court.settle(incident)
    assert (await court.approval(name)).status.verdict == "Refused"
    assert stage.proxy.count("PATCH") == 1


async def test_an_approval_that_cannot_be_listed_has_no_verdict(stage: Stage) -> None:
    """A failed read refuses nobody."""
    court = Court(stage)
    incident = await stage.incident(Phase.AWAITING_APPROVAL)
    await court.say("alice", incident, plan_digest=OTHER)
    stage.proxy.spoil(answer(503), method="GET", path="incidentapprovals")
    with pytest.raises(RetryLater):
        await court.settle(incident)
    assert stage.proxy.count("PATCH") == 0


async def test_several_verdicts_in_one_look(stage: Stage) -> None:
    """Each its own, and no more than one write each."""
    court = Court(stage)
    incident = await stage.incident(Phase.AWAITING_APPROVAL)
    names = await asyncio.gather(*(court.say(by, incident, plan_digest=OTHER) for by in ("alice", "bob", "carol")))
    await court.settle(incident)
    assert {(await court.approval(name)).status.verdict for name in names} == {"Refused"}
    assert stage.proxy.count("PATCH") == 3
