"""What a record is, and what a recorder can do, whatever store is behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from praxis.api.base import API_VERSION
from praxis.digest import Digest, Json, canonical, digest_of
from praxis.errors import NeedsPerson
from praxis.redaction import redact_json

RECORD_BYTES: Final = 16 * 1024 * 1024
"""Largest record, bytes of canonical JSON. The longest honest run, a diagnosis of 32 turns of 24 observations of 4 KiB
and answers of 64 Ki tokens, is about 12 MiB."""
KIND: Final = "Record"
"""Kind of a record in exported files."""


class RecordKind(StrEnum):
    """What a record holds; records of trail entries have the entry's kind."""

    MODEL_RUN = "ModelRun"
    EVIDENCE = "Evidence"


@dataclass(frozen=True)
class Record:
    """A document of one incident under its digest. `content` is its canonical JSON."""

    incident: str
    kind: str
    digest: str
    content: bytes

    @classmethod
    def of(cls, incident: str, kind: str, document: Json) -> Record:
        """The record of a document, redacted first: no secret reaches a store, and the digest is of what is kept.

        Raises:
            ValueError: the document has no canonical JSON, or exceeds RECORD_BYTES.
        """
        content = canonical(redact_json(document))
        if len(content) > RECORD_BYTES:
            raise ValueError(f"a record of {len(content)} bytes exceeds {RECORD_BYTES}")
        return cls(incident=incident, kind=str(kind), digest=digest_of(content), content=content)

    @property
    def intact(self) -> bool:
        """Whether the content is what the digest names."""
        return self.hashed == self.digest

    @property
    def hashed(self) -> str:
        """The digest of the content, whatever the record claims."""
        return digest_of(self.content)

    @property
    def document(self) -> Any:
        """What is recorded. Raises NeedsPerson: the content is not what the digest names."""
        if not self.intact:
            raise NeedsPerson(f"record {self.digest} of incident {self.incident} is damaged: restore it from a backup")
        return json.loads(self.content)

    def exported(self) -> dict[str, Any]:
        """The record as an object in a file; whoever reads it computes the digest anew.

        Content that is no JSON any more is exported as the text that it is: damage must be named, not hidden.
        """
        try:
            document = json.loads(self.content)
        except ValueError:
            document = self.content.decode(errors="replace")
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "incidentUid": self.incident,
            "recordKind": self.kind,
            "digest": self.digest,
            "document": document,
        }

    @classmethod
    def imported(cls, exported: Mapping[str, Any]) -> Record:
        """A record out of a file, as `exported` wrote it, with the digest that the file claims.

        Raises:
            ValueError: it is none.
        """
        texts = [exported.get(name) for name in ("incidentUid", "recordKind", "digest")]
        if not all(isinstance(each, str) and each for each in texts) or "document" not in exported:
            raise ValueError("no record: it needs incidentUid, recordKind, digest and document")
        incident, kind, digest = map(str, texts)
        return cls(incident=incident, kind=kind, digest=digest, content=canonical(exported["document"]))


class Recorder(Protocol):
    """Keeps records. Every method raises RetryLater (the store could not be asked) and NeedsPerson (damaged, full, of
    another version; the message says what to do)."""

    async def put(self, records: Sequence[Record]) -> None:
        """Store them, all or none; a record of that incident and digest that is there already stays as it is."""
        ...

    async def get(self, incident: str, digest: Digest | str) -> Record | None:
        """A record of an incident, None when it is not there. NeedsPerson: it is there, and damaged."""
        ...

    async def of(self, incident: str) -> Sequence[Record]:
        """All records of an incident, in the order in which they were stored; damaged ones too, see `intact`."""
        ...

    async def ready(self) -> None:
        """Nothing, when a record could be stored now: asked before a model is, whose answer must not be lost."""
        ...

    async def close(self) -> None:
        """Release the store."""
        ...


__all__ = ["KIND", "RECORD_BYTES", "Digest", "Record", "RecordKind", "Recorder"]
