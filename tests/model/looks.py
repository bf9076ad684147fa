"""One look of an operator at an incident, as a function: from what it has been told so far to what it asks for next.

The real reconciler runs, with the real writer, verdicts, phases and send. All that it does to the world, and all that
it learns, goes through *asks*: reads, claims, status writes, the function. What it does between two of them depends on
nothing but the answers so far, its memory and the time at which they came. So each such history is run once, from the
start of its look, and what comes next is remembered; the explorer combines these in every order that there is.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any

from prometheus_client import CollectorRegistry

from praxis.actions.contract import Dispatch, Verdict
from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import IntentId, Resource
from praxis.api.incident import Baseline, Guard, Incident
from praxis.api.target import Holder, RemediationTarget
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.queue import Key, WorkQueue
from praxis.controller.sightings import Intents
from praxis.errors import PraxisError
from praxis.kube import Document, Reply
from praxis.phases import executing
from praxis.settings import OperatorSettings
from tests import builders
from tests.model.situation import ModelApi, ModelWorld, forget, text_of
from tests.phases.processes import reconciler
from tests.phases.world import FunctionAdapter, Time, WorldCluster, WorldMemory, WorldReasoner

A_WHILE = 60.0
"""Seconds: longer than any that a process counts between two of its own looks at a clock."""
SETTINGS = OperatorSettings()
EPOCH = Time()


class Kind(Enum):
    """What an ask may come to, beside its answer."""

    PLAIN = auto()
    WRITE = auto()
    SEND = auto()


class Asked(BaseException):
    """The look goes no further: it needs an answer that it has not been given."""


@dataclass(frozen=True, eq=False)
class Ask:
    """Something that a process does to the world. Before one that `stands`, anybody else may come between."""

    label: str
    act: Callable[[ModelWorld], Any]
    kind: Kind = Kind.PLAIN
    stands: bool = True
    path: str = ""
    operations: Sequence[Document] = ()
    intent: str = ""
    target: RemediationTarget | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """What came back, and when."""

    label: str
    boot: float
    value: Any
    text: str
    read: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Memory:
    """What a process keeps from look to look."""

    seen: tuple[tuple[str, float], ...] = ()
    given_up: tuple[str, ...] = ()

    def of_open(self, intents: set[str]) -> Memory:
        """Without what can make no difference any more."""
        return Memory(
            tuple(each for each in self.seen if each[0] in intents),
            tuple(each for each in self.given_up if each in intents),
        )

    def text(self, now: float) -> str:
        """To tell it apart."""
        return f"{[(intent, min(now - boot, A_WHILE)) for intent, boot in self.seen]}{self.given_up}"


@dataclass(eq=False)
class Look:
    """A look after some answers: `ask` is what comes next; without one it has ended, with `memory` or in `error`."""

    process: str
    incident: str
    began: float
    memory: Memory
    failures: int = 0
    failed: bool = False
    log: tuple[Answer, ...] = ()
    ask: Ask | None = None
    error: BaseException | None = None
    text: str = ""
    read: tuple[tuple[str, str], ...] = ()
    _following: dict[tuple[Any, ...], Look] = field(default_factory=dict)

    def answered(self, value: Any, world: ModelWorld, *, through: bool = False) -> Look:
        """The look that goes on with this answer, up to where others may come between; `through`: up to a send."""
        following, known = self.following(value, world.time.boot)
        return following if known else run(following, world, through=through)

    def following(self, value: Any, boot: float) -> tuple[Look, bool]:
        """The history with one more answer, and whether it was known before."""
        assert self.ask is not None
        exact = (boot, *identity(value))
        known = exact in self._following
        if not known:
            text, read = described(value)
            answer = Answer(self.ask.label, boot, value, text, read)
            self._following[exact] = Look(
                self.process,
                self.incident,
                self.began,
                self.memory,
                self.failures,
                log=(*self.log, answer),
                text=f"{self.text}\n{answer.label} {text}",
                read=tuple(dict.fromkeys((*self.read, *read))),
            )
        return self._following[exact], known

    def when(self, now: float) -> str:
        """How long ago it began, and got its answers; more than a while is all the same."""
        return f"{[min(now - boot, A_WHILE) for boot in (self.began, *(each.boot for each in self.log))]}"

    def told(self, label: str) -> Any:
        """The last answer to an ask, None when it was not asked."""
        return next((each.value for each in reversed(self.log) if each.label == label), None)


_begun: dict[tuple[str, str, float, Memory, int], Look] = {}


def look(process: str, incident: str, memory: Memory, boot: float, failures: int = 0) -> Look:
    """A look that begins now, after so many in a row that failed."""
    key = (process, incident, boot, memory, failures)
    if key not in _begun:
        _begun[key] = Look(process, incident, boot, memory, failures, text=incident)
        run(_begun[key], None)
    return _begun[key]


def described(value: Any) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What an answer says, and of which objects in which version."""
    if isinstance(value, Resource):
        return text_of(value), ((value.metadata.uid, value.metadata.resource_version),)
    if isinstance(value, list | tuple):
        parts = [described(each) for each in value]
        return "; ".join(text for text, _ in parts), tuple(each for _, read in parts for each in read)
    if isinstance(value, Exception):
        return f"{type(value).__name__}: {value}", ()
    return ("now" if isinstance(value, datetime) else repr(value)), ()


def identity(value: Any) -> tuple[Any, ...]:
    """Tells exactly apart: a stored object is the same only if it is the same to the last field."""
    if isinstance(value, Resource):
        return (id(value),)
    if isinstance(value, list | tuple):
        return ("[", *(part for each in value for part in identity(each)), "]")
    return (f"{type(value).__name__}: {value}" if isinstance(value, Exception) else repr(value),)


class Running:
    """The look that runs: answers what was answered, then what nobody may come between, and stops it at what is left.

    What is answered on the way are histories of their own.
    """

    def __init__(self, history: Look, world: ModelWorld | None = None, *, through: bool = False) -> None:
        self.history = history
        self.answers = iter(history.log)
        self.boot = history.began
        self.said = f"{history.process} {history.incident} {history.began} {history.memory}"
        self._world = world
        self._through = through

    def tell(self, ask: Ask) -> Any:
        """The answer, when there is one. Raises Asked."""
        if self.history.ask is not None:
            raise Asked
        answer = next(self.answers, None) or self._at_once(ask)
        if answer is None:
            self.history.ask = ask
            raise Asked
        self.boot = answer.boot
        self.said += f"{answer.boot} {answer.text} {answer.read}"
        if isinstance(answer.value, Exception):
            raise answer.value.with_traceback(None)
        return answer.value

    def _at_once(self, ask: Ask) -> Answer | None:
        if self._world is None or ask.kind is Kind.SEND or (ask.stands and not self._through):
            return None
        self.history.ask = ask
        self.history, _ = self.history.following(acted(self._world, ask), self._world.time.boot)
        self.history.ask = None
        return self.history.log[-1]

    def now(self) -> datetime:
        """Wall time; it goes with boot time."""
        return EPOCH.wall + timedelta(seconds=self.boot - EPOCH.boot)

    def boottime(self) -> float:
        """Seconds since boot."""
        return self.boot

    async def sleep(self, seconds: float) -> None:
        """Others may come between; time passes when the explorer says so."""
        del seconds
        self.tell(Ask("sleep", lambda world: None))

    def token_hex(self, size: int) -> str:
        """An id that no other history comes to: `secrets`, without chance."""
        return hashlib.sha256(self.said.encode()).hexdigest()[: 2 * size]


running: Running | None = None
_loop: asyncio.AbstractEventLoop | None = None  # one for all, as a run takes less time than a loop
_metrics: Metrics | None = None


@contextmanager
def deterministic() -> Iterator[None]:
    """While looks are run: one loop, one set of metrics, and no chance."""
    global _loop, _metrics  # noqa: PLW0603
    chance = executing.secrets
    _loop = asyncio.new_event_loop()
    clock: Any = Running(Look("", "", 0.0, Memory()))
    queue, incidents = WorkQueue(clock=clock), Incidents(clock=clock, deadlines=SETTINGS.deadlines)
    _metrics = Metrics(registry=CollectorRegistry(), incidents=incidents, queue=queue)
    executing.secrets = Chance()  # type: ignore[assignment]
    logging.disable(logging.CRITICAL)
    gc.disable()  # nearly all is kept to the end, and looked through in vain
    try:
        yield
    finally:
        gc.enable()
        logging.disable(logging.NOTSET)
        executing.secrets = chance
        _loop.run_until_complete(_loop.shutdown_default_executor())
        _loop.close()
        _loop = None
        _begun.clear()
        forget()


class Chance:
    """Stands in for `secrets` in the one module that asks it."""

    def token_hex(self, size: int) -> str:
        """An intent's id."""
        assert running is not None
        return running.token_hex(size)


def acted(world: ModelWorld, ask: Ask) -> Any:
    """What comes back; errors come back too."""
    try:
        return ask.act(world)
    except PraxisError as error:
        return error


def run(history: Look, world: ModelWorld | None, *, through: bool = False) -> Look:
    """Run the program on a history and on, and note what it asks for next, or how it ended."""
    global running  # noqa: PLW0603
    assert _loop is not None
    assert _metrics is not None
    process = running = Running(history, world, through=through)
    clock: Any = process
    intents, queue = Intents(clock=clock), WorkQueue(clock=clock)
    key = Key(builders.NAMESPACE, history.incident)
    intents._seen.update(history.memory.seen)
    queue._failures[key] = history.failures
    for each in history.memory.given_up:
        intents.give_up(each)
    program = reconciler(
        name=history.process,
        settings=SETTINGS,
        clock=clock,
        intents=intents,
        queue=queue,
        metrics=_metrics,
        kube=Connection(process),
        cluster=Reads(process),
        adapter=Functions(process),
        reasoner=WorldReasoner(),
        memory=WorldMemory(),
        kept=Unrecorded(),
    )
    try:
        later = _loop.run_until_complete(program.reconcile(key))
    except Asked:
        pass
    except Exception as error:  # noqa: BLE001  # whatever it is, the explorer calls it a violation
        process.history.error = error
    else:
        process.history.failed = later.failed
        process.history.memory = Memory(tuple(intents._seen.items()), tuple(intents._given_up))
    return process.history


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it waits")


class Unrecorded:
    """Stands in for the journal, which is told of decisions and has no say in any that people have made."""

    async def keep(self, incident: Incident, transition: object) -> None:
        """Nobody reads it here."""


class Connection:
    """A process' writes to the API server."""

    def __init__(self, process: Running) -> None:
        self._process = process

    async def create(self, path: str, document: Document) -> Reply:
        """Events; nobody reads them here."""
        del path
        return Reply(document, None)

    async def json_patch(self, path: str, operations: Sequence[Document]) -> Reply:
        """A status write; that its answer came is an answer of its own."""
        if "/incidents/" not in path:
            judged = self._process.tell(Ask("verdict", patched(path, operations), stands=False))
            return Reply(judged, None)
        write = Ask("write", patched(path, operations), kind=Kind.WRITE, path=path, operations=operations)
        stored: Incident = self._process.tell(write)
        # Whoever is stopped here is stopped before the next ask too: in between, nothing is looked at but the answer.
        self._process.tell(Ask("answer", lambda world: None, stands=False))
        return Reply(stored.dump(), None)


def patched(path: str, operations: Sequence[Document]) -> Callable[[ModelWorld], Any]:
    """Stores a patch."""
    from tests.model.invariants import written  # noqa: PLC0415  # which looks at looks

    def act(world: ModelWorld) -> Any:
        document = ModelApi(world, lambda before, after: written(world, before, after)).patch(path, operations)
        return world.incident(path.split("/")[-2]) if "/incidents/" in path else document["metadata"]["uid"]

    return act


class Reads:
    """A process' reads. Others may come before those on which the next decision rests."""

    def __init__(self, process: Running) -> None:
        self._tell = process.tell

    async def incident(self, namespace: str, name: str) -> Incident | None:
        """As stored."""
        return self._tell(Ask("read", lambda world: world.incidents.get((namespace, name))))  # type: ignore[no-any-return]

    async def approvals(self, incident: Incident) -> tuple[list[IncidentApproval], datetime | None]:
        """By uid, with the server's time."""
        return self._tell(Ask("approvals", lambda world: finished(WorldCluster(world).approvals(incident))))  # type: ignore[no-any-return]

    async def allowed_signers(self) -> None:
        """There is no such list."""
        return

    async def reconciliations(self, namespace: str, incident_uid: str) -> list[IncidentReconciliation]:
        """By uid."""
        return self._at_once("reconciliations", namespace, incident_uid)  # type: ignore[no-any-return]

    async def targets(self, namespace: str) -> list[RemediationTarget]:
        """Of a namespace."""
        return self._at_once("targets", namespace)  # type: ignore[no-any-return]

    async def all_targets(self) -> list[RemediationTarget]:
        """Of all."""
        return self._at_once("all_targets")  # type: ignore[no-any-return]

    async def guards(self) -> list[Guard]:
        """As installed."""
        return self._at_once("guards")  # type: ignore[no-any-return]

    async def approvals_by_name(self, namespace: str, name: str) -> tuple[list[IncidentApproval], datetime | None]:
        """For verdicts."""
        return self._at_once("approvals_by_name", namespace, name)  # type: ignore[no-any-return]

    async def reconciliations_by_name(self, namespace: str, name: str) -> list[IncidentReconciliation]:
        """For verdicts."""
        return self._at_once("reconciliations_by_name", namespace, name)  # type: ignore[no-any-return]

    async def claim(self, target: RemediationTarget, holder: Holder) -> RemediationTarget:
        """By compare-and-swap."""
        return self._tell(Ask("claim", lambda world: world.swap(target, holder)))  # type: ignore[no-any-return]

    async def release(self, target: RemediationTarget) -> None:
        """By compare-and-swap."""
        self._tell(Ask("release", lambda world: world.swap(target, None)))

    def _at_once(self, name: str, *arguments: str) -> Any:
        return self._tell(
            Ask(name, lambda world: finished(getattr(WorldCluster(world), name)(*arguments)), stands=False)
        )


class Functions:
    """A process' way to the function. Re-read, permit and send are one: no program could do better."""

    def __init__(self, process: Running) -> None:
        self._tell = process.tell

    def observe(self, target: RemediationTarget) -> Baseline:
        """Read."""
        return self._tell(Ask("observe", lambda world: FunctionAdapter(world).observe(target), stands=False))  # type: ignore[no-any-return]

    def dispatch(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, permit: Callable[[], str | None]
    ) -> Dispatch:
        """Compare, ask, send."""
        changed = self._tell(Ask("re-read", lambda world: FunctionAdapter(world).changed(target, baseline)))
        if changed is not None:
            return changed  # type: ignore[no-any-return]
        refused = permit()
        if refused is not None:
            return FunctionAdapter.never_sent(refused)
        send = Ask(
            "send",
            lambda world: FunctionAdapter(world).send(target, intent),
            kind=Kind.SEND,
            stands=False,
            intent=intent,
            target=target,
        )
        return self._tell(send)  # type: ignore[no-any-return]

    def verify(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, dispatch: Dispatch | None
    ) -> Verdict:
        """Prove."""
        return self._tell(  # type: ignore[no-any-return]
            Ask("proof", lambda world: FunctionAdapter(world).verify(target, intent, baseline, dispatch))
        )
