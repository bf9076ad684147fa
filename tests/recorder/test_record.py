"""A record: redacted, under the digest of its canonical form, and the same after any file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.cli.documents import objects, yaml_text
from praxis.digest import digest
from praxis.recorder import contract
from praxis.recorder.contract import Record

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(
        -(2.0**53) + 1, 2.0**53 - 1
    )  # beyond, a whole float is printed as an integer that has no canonical form
    | st.text(max_size=20)
)
documents = st.recursive(
    leaves, lambda of: st.lists(of, max_size=4) | st.dictionaries(st.text(max_size=8), of, max_size=4), max_leaves=12
)


def test_a_record_has_the_digest_of_its_document() -> None:
    """The literal digest, so that no later version may find its own records altered."""
    record = Record.of("uid-1", "Decided", {"b": [1, 2.5], "a": "é"})
    assert record.content == '{"a":"é","b":[1,2.5]}'.encode()
    assert record.digest == "sha256:123b424b7606d08d0756074e1f76051117423e1a66a03e02f56fd334de63705b"


@given(documents)
def test_a_record_survives_every_file(document: Any) -> None:
    """Exported as JSON or YAML and imported, it is the same record, and intact."""
    record = Record.of("uid-1", "ModelRun", document)
    for text in (json.dumps(record.exported()), yaml_text(record.exported())):
        [read] = objects(text)
        assert Record.imported(read) == record
    assert record.intact
    assert digest(record.document) == record.digest


@given(documents, documents)
def test_two_documents_have_two_digests(one: Any, other: Any) -> None:
    """And one document has one."""
    first, second = Record.of("u", "k", one), Record.of("u", "k", other)
    assert (first.digest == second.digest) is (first.content == second.content)


def test_secrets_do_not_reach_a_record() -> None:
    """Tokens by their form, values by their key; the digest is of what is kept."""
    token = "ghp_" + "a1B2" * 9
    record = Record.of("uid-1", "ModelRun", {"messages": [{"content": f"use {token}"}], "env": {"password": "hunter2"}})
    assert token.encode() not in record.content
    assert b"hunter2" not in record.content
    assert record.document["messages"] == [{"content": "use [REDACTED:github-token]"}]
    assert record.intact


def test_a_record_may_be_as_large_as_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte more is refused: nothing is cut, as half a record proves nothing."""
    monkeypatch.setattr(contract, "RECORD_BYTES", 100)
    assert len(Record.of("u", "k", "x y " * 24 + "zz").content) == 100
    with pytest.raises(ValueError, match="a record of 101 bytes exceeds 100"):
        Record.of("u", "k", "x y " * 24 + "zzz")


@pytest.mark.parametrize("document", ["\ud800", 2**53, float("nan"), {"\udfff": 1}])
def test_what_has_no_canonical_form_is_no_record(document: Any) -> None:
    """Two readers could take it for two documents."""
    with pytest.raises(ValueError, match="no canonical JSON"):
        Record.of("u", "k", document)


@pytest.mark.parametrize("name", ["incidentUid", "recordKind", "digest", "document"])
def test_an_object_that_lacks_a_part_is_no_record(name: str) -> None:
    """It says what it needs; so does one whose part is of another type."""
    exported = Record.of("uid-1", "Decided", {}).exported()
    with pytest.raises(ValueError, match="no record: it needs"):
        Record.imported({key: value for key, value in exported.items() if key != name})
    if name != "document":
        with pytest.raises(ValueError, match="no record: it needs"):
            Record.imported({**exported, name: 1})
