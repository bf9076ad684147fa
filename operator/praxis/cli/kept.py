"""Records beside a trail: which documents there are, by what they hash to. Pure.

What a file says of a record is not believed: a document counts under the digest that is computed of it here. A record
whose claimed digest is another was altered, and is named wherever that digest is bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from praxis.recorder.contract import Record


@dataclass(frozen=True)
class Kept:
    """The records of one incident: the documents that are what their digest says, and those that are not.

    `altered` maps a claimed digest to the one that the content has.
    """

    documents: Mapping[str, Any] = field(default_factory=dict)
    altered: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, incident: str, records: Iterable[Record]) -> Kept:
        """Those of one incident among the records."""
        ours = [each for each in records if each.incident == incident]
        documents = {each.digest: each.document for each in ours if each.intact}
        altered = {each.digest: each.hashed for each in ours if not each.intact and each.digest not in documents}
        return cls(documents, altered)
