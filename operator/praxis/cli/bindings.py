"""Which record each trail entry binds, and whether it is there: present and matching, present and differing, or absent.

What the newest decisions rest on stays in status: a record that is missing there differs. Earlier plans and approvals
are replaced in status, people's statements are objects of their own, and model runs never were in status: those are
found among the records of the flight recorder, or are absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from praxis.api.incident import EntryKind
from praxis.api.plan import Tier
from praxis.api.records import (
    APPROVALS,
    CLASSIFICATION,
    CORRECTIONS,
    DIAGNOSIS,
    PLAN,
    bound_approval,
    evidence_digest_of,
    fields_digest,
    fields_of,
    fields_record,
    intent_digest,
    named_in,
    outcome_digest,
    plan_digest_of,
)
from praxis.cli.kept import Kept
from praxis.cli.testimony import Statements
from praxis.digest import PREFIX
from praxis.machine import Phase

Document = Mapping[str, Any]


class State(StrEnum):
    """Whether the record that an entry binds is there."""

    NOTHING = "binds no record"
    MATCHES = "matches"
    DIFFERS = "differs"
    ABSENT = "absent"


@dataclass(frozen=True)
class Binding:
    """The record that an entry binds, in words, and whether it is there; `detail` says how it differs.

    `missing` are the records that are nowhere to be found, in words and by digest: that of the entry, and those that it
    names by digest.
    """

    state: State
    what: str = ""
    detail: str = ""
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = self.detail or (f"{self.state}: {self.what}" if self.what else str(self.state))
        beside = len(self.missing) if self.state is State.MATCHES else 0
        return f"{said}; {beside} absent" if beside else said


@dataclass(frozen=True)
class Records:
    """All that the entries of one trail may bind."""

    uid: str
    status: Document
    trail: Sequence[Document]
    statements: Statements
    kept: Kept = field(default_factory=Kept)

    def binding(self, index: int) -> Binding:
        """What the entry binds, and whether that and all that it names is there."""
        binds = bound(self.trail[index])
        if binds in self.kept.altered:
            return self._altered(binds)
        binding = self._content(index)
        if binding.state is State.ABSENT and binds not in self.kept.documents:
            return replace(binding, missing=(f"{binding.what} {binds}",))
        if binding.state is State.ABSENT:
            binding = self._judged(index, binding)
        return binding if binding.state is State.DIFFERS else self._with_named(index, binding)

    def _judged(self, index: int, absent: Binding) -> Binding:
        """The entry's record out of the recorder. It is what the entry binds; it must hold in itself too."""
        document = mapping(self.kept.documents[bound(self.trail[index])])
        if "plan" in document and (fault := self._plan_fault(mapping(document["plan"]))):
            return differs(f"the recorded {fault}")
        return Binding(State.MATCHES, f"{absent.what}, recorded")

    def _with_named(self, index: int, binding: Binding) -> Binding:
        """The same, with what the entry's record names by digest and is not there."""
        missing = []
        for what, named in named_in(self._record(index)):
            if named in self.kept.altered:
                return self._altered(named, what)
            held = named == self.status.get("evidenceDigest") or named in self.kept.documents
            missing += [] if held else [f"{what} {named}"]
        return replace(binding, missing=tuple(missing))

    def _record(self, index: int) -> Document:
        """The record of a change of phase: out of the recorder, or out of status, where it stands unless replaced."""
        entry = self.trail[index]
        binds = bound(entry)
        if binds in self.kept.documents:
            return mapping(self.kept.documents[binds])
        fields = fields_of(str(entry.get("phase")), str(entry.get("reason")))
        changed = entry.get("kind") == EntryKind.PHASE_CHANGED and fields != CORRECTIONS
        return fields_record(self.status, fields) if changed and not self._replaced(index) else {}

    def _altered(self, digest: str, what: str = "record") -> Binding:
        return differs(f"the {what} {digest} was altered: its content hashes to {self.kept.altered[digest]}")

    def _content(self, index: int) -> Binding:
        """What the entry binds, and whether that is in status or among the statements."""
        looks: dict[str, Callable[[int], Binding]] = {
            EntryKind.PHASE_CHANGED: self._phase_changed,
            EntryKind.DECIDED: self._stated,
            EntryKind.RECONCILED: self._stated,
            EntryKind.INTENT_RECORDED: self._intent,
            EntryKind.OUTCOME_RECORDED: self._outcome,
        }
        look = looks.get(str(self.trail[index].get("kind")))
        if look is None:
            return Binding(State.ABSENT, "a record of a kind that this version does not know")
        return look(index)

    def unrecorded(self) -> list[str]:
        """What status, or a person's statement, holds although no entry records it."""
        result = []
        reached = {self._decides(index) for index in range(len(self.trail))}
        for phase, fields in (
            (Phase.TRIAGED, CLASSIFICATION),
            (Phase.INVESTIGATED, (*DIAGNOSIS, "evidence")),
            (Phase.AWAITING_APPROVAL, PLAN),
            (Phase.EXECUTING, APPROVALS),
        ):
            held = [name for name in fields if self.status.get(name)]
            if held and (phase, fields[0]) not in reached:
                result.append(f"status holds {', '.join(held)}, and no entry of the trail records it")
        if self.status.get("corrections") and not self._corrected():
            result.append("status holds corrections, and no entry of the trail records them")
        for kind, part in ((EntryKind.INTENT_RECORDED, "intent"), (EntryKind.OUTCOME_RECORDED, "outcome")):
            recorded = sum(each.get("kind") == kind for each in self.trail)
            held_parts = sum(part in each for each in self._steps())
            if held_parts > recorded:
                result.append(f"status holds {held_parts} steps with an {part}, and the trail records {recorded}")
        return [*result, *self.statements.unrecorded()]

    def _phase_changed(self, index: int) -> Binding:
        entry = self.trail[index]
        looks = {PLAN: self._plan, CORRECTIONS: self._corrections, APPROVALS: self._approvals}
        fields = fields_of(str(entry.get("phase")), str(entry.get("reason")))
        if look := looks.get(fields):
            return look(index)
        if fields:
            return self._settled(index)
        return Binding(State.ABSENT, "a record that this version does not know") if bound(entry) else NOTHING

    def _plan(self, index: int) -> Binding:
        binds = bound(self.trail[index])
        if self._replaced(index):
            return Binding(State.ABSENT, f"earlier plan {self._revision(index)}")
        plan = mapping(self.status.get("plan"))
        if not plan:
            return differs(f"it binds {binds}, and status holds no plan")
        if fault := self._plan_fault(plan):
            return differs(f"the stored {fault}")
        if computed(lambda: fields_digest(self.status, PLAN)) != binds:
            return differs("the plan, guards and quorum in status are not those that it binds")
        return Binding(State.MATCHES, f"plan {short(str(plan.get('digest')))}")

    def _revision(self, index: int) -> int:
        """The revision of the plan that an entry proposes: the first is 1, and each entry proposes the next."""
        return sum(self._decides(each) == self._decides(index) for each in range(index + 1))

    def _plan_fault(self, plan: Document) -> str:
        """In what a plan does not hold in itself; empty when it does."""
        digest = plan.get("digest")
        if computed(lambda: plan_digest_of(plan, incident_uid=self.uid)) != digest:
            return f"plan is not what its digest {digest} names: its actions were changed since it was drafted"
        if plan.get("evidenceDigest") != self.status.get("evidenceDigest"):
            return "evidence is not the evidence that the plan rests on"
        if plan.get("short") != short(str(digest)) or plan.get("tier") != highest(plan.get("actions")):
            return "plan's short digest or tier is not that of its content"
        return ""

    def _settled(self, index: int) -> Binding:
        """A classification or a diagnosis: made once, and never changed."""
        entry = self.trail[index]
        fields = fields_of(str(entry.get("phase")), str(entry.get("reason")))
        if fields == DIAGNOSIS and self._evidence_differs():
            return differs("the stored evidence is not the evidence that the plan rests on")
        if computed(lambda: fields_digest(self.status, fields)) != bound(entry):
            return differs(f"{', '.join(fields)} in status: not what it binds")
        if not bound(entry):
            return NOTHING
        return Binding(State.MATCHES, "evidence, diagnosis" if fields == DIAGNOSIS else fields[0])

    def _evidence_differs(self) -> bool:
        evidence, of = self.status.get("evidence") or [], self.status.get("evidenceDigest")
        return bool(evidence or of) and computed(lambda: evidence_digest_of(evidence)) != of

    def _corrections(self, index: int) -> Binding:
        binds = bound(self.trail[index])
        if not binds:
            return NOTHING
        texts = self.status.get("corrections") or []
        lengths = range(len(texts) + 1) if isinstance(texts, list) else range(0)
        # Corrections are only ever added: what an earlier entry binds is the beginning of the list.
        for length in lengths if index != self._corrected()[-1] else lengths[-1:]:
            part = {CORRECTIONS[0]: texts[:length]}
            if computed(lambda part=part: fields_digest(part, CORRECTIONS)) == binds:  # type: ignore[misc]
                return Binding(State.MATCHES, f"corrections 1 to {length}")
        return differs("the corrections in status are not those that it binds")

    def _approvals(self, index: int) -> Binding:
        binds = bound(self.trail[index])
        if not self._replaced(index):
            if computed(lambda: fields_digest(self.status, APPROVALS)) != binds:
                return differs("the approvals in status are not those that it binds")
            return Binding(State.MATCHES, "approvals in status")
        # Replaced in status since; the statements that were recorded right before are what was copied.
        first = index
        while first > 0 and self.trail[first - 1].get("kind") == EntryKind.DECIDED:
            first -= 1
        given = [self.statements.recorded(bound(each)) for each in self.trail[first:index]]
        if None in given:
            return Binding(State.ABSENT, "earlier approvals")
        copied = (bound_approval(each) for each in given if each is not None)
        if computed(lambda: fields_digest({APPROVALS[0]: list(copied)}, APPROVALS)) != binds:
            return differs("the approvals that were recorded before it are not those that it binds")
        return Binding(State.MATCHES, "earlier approvals")

    def _stated(self, index: int) -> Binding:
        found, matches = self.statements.of(index)
        if found is None:
            kind = self.statements.kind_of(self.trail[index])
            return Binding(State.ABSENT, f"{kind} of {self.trail[index].get('actor')}")
        named = f"{found.get('kind')} {mapping(found.get('metadata')).get('name')}"
        return Binding(State.MATCHES, named) if matches else differs(f"{named} is not what it binds")

    def _intent(self, index: int) -> Binding:
        return self._step(index, "intent", intent_digest)

    def _outcome(self, index: int) -> Binding:
        return self._step(index, "outcome", outcome_digest)

    def _step(self, index: int, part: str, digest_of: Callable[[Document], str]) -> Binding:
        binds = bound(self.trail[index])
        for step in self._steps():
            if part in step and binds and computed(lambda step=step: digest_of(step)) == binds:  # type: ignore[misc]
                return Binding(State.MATCHES, f"{part} of {step.get('action')}, revision {step.get('revision')}")
        return differs(f"no step in status has the {part} that it binds")

    def _steps(self) -> list[Document]:
        steps = self.status.get("steps") or []
        return [mapping(each) for each in steps] if isinstance(steps, list) else []

    def _decides(self, index: int) -> tuple[str, str]:
        """The phase that the entry changes to, and the first field that it decides; two empty strings for others."""
        entry = self.trail[index]
        if entry.get("kind") != EntryKind.PHASE_CHANGED:
            return "", ""
        phase, reason = str(entry.get("phase")), str(entry.get("reason"))
        fields = fields_of(phase, reason)
        return phase, fields[0] if fields else ""

    def _replaced(self, index: int) -> bool:
        """Whether a later entry decides the same anew."""
        return any(self._decides(later) == self._decides(index) for later in range(index + 1, len(self.trail)))

    def _corrected(self) -> list[int]:
        """The entries that bind corrections."""
        return [
            index
            for index, entry in enumerate(self.trail)
            if self._decides(index)[1] == CORRECTIONS[0] and bound(entry)
        ]


NOTHING = Binding(State.NOTHING)


def differs(detail: str) -> Binding:
    """The record is there and is another, or is missing where it must be."""
    return Binding(State.DIFFERS, detail=detail)


def bound(entry: Document) -> str:
    """The digest of the record that an entry binds; empty when it binds none."""
    return str(entry.get("digest") or "")


def short(digest: str) -> str:
    """The first digits of a digest, as `kubectl get incidents` shows them."""
    return digest.removeprefix(PREFIX)[:12]


def highest(actions: Any) -> str | None:
    """The highest tier of stored actions; None when one has no known tier."""
    order = list(Tier)
    try:
        return max((Tier(each["tier"]) for each in actions), key=order.index).value
    except (KeyError, TypeError, ValueError):
        return None


def computed(digest: Callable[[], str]) -> str | None:
    """A digest, or None: a document of another shape has no digest, and so is not what any entry binds."""
    try:
        return digest()
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None


def mapping(value: Any) -> Document:
    """The value when it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}
