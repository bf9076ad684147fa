"""Where records come from: exported files, copies of the flight recorder's file, directories of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from praxis.errors import NeedsPerson
from praxis.recorder.contract import KIND, Record
from praxis.recorder.sqlite import MAGIC, records_in

SUFFIXES = frozenset({".db", ".sqlite", ".json", ".yaml", ".yml"})
"""Files that are looked into where a directory is given; SQLite's own -wal and -shm belong to their database."""


def is_store(path: Path) -> bool:
    """Whether a file is a SQLite file. Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def stores_in(path: Path) -> list[Path]:
    """The file itself, or the files of a directory that may hold records. Raises OSError."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.iterdir() if each.suffix in SUFFIXES and each.is_file())


def imported(objects: Iterable[Mapping[str, Any]]) -> list[Record]:
    """The records among the objects of a file. Raises ValueError: one is none, though it says so."""
    return [Record.imported(each) for each in objects if each.get("kind") == KIND]


def stored(path: Path, incident: str | None = None) -> list[Record]:
    """The records in a store's file. Raises ValueError with what is wrong with it, OSError."""
    try:
        records = records_in(path, incident)
    except NeedsPerson as error:
        raise ValueError(str(error)) from error
    for each in records:
        # A file that somebody else made may have any type in any column, whatever is declared in it.
        texts = (each.incident, each.kind, each.digest)
        if not isinstance(each.content, bytes) or not all(isinstance(text, str) for text in texts):
            raise ValueError(
                f"{path} is no flight recorder of PRAXIS: record {each.digest} in it is not text and bytes"
            )
    return records
