"""kopf's part: watching, reconnecting, logging in. An event only wakes a key up; what it says is not believed.

`on.event` needs no annotation and no finalizer on anybody's object, and keeps no state; a lost or doubled event changes
nothing, because the work reads fresh and a resync covers a watch that has gone silent. What the operator itself wrote
is no news: a failure that is written down each time in other words would otherwise never back off.

kopf runs on a thread and a loop of its own. When it ends it cancels every task that came into its loop after it did,
whoever created it ("the loop is not fully ours!" says its `run_tasks`): on ours that would be what the workers and the
lease are waiting for, each time that a watch is begun anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import kopf
from pydantic import ValidationError

from praxis.api.base import GROUP, VERSION
from praxis.api.incident import Incident
from praxis.clock import Clock
from praxis.controller.canary import Canary
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.queue import Key, WorkQueue
from praxis.kube import Kube
from praxis.phases.send import on_own_thread
from praxis.settings import OperatorSettings

log = logging.getLogger(__name__)

T = TypeVar("T")
Event = Mapping[str, Any]

END_SECONDS = 10.0
"""For kopf to end when it is told to, which takes it 6 at most; what does not even then is left behind."""


class News:
    """Tells what others changed from what the operator wrote itself: status, but for a target that nobody holds."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Key], tuple[Any, ...]] = {}

    def told(self, kind: str, event: Mapping[str, Any]) -> bool:
        """Whether an event says more than the object's last one; an object that is gone is forgotten."""
        document = event["object"]
        metadata = document["metadata"]
        at = (kind, Key(metadata.get("namespace", ""), metadata["name"]))
        if event["type"] == "DELETED":
            self._known.pop(at, None)
            return True
        # A change of spec raises the generation, and so does a deletion that has to wait.
        facts = (metadata["uid"], metadata.get("generation"), "holder" in document.get("status", {}))
        former, self._known[at] = self._known.get(at), facts
        return former != facts


class Delivery:
    """Takes what the watches tell of, on the operator's loop."""

    def __init__(
        self, *, queue: WorkQueue, incidents: Incidents, metrics: Metrics, canary: Canary, clock: Clock
    ) -> None:
        self._queue = queue
        self._incidents = incidents
        self._metrics = metrics
        self._canary = canary
        self._clock = clock
        self._news = News()

    async def incident(self, event: Event, body: dict[str, Any], key: Key) -> None:
        """An incident was changed."""
        keep(self._incidents, key, None if event["type"] == "DELETED" else body)
        if self._is_news("incidents", event):
            await self._queue.add(key)

    async def statement(self, plural: str, event: Event, body: dict[str, Any], namespace: str) -> None:
        """A person's word on an incident, which it names."""
        name = body.get("spec", {}).get("incidentRef", {}).get("name")
        if self._is_news(plural, event) and name:
            await self._queue.add(Key(namespace, str(name)))

    async def target(self, event: Event, namespace: str | None) -> None:
        """A target was changed, which any open incident of its namespace may wait for."""
        if self._is_news("remediationtargets", event):
            for key in self._incidents.open_keys(namespace):
                await self._queue.add(key)

    def _is_news(self, plural: str, event: Event) -> bool:
        self._metrics.delivered(plural, self._clock.now().timestamp())
        self._canary.told(plural, event)
        return self._news.told(plural, event)


def registry(*, kube: Kube, delivery: Delivery, over: asyncio.Event) -> kopf.OperatorRegistry:
    """The handlers of one watch: one for each kind, and the login with the operator's own credentials.

    Call it on the operator's loop: that is where they do their work, whichever loop calls them. Once `over` is set,
    what the watch still tells is dropped: the next one may have told newer things.
    """
    handlers = kopf.OperatorRegistry()
    home = asyncio.get_running_loop()

    async def at_home(work: Coroutine[Any, Any, T]) -> T:
        # Shielded: what kopf has told is told to the end, also when kopf ends meanwhile.
        return await asyncio.shield(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, home)))

    async def deliver(work: Coroutine[Any, Any, None]) -> None:
        await at_home(unless(over, work))

    @kopf.on.login(registry=handlers)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await at_home(connection(kube))

    @kopf.on.event(GROUP, VERSION, "incidents", registry=handlers)
    async def incident(event: Any, body: kopf.Body, namespace: str | None, name: str | None, **_: Any) -> None:
        await deliver(delivery.incident(event, dict(body), Key(namespace or "", name or "")))

    @kopf.on.event(GROUP, VERSION, "incidentapprovals", registry=handlers)
    async def approval(event: Any, body: kopf.Body, namespace: str | None, **_: Any) -> None:
        await deliver(delivery.statement("incidentapprovals", event, dict(body), namespace or ""))

    @kopf.on.event(GROUP, VERSION, "incidentreconciliations", registry=handlers)
    async def reconciliation(event: Any, body: kopf.Body, namespace: str | None, **_: Any) -> None:
        await deliver(delivery.statement("incidentreconciliations", event, dict(body), namespace or ""))

    @kopf.on.event(GROUP, VERSION, "remediationtargets", registry=handlers)
    async def target(event: Any, namespace: str | None, **_: Any) -> None:
        await deliver(delivery.target(event, namespace))

    return handlers


async def unless(over: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do it, but for when it is over."""
    if over.is_set():
        work.close()
    else:
        await work


def keep(incidents: Incidents, key: Key, document: dict[str, Any] | None) -> None:
    """Keep what the gauges need of an incident; without a document it is gone."""
    if document is None:
        incidents.gone(key)
        return
    try:
        incidents.saw(Incident.parse(document))
    except ValidationError:
        log.exception("an incident does not hold its schema", extra={"incident": str(key)})


async def connection(kube: Kube) -> kopf.ConnectionInfo:
    """kopf's own connection, with what the client was configured with; a rotated token is read anew."""
    configuration = kube.configuration
    refresh: Any = configuration.refresh_api_key_hook
    if refresh is not None:
        await refresh(configuration)
    token = (configuration.api_key or {}).get("BearerToken") or (configuration.api_key or {}).get("authorization")
    return kopf.ConnectionInfo(
        server=str(configuration.host),
        ca_path=configuration.ssl_ca_cert,
        scheme="Bearer" if token else None,
        token=token.removeprefix("Bearer ") if token else None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
    )


def kopf_settings(settings: OperatorSettings) -> kopf.OperatorSettings:
    """kopf writes nothing: no Events of its own, no annotations, no peering; watches are bounded in time."""
    configured = kopf.OperatorSettings()
    configured.posting.enabled = False
    configured.peering.standalone = True
    configured.watching.server_timeout = 300
    configured.watching.client_timeout = 360
    configured.watching.connect_timeout = 10
    # The API server sends a bookmark a minute: a watch on which not even those arrive is reconnected. What this does
    # not show, the canary does.
    configured.watching.inactivity_timeout = 70
    configured.networking.request_timeout = 30
    configured.networking.enforce_retry_after = True
    # CRDs may be applied after the operator started; without scanning kopf would never notice them. With a list of
    # namespaces the operator may not read namespaces or CRDs cluster-wide, so nothing is scanned.
    configured.scanning.disabled = bool(settings.namespaces)
    # kopf would kill the process, and any send on its way, ten minutes after it ended by itself.
    configured.process.ultimate_exiting_timeout = None
    return configured


async def watch(
    *, kube: Kube, delivery: Delivery, settings: OperatorSettings, ready: asyncio.Event, stop: asyncio.Event
) -> None:
    """Watch until `stop` is set, then end within `END_SECONDS`; as well when cancelled."""
    home, own, quiet, over = asyncio.get_running_loop(), asyncio.new_event_loop(), asyncio.Event(), asyncio.Event()
    handlers = registry(kube=kube, delivery=delivery, over=over)
    begun: Future[None] = Future()
    begun.add_done_callback(lambda _: home.call_soon_threadsafe(ready.set))

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: own) as runner:
            runner.run(
                kopf.operator(
                    registry=handlers,
                    settings=kopf_settings(settings),
                    standalone=True,
                    clusterwide=not settings.namespaces,
                    namespaces=settings.namespaces,
                    ready_flag=begun,
                    stop_flag=quiet,
                )
            )

    running = asyncio.ensure_future(on_own_thread(run, name="praxis-watch"))
    told = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({running, told}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        told.cancel()
        # Its loop is closed once kopf has ended.
        with contextlib.suppress(RuntimeError):
            own.call_soon_threadsafe(quiet.set)
        try:
            await asyncio.wait({running}, timeout=END_SECONDS)
        finally:
            over.set()
        if not running.done():
            log.error("kopf does not end and is left behind")
            running.cancel()
    if running.done():
        running.result()
