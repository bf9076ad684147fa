"""A plan: what the operator proposes and a person approves, and the digest that binds the two."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, model_validator

from praxis.api import bounds
from praxis.api.base import AnyDigest, Line, Model, Name, Part, PlanDigest, Sentence, Text, Timestamp, Uid, Word
from praxis.digest import Digest, digest


class Tier(StrEnum):
    """How much an action can break."""

    SAFE = "safe"
    CAUTION = "caution"
    DANGEROUS = "dangerous"


class ActionType(StrEnum):
    """The whole catalogue. A plan can hold nothing else."""

    RESTART_FUNCTION = "restart_function"
    UPDATE_CONFIG = "update_config"
    SCALE_SERVICE = "scale_service"
    ROLLBACK_DEPLOY = "rollback_deploy"


TIERS = {
    ActionType.RESTART_FUNCTION: Tier.SAFE,
    ActionType.UPDATE_CONFIG: Tier.CAUTION,
    ActionType.SCALE_SERVICE: Tier.CAUTION,
    ActionType.ROLLBACK_DEPLOY: Tier.DANGEROUS,
}
REAL = frozenset({ActionType.RESTART_FUNCTION})
"""The action types that change anything; all others are dry runs, whatever a plan says."""


class ActionTarget(Model):
    """The declared target of an action, pinned: approving binds this very object in this very state."""

    name: Annotated[Name, Field(description="The RemediationTarget, in the incident's namespace.")]
    uid: Annotated[Uid, Field(description="Its uid: a target that was deleted and declared anew is another one.")]
    generation: Annotated[int, Field(ge=1, description="The generation of its spec when the plan was drafted.")]
    state: Annotated[
        AnyDigest, Field(description="Digest of the function's own configuration when the plan was drafted.")
    ] = ""
    parts: Annotated[
        list[Part], Field(max_length=bounds.PARTS, description="Keyed digests of its parts, to say which one changed.")
    ] = []


class Action(Model):
    """One action of a plan."""

    id: Annotated[
        str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", description="Unique in the plan.")
    ]
    type: Annotated[ActionType, Field(description="The catalogue's name of the action.")]
    tier: Annotated[Tier, Field(description="The catalogue's risk tier of that type.")]
    real: Annotated[bool, Field(description="Whether anything is changed; false is a DRY RUN.")]
    target: Annotated[ActionTarget, Field(description="What is acted on.")]
    parameters: Annotated[
        dict[str, Annotated[str, Field(max_length=256)]],
        Field(max_length=bounds.PARAMETERS, description="Parameters, validated by the catalogue."),
    ] = {}
    effect: Annotated[Sentence, Field(description="What carrying it out will do, literally.")]
    rollback: Annotated[Sentence, Field(min_length=1, description="How to undo it.")]

    @model_validator(mode="after")
    def _as_the_catalogue_says(self) -> Action:
        if self.tier != TIERS[self.type]:
            raise ValueError(f"{self.type} is of tier {TIERS[self.type]}, not {self.tier}")
        if self.real != (self.type in REAL):
            raise ValueError(f"{self.type} is {'a real action' if self.type in REAL else 'a dry run'}")
        return self


class Plan(Model):
    """A plan of one to four actions, at most one of them real."""

    revision: Annotated[int, Field(ge=1, le=bounds.PLANS, description="Rises by one with each plan of the incident.")]
    digest: Annotated[PlanDigest, Field(description="What an approval names: SHA-256 of the canonical plan.")]
    short: Annotated[
        str,
        Field(max_length=12, pattern="^[0-9a-f]{12}$", description="First 12 hex digits of the digest, for people."),
    ]
    summary: Annotated[Sentence, Field(description="The plan in a sentence or two.")]
    rationale: Annotated[Text, Field(description="Why this should help, citing evidence.")] = ""
    actions: Annotated[
        list[Action],
        Field(
            min_length=1,
            max_length=bounds.ACTIONS,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
            description="Carried out in this order.",
        ),
    ]
    tier: Annotated[Tier, Field(description="The highest tier of its actions.")]
    evidence_digest: Annotated[PlanDigest, Field(description="Digest of the evidence that the plan rests on.")]
    model: Annotated[Line, Field(description="The model that drafted it.")] = ""
    run: Annotated[PlanDigest | None, Field(description="Digest of the recorded model run that made it.")] = None
    proposed_at: Annotated[Timestamp, Field(description="When it was proposed.")]

    @property
    def real_action(self) -> Action | None:
        """The action that changes something, if the plan has one."""
        return next((action for action in self.actions if action.real), None)

    def recomputed(self, incident_uid: str) -> Digest:
        """The digest of what is stored here, for comparison with `digest`."""
        return plan_digest(
            incident_uid=incident_uid,
            revision=self.revision,
            actions=self.actions,
            evidence_digest=self.evidence_digest,
        )

    @model_validator(mode="after")
    def _one_real_action(self) -> Plan:
        if sum(action.real for action in self.actions) > 1:
            raise ValueError("a plan holds at most one real action")
        if len({action.id for action in self.actions}) != len(self.actions):
            raise ValueError("an action id is used twice")
        return self


def highest_tier(actions: list[Action]) -> Tier:
    """The highest risk tier among the actions."""
    return max((action.tier for action in actions), key=list(Tier).index)


def plan_digest(*, incident_uid: str, revision: int, actions: list[Action], evidence_digest: str) -> Digest:
    """What an approval binds: the incident, the revision, every action as it will run, the evidence."""
    document: dict[str, Any] = {
        "incidentUid": incident_uid,
        "revision": revision,
        "actions": [action.dump() for action in actions],
        "evidenceDigest": evidence_digest,
    }
    return digest(document)


class Claim(Model):
    """A sentence of the diagnosis and the evidence that it cites."""

    text: Annotated[Sentence, Field(description="What is claimed.")]
    evidence: Annotated[list[Word], Field(max_length=bounds.EVIDENCE, description="Ids of the evidence it rests on.")]


class Diagnosis(Model):
    """What the reasoning model concluded from the evidence."""

    summary: Annotated[Sentence, Field(description="The likely cause in a sentence or two.")]
    claims: Annotated[list[Claim], Field(max_length=bounds.CLAIMS, description="Each cites its evidence.")] = []
    confidence: Annotated[
        str, Field(pattern="^(low|medium|high)$", max_length=6, description="How sure the model is; decides nothing.")
    ] = "low"
    model: Annotated[Line, Field(description="The model that concluded it.")] = ""
    run: Annotated[PlanDigest | None, Field(description="Digest of the recorded model run that made it.")] = None


__all__ = [
    "REAL",
    "TIERS",
    "Action",
    "ActionTarget",
    "ActionType",
    "Claim",
    "Diagnosis",
    "Plan",
    "Tier",
    "highest_tier",
    "plan_digest",
]
