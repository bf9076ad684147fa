"""Which parts of a configuration differ, in words. Whether anything differs is what the digests say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from praxis.actions.legible import legible
from praxis.api import bounds

SHOWN = 5
"""How many parts a sentence names."""


def drift(before: Iterable[str], now: Iterable[str]) -> str:
    """`: LOG_LEVEL changed, memorySize was added`, to follow a sentence; empty when no part tells.

    Both are sorted lists of `NAME=DIGITS`, as in `Baseline.parts`. Nothing is said of names beyond the last of a list
    that is as long as it may be: it may have been cut there.
    """
    former, present = _parts(before), _parts(now)
    if not former or not present:
        return ""
    last = min((max(each) for each in (former, present) if len(each) >= bounds.PARTS), default=None)
    names = [name for name in sorted(former.keys() | present.keys()) if last is None or name <= last]
    told = [
        f"{legible(name)} {_what(former.get(name), present.get(name))}"
        for name in names
        if former.get(name) != present.get(name)
    ]
    if not told:
        return ""
    both = [name for name in names if name in former and name in present]
    # The function's own name is a part: nobody changes all of them.
    rotated = bool(both) and all(former[name] != present[name] for name in both)
    more = f" and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return f": {', '.join(told[:SHOWN])}{more}{', or the digest key was rotated' if rotated else ''}"


def _what(before: str | None, now: str | None) -> str:
    if before is None:
        return "was added"
    return "was removed" if now is None else "changed"


def _parts(lines: Iterable[str]) -> Mapping[str, str]:
    split = (line.rpartition("=") for line in lines)
    return {name: digits for name, _, digits in split}
