"""The one send. An effect in memory: it exists between the decision to write an intent and that intent's outcome."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from praxis.actions.contract import Dispatch, Sent
from praxis.api.base import IntentId
from praxis.api.incident import Incident, Outcome, Result, Step
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.phases.contract import Tools, Transition
from praxis.phases.holding import still_held
from praxis.phases.outcome import believed, concluded, replaced

T = TypeVar("T")
HOLDER_READ_SECONDS = 5.0


@dataclass(frozen=True)
class Send:
    """Sends the request of one intent, once, and finds out what became of it."""

    target: RemediationTarget
    step: Step
    window_opened: float
    tools: Tools

    @property
    def intent(self) -> IntentId:
        """The intent that is acted on."""
        assert self.step.intent is not None
        return IntentId(self.step.intent.id)

    async def run(self, stored: Incident) -> Transition:
        """Dispatch on a thread of its own, then verify; whatever happens is an outcome."""
        return replaced(stored, self.step.replace(outcome=await self._outcome()))

    def never_sent(self, stored: Incident) -> Transition:
        """The intent is stored, but its 2xx never came: this process knows that it did not send."""
        return replaced(
            stored,
            self.step.replace(
                outcome=concluded(
                    self.tools,
                    Result.NOT_APPLIED,
                    Reason.NEVER_SENT,
                    "the answer to the intent's write was lost, so nothing was sent",
                )
            ),
        )

    async def _outcome(self) -> Outcome:
        assert self.step.intent is not None
        baseline = self.step.intent.baseline
        loop = asyncio.get_running_loop()
        try:
            dispatch = await on_own_thread(
                lambda: self.tools.adapter.dispatch(self.target, self.intent, baseline, lambda: self._refusal(loop))
            )
            if dispatch.sent in {Sent.NEVER_SENT, Sent.REJECTED}:
                return concluded(self.tools, Result.NOT_APPLIED, dispatch.reason, dispatch.message)
            return await self._verified(dispatch)
        except Exception as error:  # noqa: BLE001  # a bug past the intent must still end as Unknown, never in silence
            return concluded(self.tools, Result.UNKNOWN, Reason.NOT_PROVEN, f"the send ended in {type(error).__name__}")

    async def _verified(self, dispatch: Dispatch) -> Outcome:
        assert self.step.intent is not None
        baseline = self.step.intent.baseline
        verdict = await on_own_thread(lambda: self.tools.adapter.verify(self.target, self.intent, baseline, dispatch))
        # After a send that was accepted or is ambiguous, only proof counts; everything else is Unknown.
        return believed(self.tools, verdict)

    def _refusal(self, loop: asyncio.AbstractEventLoop) -> str | None:
        """Why the request may not leave any more; runs on the dispatching thread, right before the send.

        The clock is looked at last: between this look and the send there is nothing that could wait.
        """
        try:
            held = asyncio.run_coroutine_threadsafe(still_held(self.target, self.intent, self.tools), loop).result(
                HOLDER_READ_SECONDS
            )
        except Exception as error:  # noqa: BLE001  # who holds the target could not be read: then it is not us
            return f"the target's holder could not be read: {type(error).__name__}"
        if not held:
            return "another claim holds the target by now"
        late = self.tools.clock.boottime() - self.window_opened - self.tools.settings.actions.dispatch_window
        if late > 0:
            return f"the dispatch window passed {late:.1f} s ago"
        return None


async def on_own_thread(function: Callable[[], T], *, name: str = "praxis-send") -> T:
    """Run a function that sends, or looks for long, on a thread of its own; wait without being able to cancel it.

    Cancelling `asyncio.to_thread` does not stop what the thread sends, and its pool may be full of others. The thread
    is a daemon: when the process must end, it ends, which is what a kill would do; the open intent says so.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    # Who was cancelled does not ask any more; without this the loop would report an error that nobody can act on.
    future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def body() -> None:
        result, failure = None, None
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001  # carried over to the waiting task, which decides
            failure = error
        # When the process is ending, the loop may be closed by now: nobody waits for the answer any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=body, name=name, daemon=True).start()
    try:
        return await asyncio.shield(future)
    except Exception:
        # Not the function's own error, if it runs on: what it sends must not follow an outcome that says it is over.
        await asyncio.wait([future])
        raise
