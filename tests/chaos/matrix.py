"""The cases: every await point that was found x fault x side x behaviour of the service x number of replicas."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any, Protocol

from praxis.demo.function_compute.faults import Fault as ServiceFault
from praxis.demo.function_compute.faults import Kind
from praxis.machine import Phase
from tests.chaos.run import Script
from tests.chaos.tracing import Fault, Injection, Place, Side

REPLICAS = (1, 3)


class Behaviour(StrEnum):
    """What the service does with the one request that changes something."""

    APPLIES = "applies"
    REJECTS = "rejects"
    APPLIES_THEN_DROPS = "applies-then-drops"
    DROPS = "drops"
    NEVER_ROTATES = "never-rotates"
    GOES_DARK = "goes-dark"

    def faults(self, function: str, *, late: bool) -> list[ServiceFault]:
        """What to arm. Dark it goes before or, `late`, after the request took effect."""
        kinds = {
            Behaviour.REJECTS: Kind.STATUS,
            Behaviour.APPLIES_THEN_DROPS: Kind.DROP_AFTER,
            Behaviour.DROPS: Kind.DROP_BEFORE,
            Behaviour.GOES_DARK: Kind.DARK_AFTER if late else Kind.DARK_BEFORE,
        }
        if self not in kinds:
            return []
        return [
            ServiceFault(
                kind=kinds[self], function=function, times=None, status=400, code="InvalidArgument", message="refused"
            )
        ]


class Part(StrEnum):
    """Whose await points: of the process that decides to act, or of one that finds its intent open."""

    WRITER = "writer"
    HEIR = "heir"
    LOST_INTENT = "lost-intent"
    """Of the process that decides to act, when no answer to its intent's write comes: nothing may be sent."""
    LOST_OUTCOME = "lost-outcome"
    """Of the process that has acted, when no answer to its outcome's write comes, and the next one is refused."""


@dataclass(frozen=True)
class Case:
    """One run; its id says all of it."""

    behaviour: Behaviour
    part: Part
    replicas: int
    fault: Fault | None = None
    place: Place | None = None
    side: Side = Side.REACHED
    late: bool = False

    @property
    def id(self) -> str:
        """`applies/writer/3/killed@5f0c1a.2/answered`, with `/late` for a late wake-up or a late darkness."""
        struck = f"{self.fault}@{self.place}/{self.side}" if self.fault else "undisturbed"
        return f"{self.behaviour}/{self.part}/{self.replicas}/{struck}{'/late' if self.late else ''}"

    @classmethod
    def parse(cls, text: str) -> Case:
        """The case of an id. Raises ValueError."""
        behaviour, part, replicas, struck, *rest = text.split("/")
        late = rest[-1:] == ["late"]
        base = cls(Behaviour(behaviour), Part(part), int(replicas), late=late)
        if struck == "undisturbed":
            return base
        fault, _, where = struck.partition("@")
        point, _, occurrence = where.partition(".")
        place = Place(point, int(occurrence))
        return cls(base.behaviour, base.part, base.replicas, Fault(fault), place, Side(rest[0]), late)

    @property
    def leads_to(self) -> Phase | None:
        """Where it must end when nothing strikes: admitting ignorance is safe, but not where there is proof."""
        if self.fault is not None:
            return None
        if self.part is Part.LOST_INTENT:
            return Phase.INVESTIGATED
        if self.behaviour in {Behaviour.APPLIES, Behaviour.APPLIES_THEN_DROPS}:
            return Phase.OBSERVING
        if self.behaviour is Behaviour.REJECTS and self.part is not Part.HEIR:
            return Phase.INVESTIGATED
        return Phase.RECONCILIATION_REQUIRED

    @property
    def script(self) -> Script:
        """What the conductor plays."""
        injection = Injection(self.fault, self.place, self.side) if self.fault and self.place else None
        return Script(injection, self.replicas, heir=self.part is Part.HEIR, late=self.late)


Recorded = Mapping[tuple[Behaviour, Part], Sequence[Place]]
"""The places of an undisturbed run of each behaviour and part."""


class Undisturbed(Protocol):
    """What a recording gives."""

    case: Case
    places: list[list[Any]]


def recorded(runs: Iterable[Undisturbed]) -> Recorded:
    """The places of all recordings of each kind."""
    found: dict[tuple[Behaviour, Part], list[Place]] = {}
    for run in runs:
        key = (run.case.behaviour, run.case.part)
        places = {Place(*each): None for each in run.places}
        found[key] = list({**dict.fromkeys(found.get(key, [])), **places})
    return found


def recordings() -> list[Case]:
    """The undisturbed runs, from which the places come."""
    # Without a dispatch the service's behaviour makes no difference.
    return [
        Case(behaviour, part, 1)
        for behaviour, part in product(Behaviour, Part)
        if part is not Part.LOST_INTENT or behaviour is Behaviour.APPLIES
    ]


def size(recorded: Recorded) -> int:
    """How many cases there are, not counting late ones twice."""
    return sum(len(places) for places in recorded.values()) * len(Fault) * len(Side) * len(REPLICAS)


def cases(recorded: Recorded, seed: int) -> Iterator[Case]:
    """All cases in a seeded order, and again in another one, without end.

    In turns: one of each point x fault x behaviour x replicas before the second of any, so that few runs see much.
    """
    order = random.Random(seed)
    while True:
        groups: dict[tuple[object, ...], list[Case]] = defaultdict(list)
        for (behaviour, part), places in recorded.items():
            for place, fault, side, replicas in product(places, Fault, Side, REPLICAS):
                case = Case(behaviour, part, replicas, fault, place, side, late=order.random() < 0.5)
                groups[behaviour, part, place.point, fault, replicas].append(case)
        for group in groups.values():
            order.shuffle(group)
        while groups:
            turn = list(groups.values())
            order.shuffle(turn)
            yield from (group.pop() for group in turn)
            groups = {key: group for key, group in groups.items() if group}
