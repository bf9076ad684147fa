"""What the embedding model answers, checked: one finite, non-zero vector of the right length, as a unit vector."""

from __future__ import annotations

import math
from collections.abc import Sequence

from praxis.api import bounds
from praxis.errors import InvalidAnswer, NeedsPerson
from praxis.memory.contract import Embedder


async def unit_vector(embedder: Embedder, text: str) -> list[float]:
    """The embedding of a text, of length 1: what is compared is direction, and single precision overflows at 3e38.

    Raises:
        NeedsPerson: the model makes vectors of another length.
        InvalidAnswer: not one vector came, or it is zero or not finite.
        RetryLater: the model could not be asked.
    """
    vectors = await embedder.embed([text])
    if len(vectors) != 1:
        raise InvalidAnswer(f"the embedding model answered {len(vectors)} vectors to one text")
    return _unit(vectors[0])


def _unit(vector: Sequence[float]) -> list[float]:
    if len(vector) != bounds.EMBEDDING_DIMENSIONS:
        raise NeedsPerson(
            f"the embedding model answers {len(vector)} dimensions, the memory holds {bounds.EMBEDDING_DIMENSIONS}: "
            "choose a model or an endpoint that gives these in PRAXIS_MODELS__EMBEDDING"
        )
    if not all(math.isfinite(each) for each in vector):
        raise InvalidAnswer("the embedding holds numbers that are not finite")
    length = math.hypot(*vector)
    if length == 0 or not math.isfinite(length):
        raise InvalidAnswer("the embedding has no direction: its length is zero or beyond all numbers")
    return [each / length for each in vector]
