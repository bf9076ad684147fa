"""What every store must do. A new store is one more entry of STORES; it brings nothing else here."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import random
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from praxis.errors import InvalidAnswer, NeedsPerson
from praxis.memory.contract import Embedder, Memory, MemoryRecord
from praxis.memory.sqlite import SqliteMemory
from tests.memory.embedder import DIMENSIONS, FixedEmbedder, WordEmbedder

Opener = Callable[[Path, Embedder, str], Memory]


def _sqlite(directory: Path, embedder: Embedder, model: str) -> Memory:
    return SqliteMemory(path=directory / "memory.db", embedder=embedder, embedding_model=model)


STORES: dict[str, Opener] = {"sqlite": _sqlite}

LEAK = MemoryRecord(
    id="uid-leak",
    incident="shop/checkout-leak-1",
    namespace="shop",
    service="checkout",
    category="MemoryLeak",
    text="memory leak checkout",
    summary="Memory leak of checkout: restarted.",
    resolved_at="2026-01-31T12:00:00Z",
)
LATENCY = dataclasses.replace(
    LEAK, id="uid-latency", incident="shop/search-slow-1", text="latency search index", summary="Slow search: scaled."
)


@pytest.fixture(params=sorted(STORES))
def opener(request: pytest.FixtureRequest) -> Opener:
    """How the store under test is opened."""
    return STORES[request.param]


@pytest.fixture
async def memory(opener: Opener, tmp_path: Path) -> AsyncIterator[Memory]:
    """An empty memory."""
    opened = opener(tmp_path, WordEmbedder(), "words")
    yield opened
    await opened.close()


async def test_recalls_the_nearest_first(memory: Memory) -> None:
    """The record that shares more with the question comes first, with the cosine of the two as its score."""
    await memory.remember(LATENCY)
    await memory.remember(LEAK)

    recalled = await memory.recall("memory leak search", namespace="shop", limit=5)

    assert [(each.id, round(each.score, 4)) for each in recalled] == [
        ("uid-leak", 0.6667),  # two of three words on each side: 2 / (√3·√3)
        ("uid-latency", 0.3333),
    ]
    assert recalled[0].incident == "shop/checkout-leak-1"
    assert recalled[0].summary == "Memory leak of checkout: restarted."


async def test_the_same_text_scores_one(memory: Memory) -> None:
    """A recurrence in the same words scores 1, never more."""
    await memory.remember(LEAK)

    [recalled] = await memory.recall(LEAK.text, namespace="shop", limit=1)

    assert recalled.score <= 1
    assert recalled.score == pytest.approx(1, abs=1e-6)


async def test_rounding_does_not_carry_a_score_beyond_one(opener: Opener, tmp_path: Path) -> None:
    """In single precision the cosine of these two vectors, and of one and the other's opposite, is beyond ±1."""
    chance = random.Random(1)
    vector = [chance.gauss(0, 1) for _ in range(DIMENSIONS)]
    chance.uniform(0.1, 9)
    like = [each * (1 + chance.gauss(0, 1e-6)) for each in vector]
    embedder = FixedEmbedder([vector])
    memory = opener(tmp_path, embedder, "fixed")
    await memory.remember(LEAK)

    scores = []
    for asked in (like, [-each for each in like]):
        embedder.answer = [asked]
        scores += [each.score for each in await memory.recall("x", namespace="shop", limit=1)]
    await memory.close()

    assert scores == [1, -1]


async def test_opposite_vectors_score_minus_one(opener: Opener, tmp_path: Path) -> None:
    """The score of a vector and its opposite is -1, never less."""
    embedder = FixedEmbedder([[1.0] + [0.0] * (DIMENSIONS - 1)])
    memory = opener(tmp_path, embedder, "fixed")
    await memory.remember(LEAK)
    embedder.answer = [[-1.0] + [0.0] * (DIMENSIONS - 1)]

    [recalled] = await memory.recall("anything", namespace="shop", limit=1)
    await memory.close()

    assert recalled.score == -1


async def test_remembering_twice_changes_nothing(memory: Memory) -> None:
    """The first record of an id stays as it was."""
    await memory.remember(LEAK)
    await memory.remember(dataclasses.replace(LEAK, summary="Another summary.", text="latency search index"))

    recalled = await memory.recall(LEAK.text, namespace="shop", limit=5)

    assert [(each.id, each.summary) for each in recalled] == [("uid-leak", "Memory leak of checkout: restarted.")]


async def test_the_first_of_two_who_remember_at_once_wins(opener: Opener, tmp_path: Path) -> None:
    """A record that another replica stored while this one waited for its embedding stays as it is."""
    other = opener(tmp_path, WordEmbedder(), "words")

    class Overtaken(WordEmbedder):
        async def embed(self, texts: Sequence[str]) -> list[list[float]]:
            await other.remember(dataclasses.replace(LEAK, summary="The first."))
            return await super().embed(texts)

    memory = opener(tmp_path, Overtaken(), "words")
    await memory.remember(dataclasses.replace(LEAK, summary="The second."))
    await memory.close()

    [recalled] = await other.recall(LEAK.text, namespace="shop", limit=5)
    await other.close()
    assert recalled.summary == "The first."


async def test_an_id_that_is_there_costs_no_embedding(opener: Opener, tmp_path: Path) -> None:
    """A retry of what is already stored asks the embedding model nothing."""
    embedder = WordEmbedder()
    memory = opener(tmp_path, embedder, "words")
    await memory.remember(LEAK)
    await memory.remember(LEAK)
    await memory.close()

    assert embedder.asked == [LEAK.text]


async def test_other_namespaces_are_not_recalled(memory: Memory) -> None:
    """What happened in another namespace is nobody's business here."""
    await memory.remember(dataclasses.replace(LEAK, namespace="bank"))

    assert await memory.recall(LEAK.text, namespace="shop", limit=5) == []
    assert len(await memory.recall(LEAK.text, namespace="bank", limit=5)) == 1


async def test_the_excluded_record_is_not_recalled(memory: Memory) -> None:
    """An incident is no precedent of itself."""
    await memory.remember(LEAK)
    await memory.remember(LATENCY)

    recalled = await memory.recall(LEAK.text, namespace="shop", limit=5, exclude="uid-leak")

    assert [each.id for each in recalled] == ["uid-latency"]


@pytest.mark.parametrize(("limit", "expected"), [(-1, 0), (0, 0), (1, 1), (4, 4), (5, 5), (6, 5)])
async def test_recalls_at_most_the_limit_and_five(memory: Memory, limit: int, expected: int) -> None:
    """A limit is kept, and none goes beyond what an Incident's status holds."""
    for number in range(7):
        await memory.remember(dataclasses.replace(LEAK, id=f"uid-{number}"))

    assert len(await memory.recall(LEAK.text, namespace="shop", limit=limit)) == expected


async def test_equals_come_newest_first(memory: Memory) -> None:
    """Of equal scores the later incident comes first, then the smaller id, so that two reads agree."""
    for id_, resolved in [("a", "2026-01-01T00:00:00Z"), ("c", "2026-01-02T00:00:00Z"), ("b", "2026-01-02T00:00:00Z")]:
        await memory.remember(dataclasses.replace(LEAK, id=id_, resolved_at=resolved))

    recalled = await memory.recall(LEAK.text, namespace="shop", limit=5)

    assert [each.id for each in recalled] == ["b", "c", "a"]


async def test_survives_being_reopened(opener: Opener, tmp_path: Path) -> None:
    """What was remembered is there after a restart."""
    first = opener(tmp_path, WordEmbedder(), "words")
    await first.remember(LEAK)
    await first.close()
    second = opener(tmp_path, WordEmbedder(), "words")

    recalled = await second.recall(LEAK.text, namespace="shop", limit=5)
    await second.close()

    assert [each.id for each in recalled] == ["uid-leak"]


async def test_vectors_of_another_model_are_not_compared(opener: Opener, tmp_path: Path) -> None:
    """After a change of the embedding model the old records are not recalled: their numbers mean something else."""
    first = opener(tmp_path, WordEmbedder(), "words")
    await first.remember(LEAK)
    await first.close()
    second = opener(tmp_path, WordEmbedder(), "words-2")

    recalled = await second.recall(LEAK.text, namespace="shop", limit=5)
    await second.close()

    assert recalled == []


@pytest.mark.parametrize("dimensions", [1, 1023, 1025])
async def test_refuses_other_dimensions(opener: Opener, tmp_path: Path, dimensions: int) -> None:
    """A vector that is not of 1024 dimensions is refused with what to do, and nothing is stored."""
    embedder = FixedEmbedder([[1.0] * dimensions])
    memory = opener(tmp_path, embedder, "fixed")

    with pytest.raises(NeedsPerson, match=rf"answers {dimensions} dimensions.*PRAXIS_MODELS__EMBEDDING"):
        await memory.remember(LEAK)
    with pytest.raises(NeedsPerson, match=rf"answers {dimensions} dimensions"):
        await memory.recall("x", namespace="shop", limit=1)
    embedder.answer = [[1.0] * DIMENSIONS]
    assert await memory.recall("x", namespace="shop", limit=1) == []
    await memory.close()


@pytest.mark.parametrize(
    "vector",
    [
        [0.0] * DIMENSIONS,
        [math.nan] + [1.0] * (DIMENSIONS - 1),
        [math.inf] + [1.0] * (DIMENSIONS - 1),
        [-math.inf] + [1.0] * (DIMENSIONS - 1),
        [1.7e308] * DIMENSIONS,
    ],
    ids=["zero", "nan", "infinite", "minus-infinite", "overflowing"],
)
async def test_refuses_vectors_without_direction(opener: Opener, tmp_path: Path, vector: list[float]) -> None:
    """A zero or non-finite vector is refused: it would be near everything, or nothing."""
    memory = opener(tmp_path, FixedEmbedder([vector]), "fixed")

    with pytest.raises(InvalidAnswer):
        await memory.remember(LEAK)
    await memory.close()


@pytest.mark.parametrize("count", [0, 2])
async def test_refuses_another_number_of_vectors(opener: Opener, tmp_path: Path, count: int) -> None:
    """One text has one vector."""
    memory = opener(tmp_path, FixedEmbedder([[1.0] * DIMENSIONS] * count), "fixed")

    with pytest.raises(InvalidAnswer, match=f"answered {count} vectors to one text"):
        await memory.remember(LEAK)
    await memory.close()


@pytest.mark.parametrize("scale", [1e-300, 1e300])
async def test_the_length_of_a_vector_does_not_matter(opener: Opener, tmp_path: Path, scale: float) -> None:
    """Only direction is compared, also for lengths that single precision cannot hold."""
    embedder = FixedEmbedder([[scale, *[0.0] * (DIMENSIONS - 1)]])
    memory = opener(tmp_path, embedder, "fixed")
    await memory.remember(LEAK)
    embedder.answer = [[1.0, 1.0, *[0.0] * (DIMENSIONS - 2)]]

    [recalled] = await memory.recall("x", namespace="shop", limit=1)
    await memory.close()

    assert recalled.score == pytest.approx(0.70710678, abs=1e-6)


async def test_many_at_once(memory: Memory) -> None:
    """Concurrent use from one process stores every record once."""
    records = [dataclasses.replace(LEAK, id=f"uid-{number % 4}") for number in range(16)]
    await asyncio.gather(*(memory.remember(record) for record in records))

    recalled = await memory.recall(LEAK.text, namespace="shop", limit=5)

    assert sorted(each.id for each in recalled) == ["uid-0", "uid-1", "uid-2", "uid-3"]


@pytest.mark.parametrize(
    ("field", "limit"), [("text", 6000), ("summary", 1024), ("incident", 253), ("id", 253), ("service", 253)]
)
async def test_texts_at_and_above_their_bounds(memory: Memory, field: str, limit: int) -> None:
    """A text of exactly its bound can be stored and recalled; a longer one is no record."""
    await memory.remember(dataclasses.replace(LEAK, **{field: "a" * limit}))
    assert len(await memory.recall("a" * 10 + " memory", namespace="shop", limit=1)) == 1

    with pytest.raises(ValueError, match="exceeds its bounds"):
        dataclasses.replace(LEAK, **{field: "a" * (limit + 1)})
