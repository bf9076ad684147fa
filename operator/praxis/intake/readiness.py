"""Whether the gateway could store a notification now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from praxis.clock import Clock
from praxis.errors import PraxisError
from praxis.intake.authentication import Sender
from praxis.intake.ledger import Ledger

CACHE_SECONDS: Final = 5.0
"""How long an answer holds: probes of many kubelets and balancers are one question to the API server."""
ASK_SECONDS: Final = 5.0


class Readiness:
    """Asks the API server with the gateway's own identity, and looks whether senders can be authenticated."""

    def __init__(self, *, ledger: Ledger, senders: Sequence[Sender], clock: Clock) -> None:
        self._ledger = ledger
        self._senders = senders
        self._clock = clock
        self._asking = asyncio.Lock()
        self._asked_at: float | None = None
        self._wrong: str | None = None

    async def wrong(self) -> str | None:
        """What is wrong; None when nothing is."""
        async with self._asking:
            now = self._clock.boottime()
            if self._asked_at is None or now - self._asked_at >= CACHE_SECONDS:
                self._wrong = await self._ask()
                self._asked_at = self._clock.boottime()
            return self._wrong

    async def _ask(self) -> str | None:
        try:
            for sender in self._senders:
                sender.check()
            async with asyncio.timeout(ASK_SECONDS):
                await self._ledger.reachable()
        except TimeoutError:
            return f"the API server did not answer in {ASK_SECONDS:g} seconds"
        except PraxisError as error:
            return str(error)
        return None
