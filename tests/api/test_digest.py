"""Canonical JSON, digests over it, and the chain of the trail."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis import digest

UID = "11111111-1111-4111-8111-111111111111"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SAFE = 2**53 - 1


def documents() -> st.SearchStrategy[Any]:
    """Any JSON document that has a canonical form."""
    scalars = st.none() | st.booleans() | st.integers(-SAFE, SAFE) | st.floats(-SAFE, SAFE)
    return st.recursive(
        scalars | TEXT, lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXT, each, max_size=3)
    )


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        # RFC 8785, section 3.2.2
        (
            (
                '{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001], '
                '"string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/", "literals": [null, true, false]}'
            ),
            (
                '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
                '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
            ),
        ),
        # RFC 8785, section 3.2.3: sorted by UTF-16 code units
        (
            (
                '{"\\u20ac": "Euro Sign", "\\r": "Carriage Return", "\\ufb33": "Hebrew Letter Dalet With Dagesh", '
                '"1": "One", "\\ud83d\\ude00": "Emoji: Grinning Face", "\\u0080": "Control", '
                '"\\u00f6": "Latin Small Letter O With Diaeresis"}'
            ),
            (
                '{"\\r":"Carriage Return","1":"One","\x80":"Control","ö":"Latin Small Letter O With Diaeresis",'
                '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}'
            ),
        ),
        # RFC 8785, appendix B
        ("[0.0, -0.0, 5e-324, 1.7976931348623157e+308]", "[0,0,5e-324,1.7976931348623157e+308]"),
        ("[9007199254740992.0, 295147905179352830000.0]", "[9007199254740992,295147905179352830000]"),
        (
            "[9.999999999999997e+22, 1e+23, 999999999999999700000.0]",
            "[9.999999999999997e+22,1e+23,999999999999999700000]",
        ),
        ("[0.0000001, 0.000001, 333333333.33333325]", "[1e-7,0.000001,333333333.33333325]"),
        ("{}", "{}"),
    ],
)
def test_canonical(document: str, expected: str) -> None:
    """The vectors of RFC 8785 come out byte by byte."""
    assert digest.canonical(json.loads(document)).decode() == expected


@pytest.mark.parametrize("document", [2**53, -(2**53), float("nan"), float("inf"), "\ud800", {"a": [2**60]}], ids=repr)
def test_no_canonical_form(document: Any) -> None:
    """What two readers could read differently is refused."""
    with pytest.raises(ValueError, match="no canonical JSON"):
        digest.canonical(document)


@pytest.mark.parametrize("number", [2**53 - 1, -(2**53 - 1)])
def test_largest_integers(number: int) -> None:
    """The largest integers that every JSON reader can hold have a canonical form."""
    assert digest.canonical(number) == str(number).encode()


def test_digest_of_known_documents() -> None:
    """A digest is the SHA-256 of the canonical form, with its name before it."""
    assert digest.digest({}) == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert (
        digest.digest({"b": 1, "a": [True, None]}) == "sha256:" + hashlib.sha256(b'{"a":[true,null],"b":1}').hexdigest()
    )


@given(documents())
def test_one_form(document: Any) -> None:
    """A document that is read back has the same canonical form."""
    form = digest.canonical(document)
    assert digest.canonical(json.loads(form)) == form


@given(st.dictionaries(TEXT, documents(), max_size=4))
def test_order_does_not_matter(document: dict[str, Any]) -> None:
    """The order of keys does not change a digest."""
    assert digest.digest(dict(reversed(document.items()))) == digest.digest(document)


@given(documents(), documents())
def test_different_documents_differ(one: Any, other: Any) -> None:
    """Documents with different canonical forms have different digests."""
    assert (digest.digest(one) == digest.digest(other)) == (digest.canonical(one) == digest.canonical(other))


def test_keyed_digest() -> None:
    """A keyed digest is HMAC-SHA256, cut to 128 bits; another key or value gives another."""
    made = digest.keyed_digest(b"key", "The quick brown fox jumps over the lazy dog")
    assert made == "hmac-sha256:f7bc83f430538424b13298e6aa6fb143"
    assert made != digest.keyed_digest(b"other", "The quick brown fox jumps over the lazy dog")
    assert made != digest.keyed_digest(b"key", "The quick brown fox jumps over the lazy cat")


def test_same() -> None:
    """Digests are compared whole."""
    assert digest.same("sha256:aa", "sha256:aa")
    assert not digest.same("sha256:aa", "sha256:ab")
    assert not digest.same("sha256:aa", "sha256:a")


# ---- the chain ----

ENTRIES = st.lists(
    st.fixed_dictionaries({"actor": TEXT, "kind": st.sampled_from(["Decided", "PhaseChanged"]), "digest": TEXT}),
    min_size=1,
    max_size=6,
)


def chained(records: list[dict[str, Any]], uid: str = UID) -> list[dict[str, Any]]:
    """A trail of these records."""
    trail: list[dict[str, Any]] = []
    for record in records:
        trail.append(
            dict(digest.link(trail[-1]["hash"] if trail else digest.genesis(uid), {"seq": len(trail), **record}))
        )
    return trail


@given(ENTRIES)
def test_whole_chain(records: list[dict[str, Any]]) -> None:
    """A trail as it was written holds."""
    assert digest.first_broken(UID, chained(records)) is None


@given(ENTRIES, st.data())
def test_altered_entry(records: list[dict[str, Any]], data: st.DataObject) -> None:
    """A change of any field of any entry is found at that entry."""
    trail = chained(records)
    index = data.draw(st.integers(0, len(trail) - 1))
    field = data.draw(st.sampled_from(sorted(trail[index])))
    value = data.draw(st.integers() if field == "seq" else TEXT)
    broken = [*trail]
    broken[index] = {**trail[index], field: value}
    assert digest.first_broken(UID, broken) == (None if value == trail[index][field] else index)


@given(ENTRIES, st.data())
def test_rehashed_entry(records: list[dict[str, Any]], data: st.DataObject) -> None:
    """An altered entry with a fresh hash is found at the next one; only the head tells when it is the last."""
    trail = chained(records)
    index = data.draw(st.integers(0, len(trail) - 1))
    forged = {**trail[index], "actor": trail[index]["actor"] + "x"}
    broken = [*trail]
    broken[index] = {**forged, "hash": digest.entry_hash(forged)}
    last = index == len(trail) - 1
    assert digest.first_broken(UID, broken) == (None if last else index + 1)
    assert broken[index]["hash"] != trail[index]["hash"]


@given(ENTRIES, st.data())
def test_missing_entry(records: list[dict[str, Any]], data: st.DataObject) -> None:
    """An entry that was taken out is found where it is missing; only the head tells when it was the last."""
    trail = chained(records)
    index = data.draw(st.integers(0, len(trail) - 1))
    last = index == len(trail) - 1
    assert digest.first_broken(UID, trail[:index] + trail[index + 1 :]) == (None if last else index)


@given(ENTRIES)
def test_another_incidents_trail(records: list[dict[str, Any]]) -> None:
    """A trail cannot be moved to another incident."""
    assert digest.first_broken("22222222-2222-4222-8222-222222222222", chained(records)) == 0


def test_empty_trail() -> None:
    """An empty trail holds."""
    assert digest.first_broken(UID, []) is None


def test_entry_hash_covers_prev() -> None:
    """The hash of an entry is that of all its other fields, `prev` among them."""
    entry = {"seq": 0, "prev": "sha256:00", "hash": "anything"}
    assert digest.entry_hash(entry) == digest.digest({"seq": 0, "prev": "sha256:00"})
    assert digest.entry_hash({**entry, "prev": "sha256:01"}) != digest.entry_hash(entry)
