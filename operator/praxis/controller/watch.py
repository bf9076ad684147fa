"""kopf's part: watching, reconnecting, logging in. An event only wakes a key up; what it says is not believed.

`on.event` needs no annotation and no finalizer on anybody's object, and keeps no state; a lost or doubled event changes
nothing, because the work reads fresh and a resync covers a watch that has gone silent. What the operator itself wrote
is no news: a failure that is written down each time in other words would otherwise never back off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import kopf
from pydantic import ValidationError

from praxis.api.base import GROUP, VERSION
from praxis.api.incident import Incident
from praxis.clock import Clock
from praxis.controller.canary import Canary
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.queue import Key, WorkQueue
from praxis.kube import Kube
from praxis.settings import OperatorSettings

log = logging.getLogger(__name__)


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


def registry(
    *, kube: Kube, queue: WorkQueue, incidents: Incidents, metrics: Metrics, canary: Canary, clock: Clock
) -> kopf.OperatorRegistry:
    """The handlers: one for each kind, and the login with the operator's own credentials."""
    handlers = kopf.OperatorRegistry()
    news = News()

    def delivered(plural: str, event: Any) -> bool:
        metrics.delivered(plural, clock.now().timestamp())
        canary.told(plural, event)
        return news.told(plural, event)

    @kopf.on.login(registry=handlers)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await connection(kube)

    @kopf.on.event(GROUP, VERSION, "incidents", registry=handlers)
    async def incident(event: Any, body: kopf.Body, namespace: str | None, name: str | None, **_: Any) -> None:
        key = Key(namespace or "", name or "")
        keep(incidents, key, None if event["type"] == "DELETED" else dict(body))
        if delivered("incidents", event):
            await queue.add(key)

    async def named(event: Any, body: kopf.Body, namespace: str | None, plural: str) -> None:
        name = body.get("spec", {}).get("incidentRef", {}).get("name")
        if delivered(plural, event) and name:
            await queue.add(Key(namespace or "", str(name)))

    @kopf.on.event(GROUP, VERSION, "incidentapprovals", registry=handlers)
    async def approval(event: Any, body: kopf.Body, namespace: str | None, **_: Any) -> None:
        await named(event, body, namespace, "incidentapprovals")

    @kopf.on.event(GROUP, VERSION, "incidentreconciliations", registry=handlers)
    async def reconciliation(event: Any, body: kopf.Body, namespace: str | None, **_: Any) -> None:
        await named(event, body, namespace, "incidentreconciliations")

    @kopf.on.event(GROUP, VERSION, "remediationtargets", registry=handlers)
    async def target(event: Any, namespace: str | None, **_: Any) -> None:
        if delivered("remediationtargets", event):
            for key in incidents.open_keys(namespace):
                await queue.add(key)

    return handlers


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
    return configured


async def watch(
    *, handlers: kopf.OperatorRegistry, settings: OperatorSettings, ready: asyncio.Event, stop: asyncio.Event
) -> None:
    """Watch until `stop` is set."""
    await kopf.operator(
        registry=handlers,
        settings=kopf_settings(settings),
        standalone=True,
        clusterwide=not settings.namespaces,
        namespaces=settings.namespaces,
        ready_flag=ready,
        stop_flag=stop,
    )
