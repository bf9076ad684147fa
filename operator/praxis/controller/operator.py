"""One operator process, put together: connections, tools, queue, watch, lease, probes. Only wiring."""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from praxis.actions.function_compute import FunctionComputeAdapter, read_digest_key
from praxis.api.incident import Incident
from praxis.clock import SystemClock
from praxis.controller import http, watch
from praxis.controller.canary import Canary, watched
from praxis.controller.cluster import KubeCluster
from praxis.controller.events import EventRecorder
from praxis.controller.functions import FunctionStatus
from praxis.controller.journal import Journal
from praxis.controller.lease import elect
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.queue import Key, WorkQueue, told_to_end
from praxis.controller.reconciler import Reconciler
from praxis.controller.selfcheck import own_powers
from praxis.controller.sightings import Intents
from praxis.controller.verdicts import Verdicts
from praxis.controller.writer import StatusWriter
from praxis.errors import PraxisError, RetryLater
from praxis.evidence.toolbox import EvidenceToolbox
from praxis.kube import Kube
from praxis.memory.stores import open_memory
from praxis.phases import holding
from praxis.phases.contract import Tools
from praxis.reasoning.client import ModelClient
from praxis.reasoning.reasoner import QwenReasoner
from praxis.recorder.stores import open_recorder
from praxis.settings import OperatorSettings

log = logging.getLogger(__name__)

INSTALLATION_RETRY_SECONDS = 5.0
SETTLED_ROUNDS = 30
"""What has ended and owes nothing is looked at in one of so many rounds of the resync."""
FINISH_SECONDS = 20.0
"""How long a stop waits for what is being worked on; below a pod's grace period of 30 s. What is cut off by it is found
as an open intent by the next process."""


@dataclass
class State:
    """What the probes tell."""

    waiting_for: str | None = "starting"


async def run(settings: OperatorSettings, *, port_file: Path | None = None) -> None:
    """Run until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(operator(settings, stop=stop, port_file=port_file))
        await stop.wait()


@asynccontextmanager
async def operator(
    settings: OperatorSettings, *, stop: asyncio.Event, port_file: Path | None = None
) -> AsyncIterator[State]:
    """An operator that works while the context is open; `stop` is set when it must end on its own account."""
    clock = SystemClock()
    writer = f"{socket.gethostname()}-{secrets.token_hex(8)}"
    registry = CollectorRegistry()
    queue = WorkQueue(clock=clock)
    incidents = Incidents(clock=clock, deadlines=settings.deadlines)
    metrics = Metrics(registry=registry, incidents=incidents, queue=queue)
    state = State()
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(await Kube.connect(settings.kubeconfig, user_agent="praxis-operator"))
        cluster = KubeCluster(kube=kube, settings=settings)
        canary = Canary(cluster=cluster, clock=clock, registry=registry, deadline=settings.watch_deadline)
        adapter = FunctionComputeAdapter(settings=settings.actions, clock=clock, key=read_digest_key(settings.actions))
        toolbox = EvidenceToolbox.from_settings(settings, kube=kube, functions=FunctionStatus(settings.actions))
        models = ModelClient(settings=settings.models, clock=clock, registry=registry)
        stack.push_async_callback(models.close)
        recorder = open_recorder(settings.recorder, clock)
        stack.push_async_callback(recorder.close)
        journal = Journal(recorder=recorder, registry=registry)
        reasoner = QwenReasoner(
            client=models, toolbox=toolbox, settings=settings.models, clock=clock, recorder=recorder
        )
        memory = open_memory(settings, models)
        stack.push_async_callback(memory.close)
        intents = Intents(clock=clock)
        events = EventRecorder(kube=kube, clock=clock, instance=writer)
        actor = f"system:serviceaccount:{settings.installation_namespace}:{settings.operator_account}"
        tools = Tools(
            settings=settings,
            clock=clock,
            writer=writer,
            cluster=cluster,
            reasoner=reasoner,
            memory=memory,
            adapter=adapter,
            sightings=intents,
        )
        reconciler = Reconciler(
            cluster=cluster,
            writer=StatusWriter(kube=kube, cluster=cluster, clock=clock, actor=actor, intents=intents, journal=journal),
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
        runner, port = await http.serve(
            host=settings.http_host,
            port=settings.http_port,
            registry=registry,
            healthy=lambda: None,
            ready=lambda: state.waiting_for or canary.wrong(),
        )
        stack.push_async_callback(runner.cleanup)
        if port_file is not None:
            write_port(port_file, port)
        delivery = watch.Delivery(queue=queue, incidents=incidents, metrics=metrics, canary=canary, clock=clock)
        supervised = asyncio.create_task(
            supervise(
                settings=settings,
                kube=kube,
                cluster=cluster,
                queue=queue,
                reconciler=reconciler,
                tools=tools,
                incidents=incidents,
                metrics=metrics,
                canary=canary,
                delivery=delivery,
                state=state,
                identity=writer,
                stop=stop,
            ),
            name="praxis-operator",
        )
        supervised.add_done_callback(lambda _: stop.set())
        try:
            yield state
        finally:
            supervised.cancel()
            await asyncio.gather(supervised, return_exceptions=True)
            if not supervised.cancelled() and supervised.exception() is not None:
                raise supervised.exception()  # type: ignore[misc]


async def supervise(
    *,
    settings: OperatorSettings,
    kube: Kube,
    cluster: KubeCluster,
    queue: WorkQueue,
    reconciler: Reconciler,
    tools: Tools,
    incidents: Incidents,
    metrics: Metrics,
    canary: Canary,
    delivery: watch.Delivery,
    state: State,
    identity: str,
    stop: asyncio.Event,
) -> None:
    """Everything that runs side by side; the first that ends unexpectedly ends them all."""
    await bounded(kube, settings, state)
    await installation(cluster, state)
    watching = asyncio.Event()
    state.waiting_for = "waiting for the first watch"

    async def started() -> None:
        metrics.leading.set(1)
        # What the leader before wrote was no news to the watch here, and it may have ended in the middle of something.
        known: list[Key] = incidents.keys()
        for key in known:
            await queue.add(key)
        await queue.pause(False)

    async def stopped() -> None:
        metrics.leading.set(0)
        await queue.pause(True)

    async def watch_on() -> None:
        await watched(
            canary,
            lambda quiet: watch.watch(kube=kube, delivery=delivery, settings=settings, ready=watching, stop=quiet),
        )
        log.error("the watch ended by itself; so does this process")
        stop.set()

    async def ready() -> None:
        await watching.wait()
        state.waiting_for = None

    async with asyncio.TaskGroup() as group:
        group.create_task(watch_on())
        group.create_task(ready())
        for name, part in (
            ("resync", resync(queue, cluster, incidents, settings.resync_interval)),
            ("free", free(queue, tools, settings.resync_interval)),
            ("elect", elect(kube=kube, settings=settings, identity=identity, started=started, stopped=stopped)),
            ("work", work(queue, reconciler, settings.workers)),
        ):
            group.create_task(endless(name, part), name=name)


async def endless(name: str, part: Awaitable[None]) -> None:
    """What ends only when it is told to. If not told, it raises: a task group takes no notice of a cancelled child, and
    a process without its workers, or its lease, would go on looking ready.
    """
    try:
        await part
    except asyncio.CancelledError:
        if told_to_end():
            raise
    raise RuntimeError(f"{name} ended without having been told to")


async def work(queue: WorkQueue, reconciler: Reconciler, workers: int) -> None:
    """Run the workers; when cancelled, let what is being worked on end first."""
    tasks = [asyncio.create_task(queue.worker(reconciler.reconcile), name=f"worker-{each}") for each in range(workers)]
    try:
        # Not gathered: cancelled, that would cancel them, and so cut off what they are working on.
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        await queue.pause(True)
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                await queue.idle()
        except TimeoutError:
            log.warning("stopped while incidents were being worked on")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def bounded(kube: Kube, settings: OperatorSettings, state: State) -> None:
    """Wait until the API server has said what this operator may do; raises NeedsPerson when that is too much."""
    while True:
        try:
            await own_powers(kube, settings)
        except RetryLater as error:
            state.waiting_for = f"what this operator may do is not known: {error}"
            log.warning("not started", extra={"error": state.waiting_for})
            await asyncio.sleep(INSTALLATION_RETRY_SECONDS)
        else:
            return


async def installation(cluster: KubeCluster, state: State) -> None:
    """Wait until the installed CRDs, policies and bindings are those that this operator was built with."""
    while True:
        try:
            await cluster.guards()
        except PraxisError as error:
            if state.waiting_for != str(error):
                log.warning("not started", extra={"error": str(error)})
            state.waiting_for = str(error)
            await asyncio.sleep(INSTALLATION_RETRY_SECONDS)
        else:
            return


async def resync(queue: WorkQueue, cluster: KubeCluster, incidents: Incidents, interval: float) -> None:
    """Look at everything again from time to time, spread out: a silent watch costs at most this long.

    Listed, as a silent watch never told of what is new; and what it told of, as that may be gone. What has ended and
    owes nothing waits for nothing but a person's late word, so it is looked at once in so many rounds: or the
    incidents of a year would cost more than those of today.
    """
    for number in itertools.count():
        keys = set(incidents.keys())
        try:
            keys |= set(await cluster.versions(Incident))
        except PraxisError as error:
            log.warning("incidents not listed", extra={"error": str(error)})
        if number % SETTLED_ROUNDS:
            keys -= set(incidents.settled_keys())
        for key in keys:
            await queue.revisit(key)
            await asyncio.sleep(interval / (len(keys) + 1))
        await asyncio.sleep(interval / (len(keys) + 1))


async def free(queue: WorkQueue, tools: Tools, interval: float) -> None:
    """From time to time free targets whose holder is over, where the process that should have done it ended before."""
    while True:
        await asyncio.sleep(interval)
        if queue.paused:
            continue
        try:
            await holding.release_void(tools)
        except PraxisError as error:
            log.warning("void holders not released", extra={"error": str(error)})


def write_port(path: Path, port: int) -> None:
    """Tell the process that started this one which port was free, whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(f"{port}\n")
    partial.replace(path)
