"""Damage: any value of a document changed, dropped or added, by what somebody hostile, or a bug, would put there."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from praxis.errors import PraxisError

LOOKALIKES = (
    "\u0430lice",
    "alice\u200b",
    "ALICE",
    " alice",
    "alice\n",
    "ali\u0301ce",
    "al\u0131ce",
    "\u202ealice",
    "alice ",
)
"""Names that a reader takes for alice."""
ROBOTS = (
    "system:serviceaccount:shop:robot",
    "system:serviceaccount:praxis-system:praxis-operator",
    "system:node:n1",
    "system:anonymous",
)
TIMES = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-02-30T12:00:00Z", "tomorrow", "2026-01-31", "-1")
ODD = (
    "", " ", "\x00", "\ud7ff", "\u202e", "🜲" * 40, "x" * 70_000, "null", "true", "0", "{}", "../../etc/passwd", "%s%n",
    "'; DROP TABLE incidents; --", "sha256:" + "0" * 64, "SHA256:" + "A" * 64, "Approve", "approve", "Executing",
    "Resolved", "Applied", *LOOKALIKES, *ROBOTS, *TIMES,
)  # fmt: skip
SCALARS = (
    st.sampled_from(ODD)
    | st.text(max_size=20)
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.booleans()
    | st.none()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def clear(error: PraxisError) -> None:
    """An error that a person can act on: a reason, and a sentence of bounded length."""
    assert error.reason
    assert 0 < len(str(error)) < 4096


Place = tuple[str | int, ...]


def places(document: Any, here: Place = ()) -> Iterator[Place]:
    """Every place in a document, by its keys and indices."""
    parts: Any = ()
    if isinstance(document, Mapping):
        parts = document.items()
    elif isinstance(document, list):
        parts = enumerate(document)
    for key, held in parts:
        yield (*here, key)
        yield from places(held, (*here, key))


@st.composite
def damaged(draw: st.DrawFn, document: Mapping[str, Any], *, below: str = "", most: int = 3) -> dict[str, Any]:
    """The document with up to `most` values changed, dropped, doubled or added, `below` one of its keys if given."""
    result = copy.deepcopy(dict(document))
    for _ in range(draw(st.integers(1, most))):
        found = [each for each in places(result) if not below or (each[0] == below and len(each) > 1)]
        if not found:
            break
        place = draw(st.sampled_from(found))
        holder: Any = result
        for key in place[:-1]:
            holder = holder[key]
        match draw(st.sampled_from(("change", "change", "drop", "double", "add", "other"))):
            case "change":
                holder[place[-1]] = draw(VALUES)
            case "drop":
                del holder[place[-1]]
            case "double" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[int(place[-1])]))
            case "add" if isinstance(holder, dict):
                holder[draw(st.text(max_size=8))] = draw(VALUES)
            case _:
                other: Any = result
                for key in draw(st.sampled_from(found)):
                    other = other[key] if isinstance(other, (dict, list)) else other
                holder[place[-1]] = copy.deepcopy(other)
    return result
