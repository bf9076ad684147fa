"""What reading the service proves of an intent: Applied with proof, or Unknown; never more than was seen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.actions.contract import Dispatch, Sent, Verdict
from praxis.actions.function_compute import FunctionComputeAdapter
from praxis.actions.function_compute.service import FunctionState
from praxis.actions.function_compute.verification import Age, Question, age_of, bound_of
from praxis.api.base import IntentId
from praxis.api.incident import Baseline, Instance, Result
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.demo.function_compute import Emulator, Fault
from praxis.demo.function_compute.faults import Kind
from tests.actions.conftest import INTENT, FakeClock, allowed

Declare = Callable[..., RemediationTarget]


def restart(
    adapter: FunctionComputeAdapter, target: RemediationTarget, intent: IntentId = INTENT
) -> tuple[Baseline, Dispatch, Verdict]:
    """The three steps of a restart."""
    baseline = adapter.observe(target)
    dispatch = adapter.dispatch(target, intent, baseline, allowed)
    return baseline, dispatch, adapter.verify(target, intent, baseline, dispatch)


def ids(instances: object) -> set[str]:
    """The ids of instances."""
    return {each.id for each in instances}  # type: ignore[attr-defined]


def test_replaced_instances_are_a_restart(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """Old instances gone, newer ones running, our marker in force: Applied, with a proof that names all of it."""
    baseline, _, verdict = restart(adapter, target)
    running = emulator.instances("checkout")
    assert (verdict.result, verdict.reason) == (Result.APPLIED, Reason.RESTARTED)
    assert ids(verdict.after) == ids(running)
    assert not ids(verdict.after) & ids(baseline.instances)
    assert f"checkout carries PRAXIS_RESTART_ID={INTENT} and its update is in force" in verdict.proof
    assert "request " in verdict.proof
    assert all(f"{each.id} (created 2027-01-15T08:00:02.000Z)" in verdict.proof for each in running)
    assert len(verdict.proof) <= 1024


def test_no_instance_left_is_drained(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """Old instances gone and none running: Applied too, as the next request starts with the new configuration."""
    emulator.change("checkout", replacements=0)
    _, _, verdict = restart(adapter, target)
    assert (verdict.result, verdict.reason, verdict.after) == (Result.APPLIED, Reason.DRAINED, ())
    assert "none of the 2 instances from before is active, and no other is." in verdict.proof


@pytest.mark.parametrize("kind", [Kind.DROP_AFTER, Kind.GARBLE, Kind.REDIRECT, Kind.DROP_BEFORE])
def test_an_ambiguous_send_is_settled_by_the_marker(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, kind: Kind
) -> None:
    """A lost answer is Applied when the marker is there and Unknown, never NotApplied, when it is not."""
    baseline = adapter.observe(target)
    emulator.change("checkout", start_seconds=10)
    emulator.arm(Fault(kind=kind))
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    assert dispatch.sent is Sent.AMBIGUOUS
    verdict = adapter.verify(target, INTENT, baseline, dispatch)
    if kind in {Kind.DROP_AFTER, Kind.GARBLE}:
        assert (verdict.result, verdict.reason) == (Result.APPLIED, Reason.DRAINED)
    else:
        assert (verdict.result, verdict.reason) == (Result.UNKNOWN, Reason.NOT_PROVEN)
        assert f"does not carry PRAXIS_RESTART_ID={INTENT}" in verdict.message
    assert len(emulator.dispatches()) == 1


def test_instances_that_stay_are_unknown(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, clock: FakeClock
) -> None:
    """A marker in force is no restart while an old instance lives: Unknown at the deadline, naming the instances."""
    emulator.change("checkout", refuse_to_rotate=True)
    started = clock.seconds
    baseline, _, verdict = restart(adapter, target)
    assert (verdict.result, verdict.reason) == (Result.UNKNOWN, Reason.NOT_PROVEN)
    assert all(each.id in verdict.message for each in baseline.instances)
    assert ids(verdict.after) == ids(baseline.instances)
    assert clock.seconds - started == 60


def test_one_old_instance_among_new_ones_is_unknown(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """New instances prove nothing while one from before still serves."""
    emulator.change("checkout", refuse_to_rotate=True)
    baseline = adapter.observe(target)
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    emulator.stop_instance("checkout", baseline.instances[0].id)
    emulator.start_instance("checkout")
    verdict = adapter.verify(target, INTENT, baseline, dispatch)
    assert verdict.result is Result.UNKNOWN
    assert baseline.instances[1].id in verdict.message


@pytest.mark.parametrize("ever", [True, False], ids=["until-told", "for-good"])
def test_darkness_after_the_dispatch_is_waited_out(
    adapter: FunctionComputeAdapter, declare: Declare, emulator: Emulator, ever: bool
) -> None:
    """Outages while reading are waited out; what stays dark until the deadline is Unknown."""
    # With a health path: what started in the dark started before the first answer that said Successful.
    target = declare(health_path="/praxis/health")
    baseline = adapter.observe(target)
    emulator.arm(Fault(kind=Kind.DARK_AFTER))
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    if ever:
        reads = len(emulator.arrivals())
        dark = FunctionComputeAdapter(
            settings=adapter._settings,
            clock=adapter._clock,
            pause=lambda seconds: _light_after(emulator, adapter, seconds, reads + 3),
        )
        assert dark.verify(target, INTENT, baseline, dispatch).reason is Reason.RESTARTED
    else:
        verdict = adapter.verify(target, INTENT, baseline, dispatch)
        assert verdict.result is Result.UNKNOWN
        assert "the service could not be asked" in verdict.message
    assert len(emulator.dispatches()) == 1


def _light_after(emulator: Emulator, adapter: FunctionComputeAdapter, seconds: float, arrivals: int) -> None:
    adapter._pause(seconds)
    if len(emulator.arrivals()) >= arrivals:
        emulator.light()


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind=Kind.STATUS, status=500, operation="*", times=5),
        Fault(kind=Kind.STATUS, status=403, code="AccessDenied", operation="*", times=5),
        Fault(kind=Kind.STATUS, status=404, code="FunctionNotFound", operation="GetFunction", times=5),
        Fault(kind=Kind.GARBLE, operation="ListInstances", times=3),
    ],
    ids=["500", "403", "404", "garbled"],
)
def test_failed_reads_delay_the_verdict_only(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, fault: Fault
) -> None:
    """No error of a read is an outcome: looking again finds what is there."""
    baseline = adapter.observe(target)
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    emulator.arm(fault)
    assert adapter.verify(target, INTENT, baseline, dispatch).reason is Reason.RESTARTED


def test_an_instance_started_during_the_update_counts_as_old(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, clock: FakeClock
) -> None:
    """What starts while the update is InProgress runs with the former configuration, though it is created after it."""
    emulator.change("checkout", update_seconds=10, drain_seconds=600, replacements=0)
    baseline = adapter.observe(target)
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    for each in baseline.instances:
        emulator.stop_instance("checkout", each.id)
    begun = clock.seconds
    stale: list[str] = []

    def pause(seconds: float) -> None:
        clock.advance(seconds)
        if clock.seconds - begun >= 6 and not stale:
            stale.append(emulator.start_instance("checkout"))

    verifying = FunctionComputeAdapter(settings=adapter._settings, clock=clock, pause=pause)
    verdict = verifying.verify(target, INTENT, baseline, dispatch)
    assert (verdict.result, verdict.reason) == (Result.UNKNOWN, Reason.NOT_PROVEN)
    assert stale[0] in verdict.message


def test_an_instance_started_right_after_the_update_is_told_by_its_health_path(
    adapter: FunctionComputeAdapter, declare: Declare, emulator: Emulator
) -> None:
    """Within the second that the service's clocks cannot tell apart, only the instance itself can say."""
    emulator.change("checkout", start_seconds=0)
    _, _, without = restart(adapter, declare())
    assert without.result is Result.UNKNOWN
    _, _, verdict = restart(adapter, declare(health_path="/praxis/health"), IntentId("intent-second"))
    assert (verdict.result, verdict.reason) == (Result.APPLIED, Reason.RESTARTED)
    assert "answered with PRAXIS_RESTART_ID of this intent" in verdict.proof


def test_an_instance_started_between_list_and_send_is_old(
    adapter: FunctionComputeAdapter, declare: Declare, emulator: Emulator
) -> None:
    """It is in no list from before and yet runs the former configuration: neither clocks nor health path take it in."""
    target = declare(health_path="/praxis/health")
    baseline = adapter.observe(target)
    emulator.change("checkout", refuse_to_rotate=True)
    emulator.arm(Fault(kind=Kind.START_INSTANCE, operation="ListInstances"))
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    for each in dispatch.before:
        emulator.stop_instance("checkout", each.id)
    verdict = adapter.verify(target, INTENT, baseline, dispatch)
    (sneaked,) = emulator.instances("checkout")
    assert sneaked.id not in ids(dispatch.before)
    assert verdict.result is Result.UNKNOWN
    assert sneaked.id in verdict.message


@pytest.mark.parametrize("skew", [-86400.0, 86400.0])
def test_the_service_s_clock_may_be_off_ours(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, skew: float
) -> None:
    """Only the service's own times are compared with each other."""
    emulator.skew(skew)
    emulator.add_function(emulator._functions["checkout"].seed)
    assert restart(adapter, target)[2].reason is Reason.RESTARTED


def test_instances_whose_clock_is_behind_need_a_health_path(
    adapter: FunctionComputeAdapter, declare: Declare, emulator: Emulator
) -> None:
    """Creation times of a clock that is behind are never surely newer; the health path settles it."""
    emulator.change("checkout", instance_clock_skew_seconds=-30)
    assert restart(adapter, declare())[2].result is Result.UNKNOWN
    verdict = restart(adapter, declare(health_path="/praxis/health"), IntentId("intent-second"))[2]
    assert verdict.reason is Reason.RESTARTED


def test_a_health_path_that_is_not_allowed_settles_nothing(
    adapter: FunctionComputeAdapter, declare: Declare, emulator: Emulator
) -> None:
    """An invocation that fails is no proof and no outcome."""
    emulator.change("checkout", start_seconds=0)
    emulator.arm(Fault(kind=Kind.STATUS, status=403, code="AccessDenied", operation="InvokeFunction", times=None))
    assert restart(adapter, declare(health_path="/praxis/health"))[2].result is Result.UNKNOWN


def test_another_process_proves_a_restart_from_what_it_sees(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator, clock: FakeClock
) -> None:
    """Without the dispatch, whatever was created after the first answer that it got itself is surely newer."""
    baseline = adapter.observe(target)
    emulator.change("checkout", replacements=0)
    adapter.dispatch(target, INTENT, baseline, allowed)
    emulator.change("checkout", drain_seconds=600)
    clock.advance(1)
    other = FunctionComputeAdapter(settings=adapter._settings, clock=clock, pause=_starting(emulator, clock, 6))
    verdict = other.verify(target, INTENT, baseline, None)
    assert (verdict.result, verdict.reason) == (Result.APPLIED, Reason.RESTARTED)


def _starting(emulator: Emulator, clock: FakeClock, after: int) -> Callable[[float], None]:
    begun = clock.seconds

    def pause(seconds: float) -> None:
        clock.advance(seconds)
        if clock.seconds - begun >= after and not emulator.instances("checkout"):
            emulator.start_instance("checkout")

    # An old instance that outlives the first looks keeps the verification going until the new one is there.
    lasting = next(each for each in emulator._functions["checkout"].instances)
    lasting.ends = begun + after
    return pause


def test_another_process_cannot_tell_what_started_before_it_looked(
    adapter: FunctionComputeAdapter, declare: Declare, emulator: Emulator, clock: FakeClock
) -> None:
    """New instances from before its own first look stay unsure by the clocks, and are proven by the health path."""
    for path, result, reason in (
        (None, Result.UNKNOWN, Reason.WRITER_LOST),
        ("/praxis/health", Result.APPLIED, Reason.RESTARTED),
    ):
        target = declare(health_path=path)
        intent = IntentId(f"intent-{path}")
        baseline = adapter.observe(target)
        adapter.dispatch(target, intent, baseline, allowed)
        clock.advance(30)
        verdict = adapter.verify(target, intent, baseline, None)
        assert (verdict.result, verdict.reason) == (result, reason)


def test_another_process_never_concludes_not_applied(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """An intent that surely was never sent is Unknown to anybody but its writer."""
    verdict = adapter.verify(target, INTENT, adapter.observe(target), None)
    assert (verdict.result, verdict.reason) == (Result.UNKNOWN, Reason.WRITER_LOST)
    assert emulator.dispatches() == []


def test_a_marker_that_is_overwritten_before_it_was_proven_is_unknown(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """Once another marker stands there, nothing shows that ours was ever in force."""
    baseline = adapter.observe(target)
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    emulator.deploy("checkout", {"PRAXIS_RESTART_ID": "somebody-else"})
    assert adapter.verify(target, INTENT, baseline, dispatch).result is Result.UNKNOWN


def test_absent_from_one_listing_is_not_gone(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """Two complete listings in a row must show no old instance; the verdict rests on both."""
    baseline = adapter.observe(target)
    emulator.change("checkout", drain_seconds=0, start_seconds=0, replacements=0)
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    before = len(emulator.arrivals(operation="ListInstances"))
    assert adapter.verify(target, INTENT, baseline, dispatch).reason is Reason.DRAINED
    assert len(emulator.arrivals(operation="ListInstances")) - before == 2


def test_a_failed_listing_between_two_clean_ones_starts_anew(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """Clean, failed, clean is not two in a row."""
    baseline = adapter.observe(target)
    emulator.change("checkout", drain_seconds=0, start_seconds=0, replacements=0)
    dispatch = adapter.dispatch(target, INTENT, baseline, allowed)
    before = len(emulator.arrivals(operation="ListInstances"))
    emulator.arm(Fault(kind=Kind.STATUS, status=500, operation="ListInstances", skip=1))
    assert adapter.verify(target, INTENT, baseline, dispatch).reason is Reason.DRAINED
    assert len(emulator.arrivals(operation="ListInstances")) - before == 4


def test_every_page_is_read(adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator) -> None:
    """An old instance on a later page is seen, before and after."""
    for _ in range(5):
        emulator.start_instance("checkout")
    emulator.change("checkout", page_limit=2, refuse_to_rotate=True)
    baseline, dispatch, verdict = restart(adapter, target)
    assert len(baseline.instances) == len(dispatch.before) == 7
    assert verdict.result is Result.UNKNOWN
    assert "and 2 more" in verdict.message


@given(
    created=st.integers(0, 2**41),
    bound=st.none() | st.integers(0, 2**41),
    listed=st.booleans(),
    proven=st.booleans(),
)
def test_age(created: int, bound: int | None, listed: bool, proven: bool) -> None:
    """Listed before is old whatever else is said; new needs a marker or a creation at or past a known bound."""
    age = age_of(
        Instance(id="c-1", created=created),
        before=frozenset({"c-1"} if listed else ()),
        bound=bound,
        proven=frozenset({"c-1"} if proven else ()),
    )
    if listed:
        assert age is Age.OLD
    else:
        assert (age is Age.NEW) == (proven or (bound is not None and created >= bound))


@pytest.mark.parametrize(
    ("settled", "modified", "date", "bound"),
    [
        pytest.param(True, "2027-01-15T08:00:00Z", 1_800_000_060, 1_800_000_001_000, id="settled-at-once"),
        pytest.param(True, "soon", 1_800_000_060, None, id="settled-but-no-time"),
        pytest.param(False, "2027-01-15T08:00:00Z", 1_800_000_060, 1_800_000_061_000, id="first-seen-later"),
        pytest.param(False, "2027-01-15T08:02:00Z", 1_800_000_060, 1_800_000_121_000, id="modified-after-the-date"),
        pytest.param(False, "2027-01-15T08:00:00Z", None, None, id="no-date"),
    ],
)
def test_bound(settled: bool, modified: str, date: int | None, bound: int | None) -> None:
    """One second past lastModifiedTime, or past the Date of the first answer that said Successful; else unknown."""
    function = FunctionState(
        document={},
        environment={},
        last_modified=modified,
        last_update_status="Successful",
        state="Active",
        server_time=None if date is None else datetime.fromtimestamp(date, UTC),
        request_id="r",
    )
    assert bound_of(function, settled_at_once=settled) == bound


def test_a_list_that_may_go_on_proves_nothing(
    adapter: FunctionComputeAdapter, target: RemediationTarget, emulator: Emulator
) -> None:
    """A full page without a token for the next may hide an old instance: Unknown, though all that is seen is new."""
    emulator.change("checkout", replacements=99)
    assert restart(adapter, target, IntentId(f"{INTENT}-1"))[2].result is Result.APPLIED
    for each in emulator.instances("checkout")[2:]:
        emulator.stop_instance("checkout", each.id)
    emulator.change("checkout", replacements=100)
    verdict = restart(adapter, target, IntentId(f"{INTENT}-2"))[2]
    assert verdict.result is Result.UNKNOWN
    assert "the service did not list all instances" in verdict.message


def test_whatever_ran_before_the_send_is_old() -> None:
    """Both what was seen with the intent and what was seen right before the request."""
    seen, later = Instance(id="a", created=1), Instance(id="b", created=9_999_999_999_999)
    baseline = Baseline(state="s", instances=[seen])
    dispatch = Dispatch(Sent.ACCEPTED, Reason.ACCEPTED, "accepted", before=(later,))
    asked = Question(intent=INTENT, function="checkout", health_path=None, baseline=baseline, dispatch=dispatch)
    assert asked.before == {"a", "b"}
    assert age_of(later, before=asked.before, bound=0, proven=frozenset({"b"})) is Age.OLD
