"""What the adapter concludes from the one send, for everything that can go wrong with it; and that it is only one."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable

import pytest

from praxis.actions.contract import Sent
from praxis.actions.function_compute import FunctionComputeAdapter
from praxis.api.incident import Result
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.clock import SystemClock
from praxis.demo.function_compute import Emulator, EmulatorServer, Fault
from praxis.demo.function_compute.faults import Body, Kind
from praxis.settings import ActionSettings
from tests.actions.conftest import ACCESS_KEY, API_TOKEN, INTENT, SECRET, FakeClock, allowed

Declare = Callable[..., RemediationTarget]


def test_an_accepted_update_is_sent_once_with_the_environment_kept(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """The marker is added to the environment as it is, in one request, and what ran right before it is told."""
    baseline = adapter.observe(target)
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    assert (dispatch.sent, dispatch.reason, dispatch.settled_at_once) == (Sent.ACCEPTED, Reason.ACCEPTED, True)
    assert list(dispatch.before) == baseline.instances
    assert [(each.marker, each.applied) for each in emulator.dispatches()] == [(INTENT, True)]
    assert emulator.describe("checkout")["environmentVariables"] == {
        "API_TOKEN": API_TOKEN,
        "MODE": "fast",
        "PRAXIS_RESTART_ID": INTENT,
    }


def test_an_update_still_in_progress_is_not_settled_at_once(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """An answer that says InProgress leaves a window in which instances of the former configuration may start."""
    emulator.change("checkout", update_seconds=5)
    dispatch = adapter.dispatch(target, INTENT, adapter.observe(target), allowed)
    assert (dispatch.sent, dispatch.settled_at_once) == (Sent.ACCEPTED, False)


@pytest.mark.parametrize(
    ("fault", "sent", "applied", "said"),
    [
        pytest.param(Fault(kind=Kind.DROP_BEFORE), Sent.AMBIGUOUS, False, "no complete answer", id="dropped-before"),
        pytest.param(Fault(kind=Kind.DROP_AFTER), Sent.AMBIGUOUS, True, "no complete answer", id="dropped-after"),
        pytest.param(Fault(kind=Kind.DARK_BEFORE), Sent.AMBIGUOUS, False, "no complete answer", id="dark-before"),
        pytest.param(Fault(kind=Kind.DARK_AFTER), Sent.AMBIGUOUS, True, "no complete answer", id="dark-after"),
        pytest.param(Fault(kind=Kind.GARBLE), Sent.AMBIGUOUS, True, "not JSON", id="garbled-200"),
        pytest.param(
            Fault(kind=Kind.STATUS, status=409, code="ConcurrentUpdateError"),
            Sent.REJECTED,
            False,
            "HTTP 409, ConcurrentUpdateError",
            id="409",
        ),
        pytest.param(
            Fault(kind=Kind.STATUS, status=400, code="InvalidArgument", body=Body.FC),
            Sent.REJECTED,
            False,
            "HTTP 400, InvalidArgument, told to fail",
            id="400-in-the-documented-shape",
        ),
        pytest.param(
            Fault(kind=Kind.STATUS, status=408, code="Timeout"), Sent.AMBIGUOUS, False, "HTTP 408", id="408-is-no-no"
        ),
        pytest.param(
            Fault(kind=Kind.STATUS, status=429, code="ResourceExhausted", retry_after_ms=1500),
            Sent.REJECTED,
            False,
            "HTTP 429, ResourceExhausted",
            id="throttled-4xx",
        ),
        pytest.param(
            Fault(kind=Kind.STATUS, status=503, code="ResourceThrottled", retry_after_ms=1500),
            Sent.AMBIGUOUS,
            False,
            "HTTP 503, ResourceThrottled",
            id="throttled-5xx",
        ),
        pytest.param(Fault(kind=Kind.STATUS, status=500), Sent.AMBIGUOUS, False, "HTTP 500", id="500"),
        pytest.param(
            Fault(kind=Kind.STATUS, status=502, body=Body.HTML), Sent.AMBIGUOUS, False, "no complete answer", id="502"
        ),
        pytest.param(
            Fault(kind=Kind.STATUS, status=403, body=Body.HTML),
            Sent.AMBIGUOUS,
            False,
            "no complete answer",
            id="403-of-something-in-between",
        ),
        pytest.param(Fault(kind=Kind.REDIRECT), Sent.AMBIGUOUS, False, "307, a redirect", id="redirect"),
    ],
)
def test_every_failure_is_sent_once_and_told_for_what_it_is(  # noqa: PLR0917  # pytest passes by name
    adapter: FunctionComputeAdapter,
    target: RemediationTarget,
    emulator: Emulator,
    fault: Fault,
    sent: Sent,
    applied: bool,
    said: str,
) -> None:
    """Only a 4xx of the service itself, but 408, is a no; all else after the send is ambiguous; nothing is resent."""
    baseline = adapter.observe(target)
    emulator.arm(fault)
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    assert dispatch.sent is sent
    assert said in dispatch.message
    assert [(each.marker, each.applied) for each in emulator.dispatches()] == [(INTENT, applied)]


def test_a_redirect_is_not_followed(
    adapter: FunctionComputeAdapter, declare: Declare, emulator: Emulator, clock: FakeClock
) -> None:
    """Neither the environment nor a token reaches the host that a redirect names."""
    del clock
    with EmulatorServer(Emulator()) as elsewhere:
        target = declare()
        baseline = adapter.observe(target)
        emulator.arm(Fault(kind=Kind.REDIRECT, location=f"{elsewhere.url}/2023-03-30/functions/checkout"))
        assert adapter.dispatch(target, INTENT, baseline, allowed).sent is Sent.AMBIGUOUS
        assert elsewhere.emulator.arrivals() == []


@pytest.mark.parametrize("kind", [Kind.TRICKLE, Kind.DELAY])
def test_an_answer_that_never_ends_is_cut_off(
    target: RemediationTarget, emulator: Emulator, settings: ActionSettings, kind: Kind
) -> None:
    """The send has a deadline of its own, also against an answer whose bytes arrive faster than the read time-out."""
    adapter = FunctionComputeAdapter(settings=settings.model_copy(update={"request_timeout": 0.4}), clock=SystemClock())
    baseline = adapter.observe(target)
    emulator.arm(Fault(kind=kind, seconds=0.1 if kind is Kind.TRICKLE else 600))
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    emulator.close()
    assert dispatch.sent is Sent.AMBIGUOUS
    assert len(emulator.dispatches()) == 1


def test_a_refused_connection_is_never_sent(
    adapter: FunctionComputeAdapter, declare: Declare, emulator: Emulator
) -> None:
    """Without a connection nothing can have been sent, whatever exception the SDK wraps that in."""
    baseline = adapter.observe(declare())
    dispatch = adapter.dispatch(declare(endpoint="http://127.0.0.1:1"), INTENT, baseline, allowed)
    assert (dispatch.sent, dispatch.reason) == (Sent.NEVER_SENT, Reason.UNAVAILABLE)
    assert emulator.dispatches() == []


def test_the_permit_is_asked_last(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """When the permit is asked, on the calling thread, both reads are done; the next request to arrive is the send."""
    baseline = adapter.observe(target)
    known = len(emulator.arrivals())
    asked: list[tuple[int, list[str]]] = []

    def permit() -> str | None:
        asked.append((threading.get_ident(), [each.operation for each in emulator.arrivals()[known:]]))
        return None

    adapter.dispatch(target, INTENT, baseline, permit)
    assert asked == [(threading.get_ident(), ["ListInstances", "GetFunction"])]
    assert [each.operation for each in emulator.arrivals()[known:]] == [
        "ListInstances",
        "GetFunction",
        "UpdateFunction",
    ]


def test_without_a_permit_nothing_leaves(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """A permit that says why not is obeyed, and its reason is told."""
    dispatch = adapter.dispatch(target, INTENT, adapter.observe(target), lambda: "the dispatch window has passed")
    assert (dispatch.sent, dispatch.reason) == (Sent.NEVER_SENT, Reason.NEVER_SENT)
    assert dispatch.message == "Nothing was sent: the dispatch window has passed."
    assert emulator.dispatches() == []


def test_a_permit_that_fails_permits_nothing(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """An error in the permit is no permission."""

    def broken() -> str | None:
        raise ValueError("a mistake in the permit")

    assert adapter.dispatch(target, INTENT, adapter.observe(target), broken).sent is Sent.NEVER_SENT
    assert emulator.dispatches() == []


@pytest.mark.parametrize("operation", ["ListInstances", "GetFunction"])
def test_a_change_by_somebody_else_before_the_send_stops_it(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, operation: str
) -> None:
    """A configuration that differs from the baseline at the last look would be overwritten: nothing is sent."""
    baseline = adapter.observe(target)
    emulator.arm(Fault(kind=Kind.FOREIGN_CHANGE, operation=operation))
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    assert (dispatch.sent, dispatch.reason) == (Sent.NEVER_SENT, Reason.BASELINE_CHANGED)
    assert emulator.dispatches() == []


def test_a_change_that_changes_nothing_stops_it_too(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, clock: FakeClock
) -> None:
    """Somebody who wrote the same environment again is at work on the function: nothing is sent."""
    baseline = adapter.observe(target)
    clock.advance(10)
    emulator.deploy("checkout", {})
    clock.advance(2)
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    assert (dispatch.sent, dispatch.reason) == (Sent.NEVER_SENT, Reason.BASELINE_CHANGED)
    assert "modified at 2027-01-15T08:00:10Z" in dispatch.message


def test_a_change_within_the_same_second_stops_it(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """lastModifiedTime counts whole seconds: the configuration itself is compared, too."""
    emulator.change("checkout", refuse_to_rotate=True)
    emulator.deploy("checkout", {"MODE": "slow"})
    baseline = adapter.observe(target)
    emulator.deploy("checkout", {"MODE": "slower"})
    assert emulator.describe("checkout")["lastModifiedTime"] == baseline.last_modified
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    assert dispatch.reason is Reason.BASELINE_CHANGED
    assert dispatch.message.endswith("changed since it was observed: environmentVariables.MODE changed.")
    assert emulator.dispatches() == []


def test_an_earlier_intent_that_lands_late_stops_it(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """The marker of another restart counts as a change: a request that was held up on the way is seen."""
    baseline = adapter.observe(target)
    emulator.deploy("checkout", {"PRAXIS_RESTART_ID": "intent-of-yesterday"})
    assert adapter.dispatch(target, INTENT, baseline, allowed).reason is Reason.BASELINE_CHANGED
    assert emulator.dispatches() == []


def test_nothing_running_any_more_stops_it(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """Instances that ended since the baseline leave nothing to restart."""
    baseline = adapter.observe(target)
    for each in baseline.instances:
        emulator.stop_instance("checkout", each.id)
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    assert (dispatch.sent, dispatch.reason) == (Sent.NEVER_SENT, Reason.NOTHING_RUNNING)


@pytest.mark.parametrize("operation", ["ListInstances", "GetFunction"])
@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind=Kind.STATUS, status=500),
        Fault(kind=Kind.STATUS, status=403, code="AccessDenied"),
        Fault(kind=Kind.DROP_AFTER),
        Fault(kind=Kind.REDIRECT),
        Fault(kind=Kind.GARBLE),
    ],
    ids=["500", "403", "dropped", "redirect", "garbled"],
)
def test_a_failed_re_read_sends_nothing(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, fault: Fault, operation: str
) -> None:
    """What cannot be compared with the baseline is not sent."""
    baseline = adapter.observe(target)
    emulator.arm(fault.model_copy(update={"operation": operation}))
    assert adapter.dispatch(target, INTENT, baseline, allowed).sent is Sent.NEVER_SENT
    assert emulator.dispatches() == []


def test_a_target_that_is_not_disposable_is_never_written_to(
    adapter: FunctionComputeAdapter, declare: Declare, emulator: Emulator
) -> None:
    """Whatever a plan says, only a target declared disposable is acted on."""
    precious = declare(disposable=False)
    dispatch = adapter.dispatch(precious, INTENT, adapter.observe(precious), allowed)
    assert (dispatch.sent, dispatch.reason) == (Sent.NEVER_SENT, Reason.TARGET_NOT_DISPOSABLE)
    assert emulator.dispatches() == []


def test_a_key_of_another_function_is_refused(
    adapter: FunctionComputeAdapter, declare: Declare, emulator: Emulator
) -> None:
    """The target's key is limited to its function: naming another one in a target reaches nothing."""
    baseline = adapter.observe(declare())
    dispatch = adapter.dispatch(declare(function="payments"), INTENT, baseline, allowed)
    assert dispatch.sent is Sent.NEVER_SENT
    assert "AccessDenied" in dispatch.message
    assert emulator.dispatches() == []


def test_a_wrong_secret_is_told_without_showing_it(
    adapter: FunctionComputeAdapter, target: RemediationTarget, settings: ActionSettings
) -> None:
    """The service's message quotes the access key; the dispatch's message does not."""
    baseline = adapter.observe(target)
    path = settings.credentials_dir / "checkout.json"
    path.write_text(f'{{"accessKeyId": "{ACCESS_KEY}", "accessKeySecret": "not-the-secret"}}')
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    assert dispatch.sent is Sent.NEVER_SENT
    assert "SignatureNotMatch, the signature does not match" in dispatch.message
    assert "[redacted]" in dispatch.message
    assert ACCESS_KEY not in dispatch.message


def test_no_secret_reaches_a_message_or_the_log(
    adapter: FunctionComputeAdapter,
    target: RemediationTarget,
    emulator: Emulator,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A service that quotes key, secret and environment in its error has them masked, and nothing logs them."""
    baseline = adapter.observe(target)
    told = f"bad request ?AccessKeyId={ACCESS_KEY}&Secret={SECRET} for API_TOKEN={API_TOKEN}"
    emulator.arm(Fault(kind=Kind.STATUS, status=400, code="InvalidArgument", message=told))
    with caplog.at_level(logging.DEBUG):
        dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    shown = dispatch.message + caplog.text + "".join(capfd.readouterr())
    assert "bad request ?AccessKeyId=[redacted]&Secret=[redacted] for API_TOKEN=[redacted]" in dispatch.message
    assert [secret for secret in (ACCESS_KEY, SECRET, API_TOKEN) if secret in shown] == []


def test_what_was_never_sent_or_refused_is_not_applied(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """Only after NeverSent or Rejected does verification conclude NotApplied, and it asks nobody for that."""
    baseline = adapter.observe(target)
    emulator.arm(Fault(kind=Kind.STATUS, status=409, code="ConcurrentUpdateError"))
    rejected = adapter.dispatch(target, INTENT, baseline, allowed)
    asked = len(emulator.arrivals())
    for dispatch in (rejected, dataclasses.replace(rejected, sent=Sent.NEVER_SENT, reason=Reason.NEVER_SENT)):
        verdict = adapter.verify(target, INTENT, baseline, dispatch)
        assert (verdict.result, verdict.reason, verdict.message) == (
            Result.NOT_APPLIED,
            dispatch.reason,
            dispatch.message,
        )
    assert len(emulator.arrivals()) == asked


def test_a_send_held_on_the_way_is_one_send(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """While the service sits on a request it has arrived once and is not applied; released, it is applied once."""
    baseline = adapter.observe(target)
    held = emulator.arm(Fault(kind=Kind.HOLD_BEFORE))
    results: list[Sent] = []
    thread = threading.Thread(
        target=lambda: results.append(adapter.dispatch(target, INTENT, baseline, allowed).sent), daemon=True
    )
    thread.start()
    assert emulator.wait_for_hits(held)
    assert [(each.applied, each.status) for each in emulator.dispatches(marker=INTENT)] == [(False, None)]
    emulator.disarm(held)
    thread.join(30)
    assert results == [Sent.ACCEPTED]
    assert [(each.applied, each.status) for each in emulator.dispatches(marker=INTENT)] == [(True, 200)]
