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
    return digest_of(canonical(document))


def digest_of(content: bytes) -> Digest:
    """`sha256:` and the hex SHA-256 of bytes that are a canonical form already."""
    return Digest(PREFIX + hashlib.sha256(content).hexdigest())


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


def chain_fault(incident_uid: str, trail: Sequence[Mapping[str, Json]]) -> tuple[int, str] | None:
    """The index of the first entry that is misnumbered, unlinked or altered, and which; None when the chain holds."""
    prev: Json = genesis(incident_uid)
    for index, entry in enumerate(trail):
        fault = link_fault(entry, index=index, prev=prev)
        if fault:
            return index, fault
        prev = entry["hash"]
    return None


def link_fault(entry: Mapping[str, Json], *, index: int, prev: Json) -> str:
    """What is wrong with an entry behind one whose hash is `prev`; empty when nothing is."""
    seq = entry.get("seq")
    if seq != index or isinstance(seq, bool):
        return f"it is numbered {seq!r}: an entry was removed, added or moved here"
    if entry.get("prev") != prev:
        before = f"the hash of entry {index - 1}" if index else "the hash of the incident's uid"
        return f"it is not linked to {before}, {prev}"
    try:
        computed = entry_hash(entry)
    except (ValueError, RecursionError) as error:
        return f"it cannot be hashed: {error}"
    return "" if entry.get("hash") == computed else f"it was altered: its content hashes to {computed}"


def first_broken(incident_uid: str, trail: Sequence[Mapping[str, Json]]) -> int | None:
    """The index of the first entry that does not hold, as `chain_fault`; None when the chain holds."""
    fault = chain_fault(incident_uid, trail)
    return None if fault is None else fault[0]
