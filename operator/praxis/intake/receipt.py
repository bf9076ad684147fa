"""What became of a notification, and which signed ones were taken already."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

REMEMBERED: Final = 16_384
"""Webhook ids that are remembered, some 4 MB; more than a sender can sign within the replay window in practice."""


class Outcome(StrEnum):
    """How a notification ended; every one that was received has exactly one."""

    CREATED = "created"
    MERGED = "merged"
    SUPPRESSED = "suppressed"
    REFUSED = "refused"


class Cause(StrEnum):
    """Why it ended so; a label of the metric, and a word in the answer."""

    FIRST_EPISODE = "FirstEpisode"
    NEXT_EPISODE = "NextEpisode"
    CHANGED = "Changed"
    UNCHANGED = "Unchanged"
    NOTHING_FIRES = "NothingFires"
    EPISODE_ENDED = "EpisodeEnded"
    ALREADY_RECEIVED = "AlreadyReceived"
    UNAUTHENTICATED = "Unauthenticated"
    UNSUPPORTED_MEDIA_TYPE = "UnsupportedMediaType"
    TOO_LARGE = "TooLarge"
    INCOMPLETE = "Incomplete"
    INVALID = "Invalid"
    SLOW = "Slow"
    OVERLOADED = "Overloaded"
    UNAVAILABLE = "Unavailable"
    INTERRUPTED = "Interrupted"
    INTERNAL_ERROR = "InternalError"


OUTCOMES: Final = {
    Cause.FIRST_EPISODE: Outcome.CREATED,
    Cause.NEXT_EPISODE: Outcome.CREATED,
    Cause.CHANGED: Outcome.MERGED,
    Cause.UNCHANGED: Outcome.MERGED,
    Cause.NOTHING_FIRES: Outcome.SUPPRESSED,
    Cause.EPISODE_ENDED: Outcome.SUPPRESSED,
    Cause.ALREADY_RECEIVED: Outcome.SUPPRESSED,
}
"""Every other cause refuses."""

SENTENCES: Final = {
    Cause.FIRST_EPISODE: "a new Incident",
    Cause.NEXT_EPISODE: "a new Incident: the previous episode of this group has ended",
    Cause.CHANGED: "merged into the open Incident of this group",
    Cause.UNCHANGED: "the Incident of this group knows all of this",
    Cause.NOTHING_FIRES: "nothing fires, and no Incident knows this group",
    Cause.EPISODE_ENDED: "nothing fires that the ended Incident of this group does not know",
    Cause.ALREADY_RECEIVED: "a notification with this webhook-id was taken already",
}


@dataclass(frozen=True)
class Receipt:
    """What became of a notification that was taken."""

    cause: Cause
    incident: str | None
    """namespace/name."""

    @property
    def outcome(self) -> Outcome:
        """Created, merged or suppressed."""
        return OUTCOMES[self.cause]


class Receipts:
    """The newest receipts by webhook-id; the oldest are forgotten first.

    Only what was taken is remembered: a sender that was refused sends again under the same id. The store is this
    process' own. A replay to another replica, or after this one has restarted, merges, which changes nothing unless the
    alert has changed since; the replay window bounds that.
    """

    def __init__(self, *, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._taken: OrderedDict[str, Receipt] = OrderedDict()

    def find(self, webhook_id: str) -> Receipt | None:
        """The receipt of a notification that was taken, if it is still known."""
        return self._taken.get(webhook_id)

    def keep(self, webhook_id: str, receipt: Receipt) -> None:
        """Remember a notification that was taken."""
        self._taken[webhook_id] = receipt
        self._taken.move_to_end(webhook_id)
        while len(self._taken) > self._limit:
            self._taken.popitem(last=False)
