"""kopf's part: watching, reconnecting, logging in. Every event only wakes a key up; what it says is not believed.

`on.event` needs no annotation and no finalizer on anybody's object, and keeps no state; a lost or doubled event changes
nothing, because the work reads fresh and a resync covers a watch that has gone silent.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import kopf
from pydantic import ValidationError

from praxis.api.base import GROUP, VERSION
from praxis.api.incident import Incident
from praxis.clock import Clock
from praxis.controller.metrics import Incidents, Metrics
from praxis.controller.queue import Key, WorkQueue
from praxis.kube import Kube
from praxis.settings import OperatorSettings

log = logging.getLogger(__name__)


def registry(
    *, kube: Kube, queue: WorkQueue, incidents: Incidents, metrics: Metrics, clock: Clock
) -> kopf.OperatorRegistry:
    """The handlers: one for each kind, and the login with the operator's own credentials."""
    handlers = kopf.OperatorRegistry()

    def delivered(plural: str) -> None:
        metrics.delivered(plural, clock.now().timestamp())

    @kopf.on.login(registry=handlers)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await connection(kube)

    @kopf.on.event(GROUP, VERSION, "incidents", registry=handlers)
    async def incident(event: Any, body: kopf.Body, namespace: str | None, name: str | None, **_: Any) -> None:
        delivered("incidents")
        key = Key(namespace or "", name or "")
        if event["type"] == "DELETED":
            incidents.gone(key)
        else:
            try:
                incidents.saw(Incident.parse(dict(body)))
            except ValidationError:
                log.exception("an incident does not hold its schema", extra={"incident": str(key)})
        await queue.add(key)

    async def named(body: kopf.Body, namespace: str | None, plural: str) -> None:
        delivered(plural)
        name = body.get("spec", {}).get("incidentRef", {}).get("name")
        if name:
            await queue.add(Key(namespace or "", str(name)))

    @kopf.on.event(GROUP, VERSION, "incidentapprovals", registry=handlers)
    async def approval(body: kopf.Body, namespace: str | None, **_: Any) -> None:
        await named(body, namespace, "incidentapprovals")

    @kopf.on.event(GROUP, VERSION, "incidentreconciliations", registry=handlers)
    async def reconciliation(body: kopf.Body, namespace: str | None, **_: Any) -> None:
        await named(body, namespace, "incidentreconciliations")

    @kopf.on.event(GROUP, VERSION, "remediationtargets", registry=handlers)
    async def target(namespace: str | None, **_: Any) -> None:
        delivered("remediationtargets")
        for key in incidents.open_keys(namespace):
            await queue.add(key)

    return handlers


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
