"""What an adapter for a kind of target can do. All of it is synchronous: see `dispatch`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from praxis.api.base import IntentId
from praxis.api.incident import Baseline, Instance, Result
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget


class Sent(StrEnum):
    """What is known right after the send."""

    ACCEPTED = "Accepted"
    REJECTED = "Rejected"
    AMBIGUOUS = "Ambiguous"
    NEVER_SENT = "NeverSent"


@dataclass(frozen=True)
class Dispatch:
    """How the one send went, and what was read right before it."""

    sent: Sent
    reason: Reason
    message: str
    before: tuple[Instance, ...] = ()
    settled_at_once: bool = False
    """The answer itself said that the update is in force: no instance can have started in between."""


@dataclass(frozen=True)
class Verdict:
    """What reading the service shows of an intent."""

    result: Result
    reason: Reason
    message: str
    proof: str = ""
    after: tuple[Instance, ...] = ()


class Adapter(Protocol):
    """Acts on one declared target with that target's own credentials, and on nothing else."""

    def observe(self, target: RemediationTarget) -> Baseline:
        """Read the function's configuration digest and active instances.

        Raises:
            DefinitelyNotApplied: nothing is running, or the function is not there or cannot be restarted verifiably.
            RetryLater: the service could not be asked.
            NeedsPerson: the credentials are missing or refused.
        """
        ...

    def dispatch(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, permit: Callable[[], str | None]
    ) -> Dispatch:
        """Re-read, compare with the baseline, ask `permit`, send exactly once. Never raises.

        `permit` is called as the last thing before the request leaves, after the re-read; it returns None, or why
        nothing may be sent any more (NeverSent). It runs on the calling thread.
        """
        ...

    def verify(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, dispatch: Dispatch | None
    ) -> Verdict:
        """Read until the outcome is proven or the deadline has passed.

        `dispatch` is None for anybody but the process that wrote the intent: such a one concludes Applied or Unknown,
        never NotApplied. Outages while reading are waited out, until the deadline. Never raises.
        """
        ...
