"""A clock that stands still, at the end of the known hour."""

from __future__ import annotations

from datetime import datetime

from praxis.clock import SystemClock
from tests.evidence.measuring import NOON


class StillClock(SystemClock):
    """Says always the same time."""

    def now(self) -> datetime:
        """Noon."""
        return NOON
