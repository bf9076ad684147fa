"""The Lease that says which replica works.

`kubernetes_asyncio` ships the election. It decides who is meant to work; what makes two workers safe is the fence of
the status writer and the holder of a target, never this.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from kubernetes_asyncio.client import ApiClient
from kubernetes_asyncio.leaderelection.electionconfig import Config
from kubernetes_asyncio.leaderelection.leaderelection import LeaderElection
from kubernetes_asyncio.leaderelection.resourcelock.leaselock import LeaseLock

from praxis.errors import PraxisError
from praxis.kube import Kube, resource_path
from praxis.settings import OperatorSettings

log = logging.getLogger(__name__)

NAME = "praxis-operator"


class BoundedLock(LeaseLock):
    """A lock whose every request ends in time, so that a leader that cannot reach the API server stops leading.

    The library gives its requests no time-out of their own, and looks at its deadline between two of them only.
    """

    def __init__(self, name: str, namespace: str, identity: str, api: ApiClient, *, seconds: float) -> None:
        super().__init__(name, namespace, identity, api)
        self._seconds = seconds

    async def get(self, name: str, namespace: str) -> Any:
        """Read the record; raises TimeoutError."""
        async with asyncio.timeout(self._seconds):
            return await super().get(name, namespace)

    async def create(self, name: str, namespace: str, election_record: Any) -> Any:
        """Create the lease; raises TimeoutError."""
        async with asyncio.timeout(self._seconds):
            return await super().create(name, namespace, election_record)

    async def update(self, name: str, namespace: str, updated_record: Any) -> Any:
        """Replace the record, if the lease is as it was read; raises TimeoutError."""
        async with asyncio.timeout(self._seconds):
            return await super().update(name, namespace, updated_record)


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

    lock = BoundedLock(NAME, settings.installation_namespace, identity, kube.api, seconds=settings.lease_duration / 2)
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
            except Exception as error:  # noqa: BLE001  # the library lets through whatever it cannot read, too
                log.warning("the lease could not be reached", extra={"error": f"{type(error).__name__}: {error}"})
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
