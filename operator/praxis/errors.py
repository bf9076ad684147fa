"""Every error PRAXIS raises on purpose, by its consequence: who can do something about it, and what is known.

    PraxisError
    ├── RetryLater           an outage, a throttle or a spent budget: the incident stays where it is
    │   └── AnswerLost       the same, of a write that may have been stored all the same
    ├── Refused              the API server said no: not found, forbidden, a conflict, an invalid object
    ├── Superseded           somebody wrote first: drop what was decided, look again
    ├── NeedsPerson          configuration or an installation that only a person can mend: the incident stays, stalled
    ├── InvalidAnswer        a model's answer that does not hold: counts as one of a bounded number of attempts
    ├── DefinitelyNotApplied an action surely had no effect                      (raised by praxis.actions only)
    └── OutcomeUnknown       an action may or may not have had an effect         (raised by praxis.actions only)

Errors of other libraries are mapped where they enter, to one of these, chained. No error moves an incident forward.
"""

from __future__ import annotations

from typing import Any


class PraxisError(Exception):
    """The root; `reason` is a CamelCase word for conditions, Events and metric labels."""

    reason = "Error"
    usage: Any = None
    """What the models had cost when this was raised (`praxis.api.incident.Usage`); set by `praxis.reasoning`."""

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        if reason is not None:
            self.reason = reason


class RetryLater(PraxisError):
    """Nothing is wrong with the incident; try again, after `after` seconds when the other side named a time."""

    reason = "Unavailable"

    def __init__(self, message: str, *, reason: str | None = None, after: float | None = None) -> None:
        super().__init__(message, reason=reason)
        self.after = after


class AnswerLost(RetryLater):
    """A write was sent and no answer came: whether it was stored can only be read."""

    reason = "AnswerLost"


class Refused(PraxisError):
    """The API server refused a request; `status` is the HTTP status, the message is the server's."""

    reason = "Refused"

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status

    @property
    def not_found(self) -> bool:
        """Whether the object does not exist."""
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """Whether the object changed, or a name is taken."""
        return self.status == 409


class Superseded(PraxisError):
    """The object changed since it was read; whatever was decided on the old one is void."""

    reason = "Superseded"


class NeedsPerson(PraxisError):
    """Only a person can mend this; the message says what to do."""

    reason = "ActionRequired"


class InvalidAnswer(PraxisError):
    """A model's answer that failed validation, after its one repair turn."""

    reason = "InvalidAnswer"


class DefinitelyNotApplied(PraxisError):
    """The request was never sent, or the service refused it with a definite no."""

    reason = "NotApplied"


class OutcomeUnknown(PraxisError):
    """The request may have been applied; only reading the service can tell."""

    reason = "OutcomeUnknown"
