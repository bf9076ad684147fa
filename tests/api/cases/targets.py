"""Round the declared targets."""

from __future__ import annotations

from praxis.api.target import RemediationTarget
from tests.api.cases.contract import allowed, refused
from tests.api.lab import (
    Lab,
    holder,
)


@refused("target-is-final", "a target never changes; declare another one", RemediationTarget)
async def target_pointed_elsewhere(lab: Lab) -> None:
    await lab.patch_spec(await lab.target(), RemediationTarget, functionCompute={"function": "billing"})


@refused("target-is-final", "a target never changes; declare another one", RemediationTarget)
async def target_made_disposable(lab: Lab) -> None:
    await lab.patch_spec(await lab.target(), RemediationTarget, disposable=False)


@refused("plain-http-on-loopback", "http only on loopback", RemediationTarget)
async def plain_http_into_the_world(lab: Lab) -> None:
    await lab.target(endpoint="http://fc.example.com")


@refused("plain-http-on-loopback", "http only on loopback", RemediationTarget)
async def plain_http_to_a_host_that_looks_like_loopback(lab: Lab) -> None:
    await lab.target(endpoint="http://127.0.0.1.example.com")


@allowed
async def https_into_the_world(lab: Lab) -> None:
    await lab.target(endpoint="https://fc.example.com")


@refused(None, 'Unsupported value: "v1": supported values: "LATEST"', RemediationTarget)
async def target_with_a_published_version(lab: Lab) -> None:
    await lab.target(qualifier="v1")


@refused("claimed-anew", "a holder changes only by another claim", RemediationTarget)
async def holder_changed_under_its_intent(lab: Lab) -> None:
    held = await lab.held()
    await lab.write_status(held, {"holder": holder(writer="writer-b")}, RemediationTarget)


@allowed
async def target_claimed_over_a_former_claim(lab: Lab) -> None:
    await lab.write_status(await lab.held(), {"holder": holder("intent-00000002")}, RemediationTarget)


@allowed
async def target_released(lab: Lab) -> None:
    await lab.write_status(await lab.held(), {}, RemediationTarget)
