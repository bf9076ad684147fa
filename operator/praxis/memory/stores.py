"""Which store the settings ask for."""

from __future__ import annotations

from praxis.memory.contract import Embedder, Memory
from praxis.memory.sqlite import SqliteMemory
from praxis.settings import OperatorSettings


def open_memory(settings: OperatorSettings, embedder: Embedder) -> Memory:
    """The memory that the settings name. Opens nothing yet: a store that is out of order stalls incidents, not us."""
    return SqliteMemory(path=settings.memory_path, embedder=embedder, embedding_model=settings.models.embedding)
