"""What every resource model shares: frozen, camelCase on the wire, unknown fields ignored on reading.

Times stay the strings that were stored: a digest over a document must not depend on how a time was parsed and printed.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NewType, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP = "praxis.kopachelli.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

IncidentUid = NewType("IncidentUid", str)
IntentId = NewType("IntentId", str)

RFC3339 = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
Timestamp = Annotated[str, Field(max_length=40, json_schema_extra={"pattern": RFC3339})]
"""A time as text. Not `format: date-time`: CEL would then take two spellings of one moment for equal, and a rule that
something never changes would let it be respelled, which breaks the digest over it."""
Name = Annotated[str, Field(min_length=1, max_length=253)]
Uid = Annotated[str, Field(min_length=1, max_length=64)]
Username = Annotated[str, Field(min_length=1, max_length=256)]
PlanDigest = Annotated[str, Field(max_length=71, pattern=r"^sha256:[0-9a-f]{64}$")]
AnyDigest = Annotated[str, Field(max_length=80)]
Word = Annotated[str, Field(max_length=64)]
Part = Annotated[str, Field(max_length=160)]
"""A part of a configuration and a short keyed digest of it, `environmentVariables.LOG_LEVEL=5f3a…`."""
Line = Annotated[str, Field(max_length=256)]
Sentence = Annotated[str, Field(max_length=1024)]
Text = Annotated[str, Field(max_length=4096)]


class Model(BaseModel):
    """A frozen part of a resource."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, alias_generator=to_camel, extra="ignore")

    def dump(self) -> dict[str, Any]:
        """The JSON document as the API server stores it: camelCase, absent fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def replace(self, **changes: Any) -> Self:
        """A validated copy with some fields changed.

        Raises:
            pydantic.ValidationError: a changed field does not hold its bounds.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**fields, **changes})


class ObjectMeta(Model):
    """The part of `metadata` that PRAXIS reads."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 1
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Condition(Model):
    """A condition as the Kubernetes API conventions define it."""

    type: Annotated[Word, Field(description="What the condition is about, for example Stalled or MemoryStored.")]
    status: Annotated[str, Field(pattern="^(True|False|Unknown)$", max_length=7, description="True, False or Unknown.")]
    reason: Annotated[Word, Field(description="A CamelCase word for programs; also the reason of the Event.")]
    message: Annotated[Sentence, Field(description="A sentence for people.")] = ""
    last_transition_time: Annotated[Timestamp, Field(description="When the status last changed.")]
    observed_generation: Annotated[int, Field(description="The generation of the spec that this speaks of.")] = 0


class Resource(Model):
    """A whole object; `kind` and the names of the resource are class variables of each kind."""

    kind: ClassVar[str]
    plural: ClassVar[str]

    metadata: ObjectMeta

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
