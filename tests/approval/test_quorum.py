"""How many people it takes: never nobody."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from praxis.api.plan import Tier
from praxis.settings import Quorum


def test_defaults() -> None:
    """One for safe and caution, two for dangerous."""
    assert [Quorum().of(tier) for tier in Tier] == [1, 1, 2]


@pytest.mark.parametrize("tier", ["safe", "caution", "dangerous"])
def test_bounds(tier: str) -> None:
    """From one to four, for every tier."""
    for people in (1, 4):
        assert getattr(Quorum(**{tier: people}), tier) == people
    for people in (0, -1, 5):
        with pytest.raises(ValidationError):
            Quorum(**{tier: people})
