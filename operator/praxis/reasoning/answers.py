"""The forms that the classification and the diagnosis must hold, and what becomes of them in status.

The reader has the last word: lengths are cut to the fields' bounds and deceiving characters dropped; ids, enumerations
and references are never mended, only refused.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from praxis.api import bounds
from praxis.api.incident import Classification
from praxis.api.plan import Claim, Diagnosis
from praxis.reasoning.cleaning import bounded, line
from praxis.reasoning.protocol import Schema
from praxis.reasoning.structured import Form, Unacceptable

SENTENCE = 1024
LINE = 256


class Category(StrEnum):
    """Kinds of incident. Closed, so that memories of one kind are found together."""

    MEMORY_LEAK = "MemoryLeak"
    OUT_OF_MEMORY = "OutOfMemory"
    CRASH_LOOP = "CrashLoop"
    LATENCY_SPIKE = "LatencySpike"
    TRAFFIC_SPIKE = "TrafficSpike"
    ERROR_RATE = "ErrorRate"
    BAD_DEPLOY = "BadDeploy"
    CONFIGURATION_ERROR = "ConfigurationError"
    SATURATION = "Saturation"
    DEPENDENCY_FAILURE = "DependencyFailure"
    OTHER = "Other"


class ClassificationAnswer(BaseModel):
    """What the fast model fills in."""

    model_config = ConfigDict(extra="forbid")

    category: Category
    severity: Literal["critical", "high", "medium", "low"]
    service: Annotated[str, Field(description="The service concerned, as the labels name it; empty when they do not.")]
    summary: Annotated[str, Field(min_length=1, description="The incident in one sentence.")]


class ClaimAnswer(BaseModel):
    """One claim of the diagnosis."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, description="One sentence that the cited evidence shows.")]
    evidence: Annotated[
        list[str], Field(min_length=1, max_length=bounds.EVIDENCE, description="Ids of evidence, for example e1.")
    ]


class DiagnosisAnswer(BaseModel):
    """What the reasoning model fills in."""

    model_config = ConfigDict(extra="forbid")

    summary: Annotated[str, Field(min_length=1, description="The likely cause in a sentence or two.")]
    claims: Annotated[list[ClaimAnswer], Field(max_length=bounds.CLAIMS)]
    confidence: Literal["low", "medium", "high"]


def classification_form() -> Form[Classification]:
    """The form of a classification."""
    return Form(Schema("classification", ClassificationAnswer.model_json_schema()), _classification)


def diagnosis_form(evidence_ids: Collection[str]) -> Form[Diagnosis]:
    """The form of a diagnosis whose claims may cite these observations and no others."""
    schema = Schema("diagnosis", DiagnosisAnswer.model_json_schema())
    return Form(schema, lambda document: _diagnosis(document, evidence_ids))


def _classification(document: Any) -> Classification:
    answer = ClassificationAnswer.model_validate(document)
    return Classification(
        category=answer.category,
        severity=answer.severity,
        service=line(answer.service, LINE),
        summary=_required("summary", answer.summary),
    )


def _diagnosis(document: Any, evidence_ids: Collection[str]) -> Diagnosis:
    answer = DiagnosisAnswer.model_validate(document)
    for index, claim in enumerate(answer.claims):
        for cited in claim.evidence:
            if cited not in evidence_ids:
                known = ", ".join(evidence_ids) or "none"
                raise Unacceptable(
                    f"claims.{index}.evidence: there is no evidence {line(cited, 32)!r}; there is: {known}"
                )
    if not answer.claims and answer.confidence != "low":
        raise Unacceptable("confidence: without a claim that cites evidence it must be low")
    return Diagnosis(
        summary=_required("summary", answer.summary),
        claims=[
            Claim(text=_required(f"claims.{index}.text", each.text), evidence=list(dict.fromkeys(each.evidence)))
            for index, each in enumerate(answer.claims)
        ],
        confidence=answer.confidence,
    )


def _required(field: str, text: str) -> str:
    if not (cleaned := bounded(text, SENTENCE)):
        raise Unacceptable(f"{field}: must hold printable text")
    return cleaned
