"""Canonical JSON (RFC 8785), digests over it, and the hash chain of the trail. No I/O.

The library `rfc8785` does the canonicalisation; it refuses integers beyond 2**53, NaN and lone surrogates, so that two
readers can never hash the same document differently.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import NewType, TypeAlias

import rfc8785

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
Digest = NewType("Digest", str)
PREFIX = "sha256:"


def canonical(document: Json) -> bytes:
    """The RFC 8785 form of a JSON document, UTF-8.

    Raises:
        ValueError: a value has no canonical form (an integer beyond 2**53, NaN, infinity, a lone surrogate).
    """
    try:
        return rfc8785.dumps(document)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise ValueError(f"no canonical JSON: {error}") from error


def digest(document: Json) -> Digest:
    """`sha256:` and the hex SHA-256 of the canonical form; raises ValueError as `canonical` does."""
    return Digest(PREFIX + hashlib.sha256(canonical(document)).hexdigest())


def keyed_digest(key: bytes, value: str) -> str:
    """`hmac-sha256:` and 32 hex digits: shows that a secret changed without being a guessable hash of it."""
    return "hmac-sha256:" + hmac.new(key, value.encode(), hashlib.sha256).hexdigest()[:32]


def same(left: str, right: str) -> bool:
    """Whether two digests are equal, in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())


def genesis(incident_uid: str) -> Digest:
    """What the first trail entry is linked to: a trail cannot be moved to another incident."""
    return digest({"incidentUid": incident_uid})


def entry_hash(entry: Mapping[str, Json]) -> Digest:
    """The hash of a trail entry: of all its fields but `hash`, so of `prev` too."""
    return digest({key: value for key, value in entry.items() if key != "hash"})


def link(prev: str, entry: Mapping[str, Json]) -> dict[str, Json]:
    """The entry with `prev` and `hash` filled in."""
    linked = {**entry, "prev": prev}
    return {**linked, "hash": entry_hash(linked)}


def first_broken(incident_uid: str, trail: Sequence[Mapping[str, Json]]) -> int | None:
    """The index of the first entry that is misnumbered, unlinked or altered; None when the chain holds."""
    prev: str = genesis(incident_uid)
    for index, entry in enumerate(trail):
        if entry.get("seq") != index or entry.get("prev") != prev or entry.get("hash") != entry_hash(entry):
            return index
        prev = str(entry["hash"])
    return None
