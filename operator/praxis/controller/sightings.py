"""What this process knows of intents from its own life. In memory only: another process must not believe it."""

from __future__ import annotations

from collections import OrderedDict

from praxis.clock import Clock

REMEMBERED = 4096
"""More intents than can be open in a process' life at any one time; the oldest are forgotten first, which only makes a
later look wait anew."""


class Intents:
    """First sightings, and writes that were given up."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, float] = OrderedDict()
        self._given_up: OrderedDict[str, None] = OrderedDict()

    def first_seen(self, intent_id: str) -> float:
        """Seconds since boot when this process first saw the intent; the first call sets it."""
        if intent_id not in self._seen:
            self._seen[intent_id] = self._clock.boottime()
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        return self._seen[intent_id]

    def give_up(self, intent_id: str) -> None:
        """The intent's write was not acknowledged: it will not be acted on, even if it turns out to be stored."""
        self._given_up[intent_id] = None
        if len(self._given_up) > REMEMBERED:
            self._given_up.popitem(last=False)

    def never_sent(self, intent_id: str) -> bool:
        """Whether it was given up here."""
        return intent_id in self._given_up
