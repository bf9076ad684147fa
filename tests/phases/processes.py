"""Operator processes over the world, stopped at each point where another could come between, and killed at any.

Each is the real reconciler with the real status writer, verdicts and Events; only the API server, the function and the
models are the world's. It stands still at a *seam*, before a read, a claim, a status write, the send and the proof,
until it is told to go on: that is what a paused process, a slow network and an unlucky order look like from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import jsonpatch  # type: ignore[import-untyped]
from prometheus_client import CollectorRegistry

from praxis.actions.contract import Adapter, Dispatch, Verdict
from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.base import IntentId
from praxis.api.incident import Baseline, Incident
from praxis.api.reasons import Reason
from praxis.api.target import Holder, RemediationTarget
from praxis.clock import Clock
from praxis.controller.events import EventRecorder
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.queue import Key, WorkQueue
from praxis.controller.reconciler import Reconciler
from praxis.controller.sightings import Intents
from praxis.controller.verdicts import Verdicts
from praxis.controller.writer import StatusWriter
from praxis.errors import AnswerLost, Refused
from praxis.kube import Document, Reply
from praxis.machine import Phase
from praxis.memory.contract import Memory
from praxis.phases.contract import Tools
from praxis.reasoning.contract import Reasoner
from praxis.settings import OperatorSettings
from tests import builders
from tests.phases.world import HandClock, R, World, WorldCluster
from tests.records import journal

PATIENCE = 20.0
"""Real seconds for a process to come to its next seam; it takes milliseconds."""
Written = Callable[[Incident, Incident], None]


class Fate(StrEnum):
    """What becomes of an answer to a status write."""

    ANSWERED = "answered"
    LOST_BEFORE = "lost before it was stored"
    LOST_AFTER = "lost after it was stored"
    LATE = "lost, and stored later"


class Api:
    """Status writes as the API server takes them: JSON patches with tests, and the rules that look at the whole object.

    A refused test or rule is 422. The other rules are not asked: the operator must not live by being refused.
    """

    def __init__(self, world: World, written: Written) -> None:
        self._world = world
        self._written = written
        self.late: list[tuple[str, Sequence[Document]]] = []

    def patch(self, path: str, operations: Sequence[Document]) -> Document:
        """Store it. Raises Refused."""
        plural, name = path.split("/")[-3], path.split("/")[-2]
        if plural == "incidents":
            before = self._world.incidents.get((builders.NAMESPACE, name))
            after = self._patched(Incident, before, operations)
            self._rules(before, after)
            stored = self._world.keep(after)
            assert before is not None
            self._written(before, stored)
            return stored.dump()
        kind, kept, keep = {
            "incidentapprovals": (IncidentApproval, self._world.approvals, self._world.say),
            "incidentreconciliations": (IncidentReconciliation, self._world.reconciliations, self._world.find),
        }[plural]
        found = next((each for each in kept.values() if each.metadata.name == name), None)  # type: ignore[attr-defined]
        judged = self._patched(kind, found, operations)  # type: ignore[type-var]
        keep(judged)  # type: ignore[operator]
        return judged.dump()  # type: ignore[no-any-return]

    def land_late(self) -> None:
        """A write whose answer was lost arrives after all, and is refused or stored."""
        path, operations = self.late.pop(0)
        with contextlib.suppress(Refused):
            self.patch(path, operations)

    def _patched(self, kind: type[R], stored: R | None, operations: Sequence[Document]) -> R:
        if stored is None:
            raise Refused("not found", status=404)
        try:
            return kind.model_validate(jsonpatch.apply_patch(stored.dump(), list(operations)))
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
            raise Refused(f"the patch does not apply: {error}", status=422) from error

    def _rules(self, before: Incident | None, after: Incident) -> None:
        assert before is not None
        entered = after.status.phase is not before.status.phase
        clear = after.status.phase is Phase.RESOLVED or after.status.reason == Reason.SELF_RESOLVED
        if entered and clear and after.spec.firing:
            raise Refused("not while an alert fires", status=422)
        if len(after.status.steps) > len(before.status.steps) and not after.spec.firing and after.status.open_step:
            raise Refused("no intent when nothing fires", status=422)


def reconciler(
    *,
    name: str,
    settings: OperatorSettings,
    clock: Clock,
    intents: Intents,
    queue: WorkQueue,
    metrics: Metrics,
    kube: Any,
    cluster: Any,
    adapter: Adapter,
    reasoner: Reasoner,
    memory: Memory,
    kept: Any,
) -> Reconciler:
    """The real one, with all its real parts, over other far ends."""
    events = EventRecorder(kube=kube, clock=clock, instance=name)
    return Reconciler(
        cluster=cluster,
        writer=StatusWriter(
            kube=kube, cluster=cluster, clock=clock, actor=builders.OPERATOR, intents=intents, journal=kept
        ),
        verdicts=Verdicts(
            kube=kube, cluster=cluster, clock=clock, quorum=settings.quorum, events=events, metrics=metrics
        ),
        events=events,
        tools=Tools(
            settings=settings,
            clock=clock,
            writer=name,
            cluster=cluster,
            reasoner=reasoner,
            memory=memory,
            adapter=adapter,
            sightings=intents,
        ),
        queue=queue,
        incidents=Incidents(clock=clock, deadlines=settings.deadlines),
        metrics=metrics,
        clock=clock,
    )


class Killed(BaseException):
    """The process is gone."""


class Process:
    """One operator process."""

    def __init__(
        self,
        name: str,
        world: World,
        api: Api,
        loop: asyncio.AbstractEventLoop,
        *,
        off: timedelta,
        settings: OperatorSettings | None = None,
    ) -> None:
        self.name = name
        self.settings = settings or OperatorSettings()
        self.world = world
        self.api = api
        self.loop = loop
        self.fate = Fate.ANSWERED
        self.dead = False
        self.free = False
        self.at: str | None = None
        self.sending = False
        self._parked = asyncio.Event()
        self._go = asyncio.Event()
        self._thread_go = threading.Event()
        self._task: asyncio.Task[Any] | None = None
        self.acknowledged: set[str] = set()
        clock = HandClock(world.time, off=off, booted=off.total_seconds() / 7)
        queue, incidents = WorkQueue(clock=clock), Incidents(clock=clock, deadlines=self.settings.deadlines)
        self._reconciler = reconciler(
            name=name,
            settings=self.settings,
            clock=clock,
            intents=Intents(clock=clock),
            queue=queue,
            metrics=Metrics(registry=CollectorRegistry(), incidents=incidents, queue=queue),
            kube=ProcessApi(self),
            cluster=ProcessCluster(self),
            adapter=ProcessAdapter(self),
            reasoner=world.reasoner,
            memory=world.memory,
            kept=journal(),
        )

    @property
    def busy(self) -> bool:
        """Whether it stands at a seam."""
        return self._task is not None

    def start(self, name: str) -> None:
        """Begin a look at an incident, up to its first seam."""
        key = Key(builders.NAMESPACE, name)
        self._task = self.loop.create_task(self._reconciler.reconcile(key))
        self._run(release=False)

    def advance(self) -> None:
        """Go on to the next seam, or to the end of the look."""
        self._run(release=True)

    def finish(self) -> None:
        """Go on to the end of the look."""
        self.free = True
        self._run(release=True)
        self.free = False
        assert not self.busy, f"{self.name} did not finish"

    def kill(self) -> None:
        """The process is gone: its tasks and its threads do nothing more."""
        self.dead = True
        self._thread_go.set()
        if self._task is not None:
            self._task.cancel()
            self.loop.run_until_complete(asyncio.wait({self._task}, timeout=PATIENCE))
            self._task = None

    async def seam(self, label: str) -> None:
        """Stand still before something that is done on the loop."""
        if self.free:
            return
        self.at = label
        self._parked.set()
        await self._go.wait()
        self._go.clear()

    def thread_seam(self, label: str) -> None:
        """Stand still before something that is done on a thread."""
        if self.dead:
            raise Killed
        if self.free:
            return
        self.at = label
        self._thread_go.clear()
        self.loop.call_soon_threadsafe(self._parked.set)
        self._thread_go.wait(PATIENCE)
        if self.dead:
            raise Killed

    def _run(self, *, release: bool) -> None:
        assert self._task is not None
        self._parked.clear()
        if release:
            (self._thread_go if (self.at or "").startswith("thread") else self._go).set()
        self.loop.run_until_complete(self._until_it_stands_still())
        if self._task.done():
            task, self._task, self.at = self._task, None, None
            task.result()

    async def _until_it_stands_still(self) -> None:
        assert self._task is not None
        parked = asyncio.ensure_future(self._parked.wait())
        done, _ = await asyncio.wait({parked, self._task}, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
        parked.cancel()
        assert done, f"{self.name} neither went on nor ended, after {self.at}"


class ProcessApi:
    """A process' connection to the API server; the answer to its next status write of an incident has a fate."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def create(self, path: str, document: Document) -> Reply:
        """Events; nobody reads them here."""
        return Reply(document, None)

    async def json_patch(self, path: str, operations: Sequence[Document]) -> Reply:
        """A status write."""
        process = self._process
        if "/incidents/" not in path:
            return Reply(process.api.patch(path, operations), None)
        await process.seam("write")
        fate, process.fate = process.fate, Fate.ANSWERED
        if fate is Fate.LATE:
            process.api.late.append((path, operations))
        if fate in {Fate.LATE, Fate.LOST_BEFORE}:
            raise AnswerLost("no answer came")
        stored = process.api.patch(path, operations)
        if fate is Fate.LOST_AFTER:
            raise AnswerLost("no answer came")
        # Stopped between the answer and what is done on it: this is where a pause costs most.
        await process.seam("answer")
        parsed = Incident.parse(stored)
        process.acknowledged |= {step.intent.id for step in parsed.status.steps if step.intent is not None}
        return Reply(stored, None)


class ProcessCluster(WorldCluster):
    """A process' reads."""

    def __init__(self, process: Process) -> None:
        super().__init__(process.world)
        self._process = process

    async def incident(self, namespace: str, name: str) -> Incident | None:
        """Also within the permit's read of the holder nothing stands still: see `targets`."""
        await self._process.seam("read")
        return await super().incident(namespace, name)

    async def approvals(self, incident: Incident) -> tuple[list[IncidentApproval], datetime | None]:
        """Before the gate, or the decision."""
        await self._process.seam("approvals")
        return await super().approvals(incident)

    async def claim(self, target: RemediationTarget, holder: Holder) -> RemediationTarget:
        """Between the look at the holder and the claim."""
        await self._process.seam("claim")
        return await super().claim(target, holder)

    async def release(self, target: RemediationTarget) -> None:
        """Between the last write and the release."""
        await self._process.seam("release")
        await super().release(target)


class ProcessAdapter:
    """A process' way to the functions. It stands still before the send's re-read and after the send.

    Not between the permit and the send: there is nothing that could wait, and no program could do better.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world

    def observe(self, target: RemediationTarget) -> Baseline:
        """Read."""
        return self._world.adapter.observe(target)

    def dispatch(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, permit: Callable[[], str | None]
    ) -> Dispatch:
        """Send."""
        self._process.thread_seam("thread: before the send")
        self._process.sending = True
        dispatch = self._world.adapter.dispatch(target, intent, baseline, permit)
        self._process.sending = False
        self._process.thread_seam("thread: after the send")
        return dispatch

    def verify(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, dispatch: Dispatch | None
    ) -> Verdict:
        """Prove."""
        self._process.thread_seam("thread: before the proof")
        return self._world.adapter.verify(target, intent, baseline, dispatch)
