"""The restart of a declared Function Compute function: look, send once, prove.

Function Compute 3.0 has no restart call. Changing the environment replaces the running instances; the intent id, set as
`PRAXIS_RESTART_ID`, is what shows afterwards that it was this very request that was applied.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from praxis.actions.catalogue import MARKER
from praxis.actions.contract import Dispatch, Sent, Verdict
from praxis.actions.drift import drift
from praxis.actions.function_compute.credentials import digest_key, read_credentials
from praxis.actions.function_compute.faults import Fate, Fault
from praxis.actions.function_compute.service import IN_PROGRESS, SUCCESSFUL, FunctionState, Listing, Service
from praxis.actions.function_compute.state import configuration_digest, configuration_parts
from praxis.actions.function_compute.verification import Question, Verification
from praxis.api import bounds
from praxis.api.base import IntentId
from praxis.api.incident import Baseline, Instance, Result
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.clock import Clock
from praxis.errors import DefinitelyNotApplied, NeedsPerson, PraxisError, RetryLater
from praxis.settings import ActionSettings


class FunctionComputeAdapter:
    """Implements `praxis.actions.contract.Adapter`. Holds no connection and no credentials between calls.

    `key` is the configured key of the digests (`read_digest_key`); without one, each target's is derived from its own
    access key. `pause` waits between two looks, in seconds.
    """

    def __init__(
        self,
        *,
        settings: ActionSettings,
        clock: Clock,
        key: bytes | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._key = key
        self._pause = pause

    def observe(self, target: RemediationTarget) -> Baseline:
        """Read configuration digest and active instances; as the contract says."""
        with self._connect(target) as service:
            function = service.get_function()
            if function.last_update_status == IN_PROGRESS:
                raise RetryLater("an update of the function is in progress; it can be restarted when that has ended")
            instances = _restartable(function, service.list_instances())
            state, parts = self._state(target, function)
        return Baseline(state=state, parts=parts, last_modified=function.last_modified, instances=list(instances))

    def dispatch(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, permit: Callable[[], str | None]
    ) -> Dispatch:
        """Re-read, compare, ask `permit`, send once; as the contract says.

        The instances are read before the function: what starts after that list is told by its creation time, but a
        change of the environment that was not seen would be lost without a trace.
        """
        if not target.spec.disposable:
            return _never_sent(Reason.TARGET_NOT_DISPOSABLE, f"target {target.key} is not disposable")
        try:
            with self._connect(target) as service:
                listing = service.list_instances()
                function = service.get_function()
                before = _restartable(function, listing)
                if changed := self._difference(target, baseline, function):
                    return _never_sent(Reason.BASELINE_CHANGED, changed, before)
                answer = service.set_environment({**function.environment, MARKER: intent}, guard=permit)
        except PraxisError as error:
            # Only the reads raise; the write gives back what became of it.
            return _never_sent(_reason(error), str(error))
        return _sent(answer, intent, before)

    def verify(
        self, target: RemediationTarget, intent: IntentId, baseline: Baseline, dispatch: Dispatch | None
    ) -> Verdict:
        """Read until the outcome is proven or the deadline has passed; as the contract says."""
        if dispatch is not None and dispatch.sent in {Sent.NEVER_SENT, Sent.REJECTED}:
            return Verdict(result=Result.NOT_APPLIED, reason=dispatch.reason, message=dispatch.message)
        spec = target.spec.function_compute
        return Verification(
            question=Question(
                intent=intent,
                function=spec.function,
                health_path=spec.health_path,
                baseline=baseline,
                dispatch=dispatch,
            ),
            connect=lambda: self._connect(target),
            settings=self._settings,
            clock=self._clock,
            pause=self._pause,
        ).run()

    @contextmanager
    def _connect(self, target: RemediationTarget) -> Iterator[Service]:
        credentials = read_credentials(self._settings, target)
        with Service(
            function=target.spec.function_compute,
            credentials=credentials,
            request_seconds=self._settings.request_timeout,
        ) as service:
            yield service

    def _state(self, target: RemediationTarget, function: FunctionState) -> tuple[str, list[str]]:
        key = digest_key(self._key, read_credentials(self._settings, target), target)
        try:
            return configuration_digest(key, function.document), configuration_parts(key, function.document)
        except ValueError as error:
            raise NeedsPerson(f"the function's configuration has no canonical form: {error}") from error

    def _difference(self, target: RemediationTarget, baseline: Baseline, function: FunctionState) -> str | None:
        state, parts = self._state(target, function)
        if state != baseline.state:
            return f"the function's configuration has changed since it was observed{drift(baseline.parts, parts)}"
        if function.last_modified != baseline.last_modified:
            return f"the function was modified at {function.last_modified}, after it was observed"
        return None


def _restartable(function: FunctionState, listing: Listing) -> tuple[Instance, ...]:
    """The active instances, if a restart of them could be proven.

    Raises:
        DefinitelyNotApplied: none is running, there are too many, or the service does not say what the proof needs.
        RetryLater: not all are listed, or an update is in progress.
    """
    count = len(listing.instances)
    if count > bounds.INSTANCES:
        raise DefinitelyNotApplied(
            f"more than {bounds.INSTANCES} instances are active; PRAXIS cannot keep track of so many",
            reason=Reason.NOT_VERIFIABLE,
        )
    if not listing.complete:
        raise RetryLater("the service did not list all instances")
    if function.state not in {"", "Active"}:
        raise DefinitelyNotApplied(f"the function's state is {function.state}", reason=Reason.NOT_VERIFIABLE)
    if function.last_update_status not in {SUCCESSFUL, "Failed"}:
        # Without it no update could ever be seen in force: refused here, rather than sent and never known.
        said = function.last_update_status or "not told"
        raise DefinitelyNotApplied(f"the function's lastUpdateStatus is {said}", reason=Reason.NOT_VERIFIABLE)
    if count == 0:
        raise DefinitelyNotApplied(
            "no instance is running, so there is nothing to restart", reason=Reason.NOTHING_RUNNING
        )
    return listing.instances


def _never_sent(reason: Reason, message: str, before: tuple[Instance, ...] = ()) -> Dispatch:
    return Dispatch(sent=Sent.NEVER_SENT, reason=reason, message=f"Nothing was sent: {message}.", before=before)


def _reason(error: PraxisError) -> Reason:
    return Reason(error.reason) if error.reason in set(Reason) else Reason.NEVER_SENT


def _sent(answer: FunctionState | Fault, intent: IntentId, before: tuple[Instance, ...]) -> Dispatch:
    if isinstance(answer, FunctionState):
        return Dispatch(
            sent=Sent.ACCEPTED,
            reason=Reason.ACCEPTED,
            message=f"The service accepted the update (request {answer.request_id}).",
            before=before,
            settled_at_once=answer.last_update_status == SUCCESSFUL and answer.environment.get(MARKER) == intent,
        )
    if answer.fate is Fate.NEVER_SENT:
        return _never_sent(Reason.NEVER_SENT, answer.message, before)
    if answer.fate is Fate.REJECTED:
        message = f"The service refused the update: {answer.message}."
        return Dispatch(sent=Sent.REJECTED, reason=Reason.REJECTED_BY_SERVICE, message=message, before=before)
    message = f"Whether the update was applied is not known from its answer: {answer.message}."
    return Dispatch(sent=Sent.AMBIGUOUS, reason=Reason.OUTCOME_UNKNOWN, message=message, before=before)
