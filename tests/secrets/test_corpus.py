"""Every planted secret through the redactor alone, whole and cut at every limit that something is cut at."""

from __future__ import annotations

import json

import pytest

from praxis.api import bounds
from praxis.evidence.observation import Seen, observe
from praxis.intake.bounding import cut, line
from praxis.reasoning.cleaning import bounded
from praxis.redaction import redact, redact_json
from tests.secrets.corpus import Planted, corpus, found

CORPUS = corpus("the redactor")


def test_the_corpus_is_what_it_says() -> None:
    """Many kinds in many writings, each with fragments that stand in its text and in no other's."""
    assert len(CORPUS) == 22 * 6 + 37 + 15
    for planted in CORPUS:
        assert all(needle in planted.text for needle in planted.needles), planted
        assert [each for each in CORPUS if found([each], planted.text.encode())] == [planted]


@pytest.mark.parametrize("planted", CORPUS, ids=lambda each: each.kind)
def test_redacted(planted: Planted) -> None:
    """Alone, in prose, as a JSON string, and behind a line."""
    for text in (
        planted.text,
        f"{planted.after(40)} and so on",
        json.dumps({"message": planted.text}),
        "\n" + planted.text,
    ):
        assert found([planted], redact(text).encode()) == [], redact(text)


def test_redacted_in_documents() -> None:
    """As values of a document, wherever they stand in it."""
    document = {"level": "error", "lines": [{"text": each.text} for each in CORPUS]}
    assert found(CORPUS, json.dumps(redact_json(document)).encode()) == []


@pytest.mark.parametrize("limit", [256, 512, 1024, bounds.ANNOTATION_VALUE, bounds.EXCERPT])
def test_a_limit_leaves_no_half(limit: int) -> None:
    """Redaction goes before every cut: no half of a secret is left on either side."""
    for planted in CORPUS:
        text = planted.across(limit)
        first, last = observe("q", Seen(text)), observe("q", Seen(text, newest_last=True))
        kept = [first.excerpt, last.excerpt, cut(redact(text), limit), line(text, limit), bounded(redact(text), limit)]
        assert found([planted], "\n".join(kept).encode()) == [], planted


def test_the_search_finds_what_is_there() -> None:
    """Each secret is found in its own text, whole, and half of it, too."""
    for planted in CORPUS:
        assert found(CORPUS, planted.text.encode()) == [planted]
        assert found(CORPUS, planted.needles[-1].encode()) == [planted]
