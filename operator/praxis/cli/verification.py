"""Whether an incident's trail holds, from documents alone: pure, no cluster, no clock.

The stored documents are verified, not a model's view of them: a hash covers the fields of newer versions too. Nothing
in a document is trusted to have its type.

A hash chain shows that what is there was not altered in part. Whoever may rewrite all of it can also hash all of it
anew: compare the head with one that was noted elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from praxis.cli.bindings import Binding, Document, Records, State, mapping
from praxis.cli.kept import Kept
from praxis.cli.testimony import Statements
from praxis.digest import chain_fault
from praxis.machine import Phase
from praxis.recorder.contract import Record


@dataclass(frozen=True)
class Verified:
    """One entry: what is wrong with its place in the chain ("" when it holds), and the record that it binds.

    `vouched` is false behind the first break of the chain: such entries cannot be said to belong here.
    """

    index: int
    entry: Document
    fault: str
    binding: Binding
    vouched: bool = True

    @property
    def problem(self) -> str:
        """What is wrong with the entry or its record; empty when it holds."""
        return self.fault or (self.binding.detail if self.binding.state is State.DIFFERS else "")


@dataclass(frozen=True)
class Report:
    """An incident's trail, entry by entry, and what is wrong beside its entries."""

    key: str
    uid: str
    head: str
    entries: tuple[Verified, ...]
    beside: tuple[str, ...]
    kept: Kept

    @property
    def missing(self) -> list[str]:
        """The records that are bound and nowhere to be found, each with its entry."""
        return [f"entry {each.index}: {what}" for each in self.entries for what in each.binding.missing]

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong, the first broken entry first.

        A break of the chain goes before a record that differs: behind it, which records there must be is not known.
        """
        broken = sorted((each for each in self.entries if each.problem), key=lambda each: not each.fault)
        altered = [
            f"record {claimed} was altered: its content hashes to {hashed}"
            for claimed, hashed in self.kept.altered.items()
            if not any(claimed in each.problem for each in broken)
        ]
        return [*(f"trail entry {each.index}: {each.problem}" for each in broken), *self.beside, *altered]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong; absent records are no fault."""
        return not self.problems

    def count(self, state: State) -> int:
        """How many entries have a record in that state."""
        return sum(each.binding.state is state for each in self.entries)


def verify(incident: Document, statements: Sequence[Document] = (), kept: Sequence[Record] = ()) -> Report:
    """Verify a stored incident; `statements` are stored approvals and reconciliations, `kept` are records of the
    flight recorder, both of whatever incident."""
    meta, status = mapping(incident.get("metadata")), mapping(incident.get("status"))
    trail = status.get("trail") or []
    listed = [mapping(each) for each in trail] if isinstance(trail, list) else []
    uid = meta.get("uid")
    text = uid if isinstance(uid, str) else ""
    broken, fault = chain_fault(text, listed) or (len(listed), "")
    ours = Kept.of(text, kept)
    records = Records(text, status, listed, Statements.on(text, status, listed, statements), ours)
    entries = tuple(
        Verified(index, entry, fault if index == broken else "", records.binding(index), vouched=index <= broken)
        for index, entry in enumerate(listed)
    )
    beside = [*([] if isinstance(trail, list) else ["status.trail is no list"]), *_ends(uid, status, listed)]
    return Report(
        key=f"{meta.get('namespace') or 'default'}/{meta.get('name') or '?'}",
        uid=str(uid),
        head=str(status.get("head") or ""),
        entries=entries,
        beside=(*beside, *records.unrecorded()),
        kept=ours,
    )


def _ends(uid: Any, status: Document, trail: Sequence[Document]) -> list[str]:
    """What the status says of the trail's end."""
    result = [] if isinstance(uid, str) and uid else ["the incident has no metadata.uid: a trail begins at its hash"]
    phase, head = status.get("phase", Phase.NEW.value), status.get("head")
    if not trail:
        return [
            *result,
            *(["status.head is set, and there is no trail"] if head else []),
            *([] if phase == Phase.NEW else [f"the phase is {phase}, and there is no trail"]),
        ]
    if head != trail[-1].get("hash"):
        result.append("status.head is not the hash of the last trail entry")
    if phase != trail[-1].get("phase"):
        result.append(f"the phase is {phase}, and the last trail entry says {trail[-1].get('phase')}")
    return result
