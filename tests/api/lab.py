"""Leads incidents through their life on a real API server, write by write, so that a test can bend any one of them.

Objects are the documents of the API server. `put` and `go` fill in whatever an honest writer would have written along
with a change (trail entries, head, time of the phase), unless the test says otherwise; None removes a field.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import GROUP, VERSION, Resource
from praxis.api.incident import Incident
from praxis.api.plan import Action, ActionType
from praxis.api.target import RemediationTarget
from praxis.digest import digest, genesis, link
from praxis.kube import Kube, resource_path
from tests import builders

Document = dict[str, Any]

TIME = "2026-01-31T12:00:00.000000Z"
FOREIGN = "sha256:" + "f" * 64
REAL, DRY = "restart", "configure"
"""Ids of the two actions of the usual plan."""
GUARDS = [{"kind": "ValidatingAdmissionPolicy", "name": "praxis-approvals-by-people", "uid": "g1", "generation": 1}]
CLASSIFICATION = {
    "category": "MemoryLeak",
    "severity": "critical",
    "service": "checkout",
    "summary": "Checkout is slow.",
    "model": "qwen-flash",
}
DIAGNOSIS = {"summary": "The function leaks memory.", "claims": [], "confidence": "high", "model": "qwen3.7-max"}
EVIDENCE = [each.dump() for each in builders.evidence()]
EVIDENCE_DIGEST = digest(EVIDENCE)
ALERT = builders.alert().dump()


def actions() -> list[Action]:
    """A restart, which is real, and a change of configuration, which is a dry run."""
    return [builders.action(id=REAL), builders.action(ActionType.UPDATE_CONFIG, id=DRY)]


def plan(revision: int = 1, of: Sequence[Action] = (), **changes: Any) -> Document:
    """A plan as it is stored; `changes` come after its digest is computed."""
    document = builders.plan(revision=revision, actions=list(of) or actions()).dump()
    return {**document, **changes}


def bent(document: Document, index: int, **changes: Any) -> Document:
    """A plan with one of its actions changed past what the model takes; its digest stays."""
    bent_actions = [{**each, **changes} if n == index else each for n, each in enumerate(document["actions"])]
    return {**document, "actions": bent_actions}


def approval(person: str = "alice", *, of: Document, uid: str | None = None) -> Document:
    """An approval of a plan, as it is bound in status."""
    return {
        "uid": uid or f"uid-{person}-{of['revision']}",
        "name": f"approve-{person}",
        "approver": person,
        "planDigest": of["digest"],
        "expiresAt": TIME,
    }


def step(
    action: str,
    result: str | None = None,
    *,
    revision: int = 1,
    intent: bool | None = None,
    intent_id: str | None = None,
    writer: str = "writer-a",
    concluded_by: str = "writer-a",
    proof: str = "PRAXIS_RESTART_ID is in force",
) -> Document:
    """A step; without `intent` it has one exactly if its result is no dry run."""
    made: Document = {"revision": revision, "action": action}
    if intent if intent is not None else result != "DryRun":
        made["intent"] = {
            "id": intent_id or f"intent-{revision}-{action}",
            "writer": writer,
            "time": TIME,
            "baseline": {"state": FOREIGN, "lastModified": "", "instances": []},
        }
    if result is not None:
        made["outcome"] = {
            "result": result,
            "reason": result,
            "message": "",
            "proof": proof if result == "Applied" else "",
            "instancesAfter": [],
            "writer": concluded_by,
            "time": TIME,
        }
    return made


def extended(stored: Document, *records: Document | str, phase: str | None = None) -> list[Document]:
    """The trail of an incident with entries appended; a record is a kind, or fields of an entry."""
    trail = list(stored["status"]["trail"])
    for record in records:
        fields = {"kind": record} if isinstance(record, str) else record
        entry = {
            "seq": len(trail),
            "time": TIME,
            "actor": builders.OPERATOR,
            "phase": phase or stored["status"]["phase"],
            "reason": "Test",
            "digest": "",
            **fields,
        }
        trail.append(dict(link(trail[-1]["hash"] if trail else genesis(stored["metadata"]["uid"]), entry)))
    return trail


def decided(person: str) -> Document:
    """The trail entry of a person's decision."""
    return {"kind": "Decided", "actor": person}


class Lab:
    """One namespace of one API server; `author` writes specs, `operator` writes status."""

    def __init__(self, *, author: Kube, operator: Kube, namespace: str = "default") -> None:
        self.author = author
        self.operator = operator
        self.namespace = namespace

    def path(self, kind: type[Resource], name: str | None = None, subresource: str | None = None) -> str:
        """The path of an object in this namespace."""
        return resource_path(f"/apis/{GROUP}/{VERSION}", kind.plural, self.namespace, name, subresource)

    async def create(self, document: Document, kind: type[Resource]) -> Document:
        """Create an object under a name of its own."""
        named = copy.deepcopy(document)
        named["metadata"] = {"generateName": "lab-", "namespace": self.namespace}
        return (await self.author.create(self.path(kind), named)).document

    async def new(self, **spec: Any) -> Document:
        """An incident that fires; `spec` changes fields of its spec, as they are on the wire."""
        document = builders.manifest(builders.history(builders.Phase.NEW)[0])
        document["spec"] |= spec
        return await self.create(document, Incident)

    async def merge(self, stored: Document, **spec: Any) -> Document:
        """What the gateway does: change fields of the spec."""
        return (await self.author.merge_patch(self.path(Incident, stored["metadata"]["name"]), {"spec": spec})).document

    async def alerts(self, stored: Document, *statuses: str) -> Document:
        """Replace the alerts by one for each status."""
        return await self.merge(
            stored, alerts=[{**ALERT, "fingerprint": f"f{n}", "status": each} for n, each in enumerate(statuses, 1)]
        )

    async def put(self, stored: Document, *records: Document | str, **changes: Any) -> Document:
        """Write the status with some fields changed, and with the trail entries that go with the change."""
        before = stored["status"]
        after = {**before, **changes}
        moved = after["phase"] != before["phase"]
        if "trail" not in changes:
            kinds = [*records, *_step_records(before["steps"], after["steps"]), *(["PhaseChanged"] if moved else [])]
            after["trail"] = extended(stored, *kinds, phase=after["phase"])
        if "head" not in changes:
            after["head"] = after["trail"][-1]["hash"] if after["trail"] else None
        if moved and "phaseTimes" not in changes:
            after["phaseTimes"] = {**before["phaseTimes"], after["phase"]: TIME}
        return await self.write_status(stored, {key: value for key, value in after.items() if value is not None})

    async def write_status(self, stored: Document, status: Document, kind: type[Resource] = Incident) -> Document:
        """Write a whole status, as it is."""
        path = self.path(kind, stored["metadata"]["name"], "status")
        return (await self.operator.json_patch(path, [{"op": "add", "path": "/status", "value": status}])).document

    async def wipe_status(self, stored: Document, kind: type[Resource] = Incident) -> Document:
        """Remove the status."""
        path = self.path(kind, stored["metadata"]["name"], "status")
        return (await self.operator.json_patch(path, [{"op": "remove", "path": "/status"}])).document

    async def go(self, stored: Document, phase: str, *records: Document | str, **changes: Any) -> Document:
        """Enter a phase with all that it needs, where `changes` do not say otherwise."""
        needed = self._needed(stored, phase)
        filled = {**needed, **changes}
        if phase == "Executing" and not records:
            records = tuple(decided(each["approver"]) for each in filled.get("approvals", []))
        return await self.put(stored, *records, phase=phase, **filled)

    def _needed(self, stored: Document, phase: str) -> Document:
        status = stored["status"]
        match phase:
            case "Triaged":
                return {"classification": CLASSIFICATION} if status["phase"] == "New" else {}
            case "Investigated" if status["phase"] == "Triaged":
                return {"evidence": EVIDENCE, "evidenceDigest": EVIDENCE_DIGEST, "diagnosis": DIAGNOSIS}
            case "AwaitingApproval" if status["phase"] == "Investigated":
                revision = status["plan"]["revision"] + 1 if "plan" in status else 1
                return {"plan": plan(revision), "guards": GUARDS, "approvalsRequired": 1}
            case "Executing" if status["phase"] == "AwaitingApproval":
                return {"approvals": [approval(of=status["plan"])]}
            case "Closed":
                return {"reason": "Dismissed"}
            case _:
                return {}

    # ---- the stations of a life ----

    async def triaged(self) -> Document:
        """Classified."""
        return await self.go(await self.new(), "Triaged")

    async def investigated(self) -> Document:
        """Diagnosed."""
        return await self.go(await self.triaged(), "Investigated")

    async def awaiting(self, **changes: Any) -> Document:
        """A plan is proposed."""
        return await self.go(await self.investigated(), "AwaitingApproval", **changes)

    async def executing(self, **changes: Any) -> Document:
        """The plan is approved."""
        return await self.go(await self.awaiting(**changes), "Executing")

    async def intent(self) -> Document:
        """An intent is recorded."""
        return await self.put(await self.executing(), steps=[step(REAL)])

    async def outcome(self, result: str) -> Document:
        """The real action has an outcome, the other is a dry run."""
        return await self.put(await self.intent(), steps=[step(REAL, result), step(DRY, "DryRun")])

    async def dry_only(self) -> Document:
        """A plan of dry runs, carried out."""
        only = plan(of=[builders.action(ActionType.UPDATE_CONFIG, id=DRY)])
        return await self.put(await self.executing(plan=only), steps=[step(DRY, "DryRun")])

    async def observing(self) -> Document:
        """Applied."""
        return await self.go(await self.outcome("Applied"), "Observing")

    async def cleared(self) -> Document:
        """Applied, and the alerts have cleared."""
        return await self.alerts(await self.observing(), "resolved")

    async def second_round(self) -> Document:
        """Not applied, planned anew, approved anew; the next steps are of revision 2."""
        again = await self.go(await self.outcome("NotApplied"), "Investigated")
        return await self.go(await self.go(again, "AwaitingApproval"), "Executing")

    async def at(self, phase: str) -> Document:
        """An incident in a phase, by a usual way."""
        match phase:
            case "New":
                return await self.new()
            case "Triaged":
                return await self.triaged()
            case "Investigated":
                return await self.investigated()
            case "AwaitingApproval":
                return await self.awaiting()
            case "Executing":
                return await self.executing()
            case "Observing":
                return await self.observing()
            case "Resolved":
                return await self.go(await self.cleared(), "Resolved")
            case "ReconciliationRequired":
                return await self.go(await self.outcome("Unknown"), "ReconciliationRequired")
            case _:
                return await self.go(await self.new(), phase)

    # ---- the other kinds ----

    async def decision(self, **spec: Any) -> Document:
        """An IncidentApproval; `spec` changes fields of its spec."""
        document = builders.manifest(builders.approval())
        document["spec"] |= spec
        return await self.create(document, IncidentApproval)

    async def finding(self, **spec: Any) -> Document:
        """An IncidentReconciliation; `spec` changes fields of its spec."""
        document = builders.manifest(builders.reconciliation())
        document["spec"] |= spec
        return await self.create(document, IncidentReconciliation)

    async def target(self, **function: Any) -> Document:
        """A RemediationTarget; `function` changes fields of its functionCompute."""
        document = builders.manifest(builders.target())
        document["spec"]["functionCompute"] |= function
        return await self.create(document, RemediationTarget)

    async def held(self, intent: str = "intent-00000001") -> Document:
        """A target with a holder."""
        return await self.write_status(await self.target(), {"holder": holder(intent)}, RemediationTarget)

    async def patch_spec(self, stored: Document, kind: type[Resource], **spec: Any) -> Document:
        """Change fields of the spec of any kind."""
        return (await self.author.merge_patch(self.path(kind, stored["metadata"]["name"]), {"spec": spec})).document


def holder(intent: str = "intent-00000001", **changes: Any) -> Document:
    """A holder of a target."""
    return {
        "incidentUid": builders.INCIDENT_UID,
        "incidentName": builders.INCIDENT,
        "revision": 1,
        "intentId": intent,
        "writer": "writer-a",
        "claimedAt": TIME,
        **changes,
    }


def _step_records(before: Sequence[Document], after: Sequence[Document]) -> list[str]:
    """A trail entry for each intent and each outcome that is more than before."""
    more = {
        kind: sum(field in each for each in after) - sum(field in each for each in before)
        for kind, field in (("IntentRecorded", "intent"), ("OutcomeRecorded", "outcome"))
    }
    return [kind for kind, count in more.items() for _ in range(max(0, count))]
