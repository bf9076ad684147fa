"""The Lease that says which replica works.

`kubernetes_asyncio` ships the election. It decides who is meant to work; what makes two workers safe is the fence of
the status writer and the holder of a target, never this.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import aiohttp
from kubernetes_asyncio.leaderelection.electionconfig import Config
from kubernetes_asyncio.leaderelection.leaderelection import LeaderElection
from kubernetes_asyncio.leaderelection.resourcelock.leaselock import LeaseLock

from praxis.errors import PraxisError
from praxis.kube import Kube, resource_path
from praxis.settings import OperatorSettings

log = logging.getLogger(__name__)

NAME = "praxis-operator"


async def elect(
    *,
    kube: Kube,
    settings: OperatorSettings,
    identity: str,
    started: Callable[[], Awaitable[None]],
    stopped: Callable[[], Awaitable[None]],
) -> None:
    """Campaign for the lease until cancelled; call `started` and `stopped` as it is won and lost, then give it back."""
    won = False

    async def lead() -> None:
        nonlocal won
        won = True
        log.info("lease acquired", extra={"identity": identity})
        await started()

    async def lose() -> None:
        nonlocal won
        if won:
            won = False
            log.warning("lease lost", extra={"identity": identity})
            await stopped()

    lock = LeaseLock(NAME, settings.installation_namespace, identity, kube.api)
    # The library takes nothing below a second.
    retry = max(1.0, settings.lease_renew / 2)
    try:
        while True:
            try:
                await LeaderElection(
                    Config(
                        lock,
                        lease_duration=settings.lease_duration,
                        renew_deadline=settings.lease_duration * 2 / 3,
                        retry_period=retry,
                        onstarted_leading=lead,
                        onstopped_leading=lose,
                    )
                ).run()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                log.warning("the lease could not be reached", extra={"error": str(error)})
            await lose()
            await asyncio.sleep(retry)
    finally:
        if won:
            await lose()
            await give_back(kube, settings, identity)


async def give_back(kube: Kube, settings: OperatorSettings, identity: str) -> None:
    """Let the next replica start at once; if that fails, the lease runs out by itself."""
    path = resource_path("/apis/coordination.k8s.io/v1", "leases", settings.installation_namespace, NAME)
    try:
        await kube.json_patch(
            path,
            [
                {"op": "test", "path": "/spec/holderIdentity", "value": identity},
                {"op": "remove", "path": "/spec/holderIdentity"},
            ],
        )
    except PraxisError as error:
        log.info("lease not given back", extra={"error": str(error)})
