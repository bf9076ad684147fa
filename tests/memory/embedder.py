"""An embedding model for tests: deterministic, and alike for texts that share words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

DIMENSIONS = 1024


class WordEmbedder:
    """Counts words, each at a place of its own; `asked` is what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector of word counts for each text."""
        self.asked += texts
        return [self._embedded(text) for text in texts]

    def _embedded(self, text: str) -> list[float]:
        vector = [0.0] * DIMENSIONS
        for word in re.findall(r"[a-z]+", text.lower()):
            vector[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4]) % DIMENSIONS] += 1.0
        return vector


class FixedEmbedder:
    """Answers what it was given, whatever it is asked."""

    def __init__(self, answer: list[list[float]]) -> None:
        self.answer = answer

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The fixed answer."""
        return self.answer
