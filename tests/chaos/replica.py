"""One operator process, forked: the real parts, as `praxis.controller.operator` wires them, working at one key.

It ends once its incident has left Executing, or once it has long been waiting with a Stalled condition.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import signal
import socket
import traceback
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from prometheus_client import CollectorRegistry

from praxis.actions.contract import Dispatch, Verdict
from praxis.actions.function_compute import FunctionComputeAdapter
from praxis.api.base import IntentId
from praxis.api.incident import Baseline, Incident
from praxis.api.reasons import ConditionType
from praxis.api.target import RemediationTarget
from praxis.clock import Clock
from praxis.controller.cluster import KubeCluster
from praxis.controller.events import EventRecorder
from praxis.controller.journal import Journal
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.queue import Key, Later, WorkQueue
from praxis.controller.reconciler import Reconciler
from praxis.controller.sightings import Intents
from praxis.controller.verdicts import Verdicts
from praxis.controller.writer import StatusWriter
from praxis.errors import PraxisError, RetryLater
from praxis.kube import Kube
from praxis.machine import Phase
from praxis.phases import holding
from praxis.phases.contract import Tools
from praxis.recorder.contract import Recorder
from praxis.recorder.stores import open_recorder
from praxis.settings import OperatorSettings, RecorderSettings
from tests.builders import OPERATOR
from tests.chaos import forking
from tests.chaos.timing import Board, SharedClock
from tests.chaos.tracing import Fault, Injection, Tracer

PATIENCE_LOOKS = 40
"""So many looks at a key without an end are too many: the longest honest life has a dozen."""
RESYNC_SECONDS = 60.0
LOOK_SECONDS = 0.001
STALLED_LOOKS = 6
"""So many looks in a row that find it stalled show that it waits."""


@dataclass(frozen=True)
class Setting:
    """What all replicas of a run have in common. `cluster` has no connection yet: each replica gives it its own."""

    cluster: KubeCluster
    kubeconfig: Path
    directory: Path
    settings: OperatorSettings
    board: Board
    key: Key


@dataclass(frozen=True)
class Role:
    """What one replica is to go through: a fault, or to die as soon as its dispatch has come back.

    `through` is the kubeconfig of an API server that loses answers.
    """

    injection: Injection | None = None
    dies_after_dispatch: bool = False
    through: Path | None = None


class Line:
    """A replica's end of the line to the conductor: JSON, one object a line; the conductor sends single bytes."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection

    def say(self, kind: str, **facts: Any) -> None:
        """Tell the conductor."""
        self.socket.sendall(json.dumps({"kind": kind, **facts}).encode() + b"\n")

    def changed(self) -> None:
        """My slot has changed."""
        self.say("slot")

    def strike(self, fault: Fault) -> None:
        """Say that the fault has come; one that takes this process away does so here."""
        self.say("fault")
        if fault is Fault.KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault is Fault.PAUSED:
            os.kill(os.getpid(), signal.SIGSTOP)


class WitnessedAdapter:
    """The real adapter; says on the board while a request that was permitted may be on its way."""

    def __init__(self, adapter: FunctionComputeAdapter, board: Board, slot: int, line: Line, role: Role) -> None:
        self._adapter = adapter
        self._board = board
        self._slot = slot
        self._line = line
        self._role = role

    def observe(self, target: RemediationTarget) -> Baseline:
        """As it is."""
        return self._adapter.observe(target)

    def dispatch(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, permit: Callable[[], str | None]
    ) -> Dispatch:
        """As it is."""

        def marked() -> str | None:
            self._board.sends(self._slot, True)
            return permit()

        try:
            dispatch = self._adapter.dispatch(target, intent, baseline, marked)
        finally:
            self._board.sends(self._slot, False)
            self._line.changed()
        if self._role.dies_after_dispatch:
            os.kill(os.getpid(), signal.SIGKILL)
        return dispatch

    def verify(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, dispatch: Dispatch | None
    ) -> Verdict:
        """As it is."""
        return self._adapter.verify(target, intent, baseline, dispatch)


class Absent:
    """Models and memory: out of reach."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def ask(*args: object, **kwargs: object) -> NoReturn:
            raise RetryLater(f"{name} has no part in this")

        return ask


def fork(setting: Setting, slot: int, role: Role) -> tuple[int, socket.socket]:
    """Start a replica; its process id and the conductor's end of the line. Fork before any thread or loop exists."""
    ours, theirs = socket.socketpair()
    pid = forking.fork()
    if not pid:
        ours.close()
        live(setting, slot, role, Line(theirs))
    theirs.close()
    return pid, ours


def live(setting: Setting, slot: int, role: Role, line: Line) -> NoReturn:
    """A replica's whole life; ends the process, without what the parent would have had done at exit."""
    logging.disable()  # what is expected here fills the screen; a violation tells each look
    try:
        asyncio.run(work(setting, slot, role, line))
    except BaseException:  # noqa: BLE001  # a forked process must not return into its parent's code
        line.say("broken", error=traceback.format_exc())
        os._exit(1)
    os._exit(0)


async def work(setting: Setting, slot: int, role: Role, line: Line) -> None:
    """Wire an operator and have it work at the key until that has come to rest."""
    loop = asyncio.get_running_loop()
    clock = SharedClock(setting.board, slot, line)
    loop.add_reader(line.socket, lambda: (line.socket.recv(4096), clock.look()))
    tracer = Tracer(line.strike, role.injection)
    loop.set_task_factory(tracer.factory)
    # What was waited for and is not any more, as its waiter was struck, may still fail: that is nobody's news.
    loop.set_exception_handler(lambda loop, context: None)
    async with AsyncExitStack() as stack:
        kubeconfig = role.through or setting.kubeconfig
        kube = await stack.enter_async_context(await Kube.connect(kubeconfig, user_agent="praxis-operator"))
        # As with pods that keep their volume: the file was there before, maybe left by one that was killed.
        recorder = open_recorder(RecorderSettings(path=setting.directory / f"recorder-{slot}.db"), clock)
        stack.push_async_callback(recorder.close)
        adapter = FunctionComputeAdapter(settings=setting.settings.actions, clock=clock, pause=clock.pause)
        worker = wired(
            setting=setting,
            writer=f"replica-{slot}-{secrets.token_hex(8)}",
            kube=kube,
            recorder=recorder,
            adapter=WitnessedAdapter(adapter, setting.board, slot, line, role),
            clock=clock,
        )
        rests = await worker.until_rest()
    places = [[each.point, each.occurrence] for each in tracer.places]
    line.say("rest", rests=rests, looks=worker.looks, places=places, chains=tracer.chains)


def wired(
    *, setting: Setting, writer: str, kube: Kube, recorder: Recorder, adapter: WitnessedAdapter, clock: Clock
) -> Worker:
    """As `praxis.controller.operator` does. Models and memory have no part in Executing; nobody may ask them."""
    settings, registry, queue = setting.settings, CollectorRegistry(), WorkQueue(clock=clock)
    incidents = Incidents(clock=clock, deadlines=settings.deadlines)
    metrics = Metrics(registry=registry, incidents=incidents, queue=queue)
    cluster = copy(setting.cluster)
    cluster._kube = kube
    events = EventRecorder(kube=kube, clock=clock, instance=writer)
    intents = Intents(clock=clock)
    journal = Journal(recorder=recorder, registry=registry)
    tools = Tools(
        settings=settings,
        clock=clock,
        writer=writer,
        cluster=cluster,
        reasoner=Absent(),
        memory=Absent(),
        adapter=adapter,
        sightings=intents,
    )
    reconciler = Reconciler(
        cluster=cluster,
        writer=StatusWriter(kube=kube, cluster=cluster, clock=clock, actor=OPERATOR, intents=intents, journal=journal),
        verdicts=Verdicts(
            kube=kube, cluster=cluster, clock=clock, quorum=settings.quorum, events=events, metrics=metrics
        ),
        events=events,
        tools=tools,
        queue=queue,
        incidents=incidents,
        metrics=metrics,
        clock=clock,
    )
    return Worker(key=setting.key, reconciler=reconciler, tools=tools, queue=queue, clock=clock)


@dataclass
class Worker:
    """Looks at one key again and again, as a worker of the queue does. `looks` tells how each look ended."""

    key: Key
    reconciler: Reconciler
    tools: Tools
    queue: WorkQueue
    clock: Clock
    looks: list[str] = field(default_factory=list)

    async def until_rest(self) -> str:
        """Until the incident has ended, or waits; says which."""
        await self.queue.pause(False)
        await self.queue.add(self.key)
        stalled = 0
        for _ in range(PATIENCE_LOOKS):
            with suppress(RetryLater):
                incident = await self.tools.cluster.incident(*self.key)
                if incident is None or incident.status.phase is not Phase.EXECUTING:
                    await self._free()
                    return "ended"
                stalled = stalled + 1 if is_stalled(incident) else 0
                if stalled >= STALLED_LOOKS:
                    return "stalled"
            await self._look()
        return "restless"

    async def _free(self) -> None:
        """As the operator does from time to time."""
        with suppress(PraxisError):
            await holding.release_void(self.tools)

    async def _look(self) -> None:
        while (found := self.queue._next())[0] is None:
            if found[1] is None:
                await self.queue.add(self.key, after=RESYNC_SECONDS)
            else:
                await self.clock.sleep(found[1])
        later, ended = Later(None, failed=True), ""
        try:
            later = await asyncio.get_running_loop().create_task(self.reconciler.reconcile(self.key))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # as `WorkQueue.worker`, which lives on
            ended = repr(error)
        self.looks.append(f"{self.clock.boottime():.3f} {ended or later}")
        await self.queue._done(self.key, later)
        # No look takes no time: what is due in less than any clock shows would be due for ever.
        await self.clock.sleep(LOOK_SECONDS)


def is_stalled(incident: Incident) -> bool:
    """Whether it says that work does not go on."""
    condition = incident.status.condition(ConditionType.STALLED)
    return condition is not None and condition.status == "True"
