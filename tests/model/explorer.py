"""Every order in which a few processes, faults, people and time can come; of what goes wrong, a shortest way is told.

A state is the world, and of each process its memory, what it has been told in the look that it is in the middle of, and
where it stands. States are one if they differ only in names (which of two equal processes is which, the intents' ids)
or in when everything began. From each, everything that can happen next is tried, by the real program (see `looks`); one
that was seen before is not gone on from. So within its bounds a scenario is explored whole.

The bounds, and why they are enough to find what is wrong:

- two processes: all that one does can only be disturbed by another through what is stored, and what a third could do
  there, the second can; a process that is killed is replaced by a fresh one, so that there may be three in a life
- one or two incidents on one function: a holder keeps everybody out alike
- a bounded number of faults on a way (`Budget`): processes killed, status writes lost before or after they are stored
  or stored late, changes by people and others, long times that pass. Each guard is there for one of them, most often,
  and rarely for two at once; `guards` shows that it takes no more to see any one of them missing
- a process is stopped before each read on which it decides, claim, status write, send and proof. In between, it reads
  what nothing that can happen changes together with what it read before: policies, targets, the function. Re-read,
  permit and send are one step: between the last look at the clock and the send, no program could do better
- time passes in jumps past the dispatch window, the wait before settling, the end of approvals; all else is instant
- clocks agree, and the API server's own rules are not asked but for two on alerts: `test_machine_model` has them off,
  tests/api ask the rules
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from praxis.errors import AnswerLost, PraxisError
from praxis.machine import Phase
from tests.model.invariants import landed, quiet, sent
from tests.model.looks import Ask, Kind, Look, Memory, acted, look
from tests.model.situation import ModelWorld, canonical
from tests.phases.processes import Fate
from tests.phases.world import Answer

IDLE = frozenset({Phase.CLOSED, Phase.FAILED})
NOTHING = Memory()
HEALTHY = "writer-99"
ROUNDS = 24
ENOUGH_FAILURES = 3
"""As many in a row say whatever more would."""
QUIESCENCE = (0.0, 26.0, 1.0)
"""Seconds that pass between the rounds of a healthy process: the last finds nothing left to wait for."""


@dataclass(frozen=True)
class Behaviour:
    """What the function makes of a request."""

    answer: Answer = Answer.ACCEPTED
    rotates: bool = True
    dark: bool = False

    @property
    def name(self) -> str:
        """For traces."""
        return f"{self.answer}{'' if self.rotates else ', never rotates'}{', goes dark' if self.dark else ''}"


@dataclass(frozen=True)
class Event:
    """What people, alerts or others do; `do` returns False where it cannot happen."""

    name: str
    do: Callable[[ModelWorld], bool]


@dataclass(frozen=True)
class Budget:
    """How much may go wrong on one way; `faults` bounds the sum of all."""

    faults: int = 1
    kills: int = 1
    fates: int = 1
    events: int = 1
    jumps: int = 1

    def spent(self, what: str) -> Budget:
        """One less."""
        return replace(self, faults=self.faults - 1, **{what: getattr(self, what) - 1})

    def allows(self, what: str) -> bool:
        """Whether there is one left."""
        return self.faults > 0 and getattr(self, what) > 0


@dataclass(frozen=True)
class Scenario:
    """Where it starts, and what can happen."""

    name: str
    start: Callable[[], ModelWorld]
    processes: int = 2
    behaviours: Sequence[Behaviour] = (Behaviour(),)
    events: Sequence[Event] = ()
    jumps: Sequence[float] = ()
    budget: Budget = Budget()
    live: bool = True


@dataclass(frozen=True)
class Process:
    """One operator process: idle, or in the middle of a look."""

    name: str
    memory: Memory = NOTHING
    look: Look | None = None

    def text(self, versions: Mapping[str, str], now: float) -> str:
        """What it knows, and of what it read, what is still as it was read."""
        if self.look is None:
            return self.memory.text(now)
        current = "".join(str(int(versions.get(uid) == version)) for uid, version in self.look.read)
        return f"{self.memory.text(now)}\n{self.look.text}\n{current}{self.look.when(now)}"


@dataclass
class State:
    """A state, and how it came about."""

    world: ModelWorld
    processes: tuple[Process, ...]
    budget: Budget
    before: State | None = None
    by: str = ""

    @property
    def key(self) -> bytes:
        """The same for states from which the same can happen."""
        world, versions = f"{self.world.text}\n{self.budget}", self.world.versions
        each = [process.text(versions, self.world.time.boot) for process in self.processes]
        orders = [each] if len(set(each)) < 2 else [each, each[::-1]]
        text = min(canonical([world, *order]) for order in orders)
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    def unused(self) -> str:
        """A name that no process has or has left anywhere."""
        text = self.world.text + "".join(each.name for each in self.processes)
        return next(name for name in map("writer-{}".format, count(1)) if name not in text)

    @property
    def trace(self) -> list[str]:
        """What happened, from the start."""
        steps: list[str] = []
        state: State | None = self
        while state is not None and state.by:
            steps.append(state.by)
            state = state.before
        return steps[::-1]


@dataclass(frozen=True)
class Violation:
    """What does not hold, and the way there."""

    what: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([self.what, *(f"  {number:2} {step}" for number, step in enumerate(self.trace, 1))])


@dataclass
class Explored:
    """What was found."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    violations: list[Violation] = field(default_factory=list)
    whole: bool = True


def explore(scenario: Scenario, *, most: int | None = None, deepest: int | None = None) -> Explored:
    """Go everywhere, until something is wrong. It says whether `most` states or the `deepest` way ended it early."""
    names = [f"writer-{number}" for number in range(1, scenario.processes + 1)]
    start = State(scenario.start(), tuple(map(Process, names)), scenario.budget)
    explored, seen, live = Explored(), {start.key}, set[bytes]()
    frontier = deque([(start, 0)])
    while frontier:
        state, depth = frontier.popleft()
        explored.states += 1
        explored.depth = max(explored.depth, depth)
        if scenario.live:
            explored.violations += stuck(state, live)
        if deepest is not None and depth >= deepest:
            explored.whole = False
            continue
        for following in successors(state, scenario):
            explored.transitions += 1
            wrong = following.world.wrong
            if wrong:
                explored.violations += [Violation(each, tuple(following.trace)) for each in wrong]
                continue
            key = following.key
            if key not in seen:
                seen.add(key)
                frontier.append((following, depth + 1))
        if explored.violations or (most is not None and explored.states >= most):
            explored.whole = explored.whole and not frontier
            break
    return explored


def successors(state: State, scenario: Scenario) -> Iterator[State]:
    """Every state that one thing leads to."""
    for index, process in enumerate(state.processes):
        if process.look is None:
            yield from looks(state, index)
        else:
            yield from steps(state, index, scenario)
        if state.budget.allows("kills") and (process.look is not None or process.memory != NOTHING):
            yield changed(state, index, Process(state.unused()), f"{process.name} is killed", spent="kills")
    yield from happenings(state, scenario)


def looks(state: State, index: int) -> Iterator[State]:
    """An idle process begins to look at an incident."""
    process = state.processes[index]
    for incident in state.world.incidents.values():
        if incident.status.phase in IDLE:
            continue
        begun = look(process.name, incident.metadata.name, process.memory, state.world.time.boot)
        following = replace(process, look=begun)
        yield from advanced(state, index, following, f"{process.name} looks at {incident.metadata.name}")


def steps(state: State, index: int, scenario: Scenario) -> Iterator[State]:
    """A process gets what it asked for; a status write may be lost on its way, or its answer."""
    process = state.processes[index]
    assert process.look is not None
    assert process.look.ask is not None
    label = f"{process.name}: {process.look.ask.label}"
    yield from advanced(state, index, process, label, behaviours=scenario.behaviours)
    if process.look.ask.kind is Kind.WRITE and state.budget.allows("fates"):
        for fate in (Fate.LOST_BEFORE, Fate.LOST_AFTER, Fate.LATE):
            yield from advanced(state, index, process, f"{label}, {fate}", fate=fate)


def advanced(
    state: State,
    index: int,
    process: Process,
    by: str,
    *,
    fate: Fate = Fate.ANSWERED,
    behaviours: Sequence[Behaviour] = (Behaviour(),),
) -> Iterator[State]:
    """The process is answered until others may come between again; at a send, by each behaviour of the function."""
    world = state.world.copy()
    look = process.look
    assert look is not None
    look = answered(world, look, fate)
    while look.ask is not None and not look.ask.stands:
        if look.ask.kind is Kind.SEND:
            for behaviour in behaviours:
                yield from sending(state, index, process, world=world, look=look, by=by, behaviour=behaviour)
            return
        look = answered(world, look)
    yield arrived(state, index, process, world=world, look=look, by=by, fate=fate)


def sending(
    state: State, index: int, process: Process, *, world: ModelWorld, look: Look, by: str, behaviour: Behaviour
) -> Iterator[State]:
    """The send, and what the function makes of it."""
    after = world.copy()
    sent(after, look)
    after.function.answer, after.function.rotates = behaviour.answer, behaviour.rotates
    look = answered(after, look)
    after.function.dark = behaviour.dark
    while look.ask is not None and not look.ask.stands:
        look = answered(after, look)
    by = f"{by} and send: {behaviour.name}"
    yield arrived(state, index, process, world=after, look=look, by=by)


def answered(world: ModelWorld, look: Look, fate: Fate = Fate.ANSWERED, *, through: bool = False) -> Look:
    """The look with the answer to what it asked for."""
    assert look.ask is not None
    return look.answered(answer_to(world, look.ask, fate), world, through=through)


def answer_to(world: ModelWorld, ask: Ask, fate: Fate) -> object:
    """What comes back of a write that may be lost."""
    lost = AnswerLost("no answer came")
    if fate is Fate.LATE:
        world.late = (*world.late, (ask.path, ask.operations))
    if fate in {Fate.LATE, Fate.LOST_BEFORE}:
        return lost
    value = acted(world, ask)
    return lost if fate is Fate.LOST_AFTER and not isinstance(value, Exception) else value


def arrived(
    state: State, index: int, process: Process, *, world: ModelWorld, look: Look, by: str, fate: Fate = Fate.ANSWERED
) -> State:
    """The state in which the process stands at its next ask, or has ended its look."""
    if look.error is not None:
        world.wrong.append(f"the look ended in {look.error!r}")
    following = replace(process, look=look)
    if look.ask is None:
        following = replace(process, look=None, memory=look.memory.of_open(undecided(world)))
    spent = "" if fate is Fate.ANSWERED else "fates"
    return changed(state, index, following, by, world=world, spent=spent)


def undecided(world: ModelWorld) -> set[str]:
    """The intents that may yet be found open."""
    steps = [step for each in world.incidents.values() for step in each.status.steps]
    opened = {step.intent.id for step in steps if step.intent is not None and step.outcome is None}
    late = {
        step["intent"]["id"]
        for _, operations in world.late
        for each in operations
        if each["path"] == "/status/steps"
        for step in each["value"]
        if "intent" in step
    }
    return opened | late


def changed(
    state: State,
    index: int,
    process: Process,
    by: str,
    *,
    world: ModelWorld | None = None,
    spent: str = "",
) -> State:
    """The state with another process in a place."""
    processes = tuple(process if place == index else each for place, each in enumerate(state.processes))
    budget = state.budget.spent(spent) if spent else state.budget
    return State(world or state.world, processes, budget, state, by)


def happenings(state: State, scenario: Scenario) -> Iterator[State]:
    """What happens without any process: what is on its way arrives, people and others act, time passes."""
    if state.world.late:
        yield happened(state, "a late write arrives", late_write)
    if state.world.function.under_way:
        yield happened(state, "a late request takes effect", late_request)
    if state.budget.allows("events"):
        for event in scenario.events:
            world = state.world.copy()
            if event.do(world):
                yield State(world, state.processes, state.budget.spent("events"), state, event.name)
    if state.budget.allows("jumps"):
        for seconds in scenario.jumps:
            world = state.world.copy()
            world.time.forward(seconds)
            budget = state.budget.spent("jumps")
            yield State(world, state.processes, budget, state, f"{seconds:g} s pass")


def happened(state: State, by: str, do: Callable[[ModelWorld], None]) -> State:
    """The state after something that costs nothing: it was paid for before."""
    world = state.world.copy()
    do(world)
    return State(world, state.processes, state.budget, state, by)


def late_write(world: ModelWorld) -> None:
    """A write whose answer was given up is refused or stored."""
    from tests.model.looks import patched  # noqa: PLC0415

    (path, operations), world.late = world.late[0], world.late[1:]
    try:
        patched(path, operations)(world)
    except PraxisError:
        return


def late_request(world: ModelWorld) -> None:
    """A request whose answer was given up takes effect."""
    intent = world.function.under_way.pop(0)
    world.function.land(intent)
    landed(world, intent)


def stuck(state: State, live: set[bytes]) -> Iterator[Violation]:
    """What does not come to an end although a healthy process works and time passes; all others stand still.

    `live` are the worlds from which it is known.
    """
    world, name = state.world.copy(), HEALTHY
    key = hashlib.blake2b(canonical([world.text]).encode(), digest_size=16).digest()
    if key in live:
        return
    memory, failures = NOTHING, Counter[str]()
    for seconds in QUIESCENCE:
        world.time.forward(seconds)
        for _ in range(ROUNDS):
            before = (world.versions, +failures)
            for incident in list(world.incidents.values()):
                memory = worked(world, name, incident.metadata.name, memory, failures)
            if (world.versions, +failures) == before:
                break
    for each in world.wrong:
        yield Violation(each, (*state.trace, "a healthy process goes on alone"))
    for incident in world.incidents.values():
        if not quiet(world, incident):
            yield Violation(f"{incident.metadata.name} is stuck in {incident.status.phase}", tuple(state.trace))
    live.add(key)


def worked(world: ModelWorld, name: str, incident: str, memory: Memory, failures: Counter[str]) -> Memory:
    """A whole look, undisturbed; the queue counts those that fail in a row."""
    going = look(name, incident, memory, world.time.boot, failures[incident])
    while going.ask is not None:
        if going.ask.kind is Kind.SEND:
            sent(world, going)
        going = answered(world, going, through=True)
    if going.error is not None:
        world.wrong.append(f"the look ended in {going.error!r}")
    failures[incident] = min(failures[incident] + 1, ENOUGH_FAILURES) if going.failed else 0
    return going.memory.of_open(undecided(world))
