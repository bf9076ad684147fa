"""Deterministic embeddings: hashed words and character trigrams, so that texts that share them are near each other.

Nothing is learnt, so synonyms are strangers. Numbers and ids are left out: two incidents of one kind differ in little
else.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter

DIMENSIONS = 1024
WORD = re.compile(r"[a-z][a-z]+")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
WORD_WEIGHT = 2.0
TRIGRAM_WEIGHT = 0.5
COMMON = frozenset(
    (
        "the",
        "an",
        "of",
        "to",
        "in",
        "is",
        "are",
        "was",
        "and",
        "or",
        "for",
        "on",
        "at",
        "by",
        "with",
        "from",
        "it",
        "as",
    )
)


def embedding(text: str) -> list[float]:
    """A unit vector of DIMENSIONS floats; equal texts give equal vectors on every machine."""
    vector = [0.0] * DIMENSIONS
    for feature, count in _features(text).items():
        hashed = hashlib.blake2b(feature.encode(), digest_size=8).digest()
        index, sign = int.from_bytes(hashed[:4], "big") % DIMENSIONS, 1.0 if hashed[4] & 1 else -1.0
        weight = WORD_WEIGHT if feature.startswith("w:") else TRIGRAM_WEIGHT
        # The logarithm keeps one word that a log repeats from drowning the rest.
        vector[index] += sign * weight * (1 + math.log(count))
    length = math.sqrt(sum(each * each for each in vector))
    if length == 0:
        return [1.0] + [0.0] * (DIMENSIONS - 1)
    return [each / length for each in vector]


def _features(text: str) -> Counter[str]:
    words = [word for word in WORD.findall(CAMEL.sub(" ", text).lower()) if word not in COMMON]
    features = Counter(f"w:{word}" for word in words)
    for word in words:
        padded = f" {word} "
        features.update(f"t:{padded[start : start + 3]}" for start in range(len(padded) - 2))
    return features
