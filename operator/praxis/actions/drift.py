"""Which parts of a configuration differ, in words. Whether anything differs is what the digests say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SHOWN = 5
"""How many parts a sentence names."""


def drift(before: Iterable[str], now: Iterable[str]) -> str:
    """`: LOG_LEVEL changed, memorySize was added`, to follow a sentence; empty when no part tells.

    Both are lists of `NAME=DIGITS`, as in `Baseline.parts`.
    """
    former, present = _parts(before), _parts(now)
    if not former or not present:
        return ""
    told = [
        f"{name} {_what(former.get(name), present.get(name))}"
        for name in sorted(former.keys() | present.keys())
        if former.get(name) != present.get(name)
    ]
    more = f" and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return f": {', '.join(told[:SHOWN])}{more}" if told else ""


def _what(before: str | None, now: str | None) -> str:
    if before is None:
        return "was added"
    return "was removed" if now is None else "changed"


def _parts(lines: Iterable[str]) -> Mapping[str, str]:
    split = (line.rpartition("=") for line in lines)
    return {name: digits for name, _, digits in split}
