"""What is remembered of signed notifications, and that every cause has an outcome and a sentence."""

from __future__ import annotations

import pytest

from praxis.intake.receipt import OUTCOMES, SENTENCES, Cause, Outcome, Receipt, Receipts


def test_remembered() -> None:
    """What was taken is found under its id."""
    receipts = Receipts()
    receipts.keep("msg_1", Receipt(Cause.FIRST_EPISODE, "shop/inc-1"))
    assert receipts.find("msg_1") == Receipt(Cause.FIRST_EPISODE, "shop/inc-1")
    assert receipts.find("msg_2") is None


@pytest.mark.parametrize(("count", "first_is_known"), [(2, True), (3, True), (4, False)])
def test_bounded(count: int, first_is_known: bool) -> None:
    """Above the limit the oldest is forgotten."""
    receipts = Receipts(limit=3)
    for number in range(count):
        receipts.keep(f"msg_{number}", Receipt(Cause.CHANGED, None))
    assert (receipts.find("msg_0") is not None) is first_is_known
    assert receipts.find(f"msg_{count - 1}") is not None


def test_every_taken_cause_has_a_sentence() -> None:
    """What is answered with 2xx is explained."""
    assert set(SENTENCES) == set(OUTCOMES)
    assert Receipt(Cause.NEXT_EPISODE, None).outcome is Outcome.CREATED
    assert Receipt(Cause.UNCHANGED, None).outcome is Outcome.MERGED
    assert Receipt(Cause.ALREADY_RECEIVED, None).outcome is Outcome.SUPPRESSED
