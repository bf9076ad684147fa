"""The catalogue: what a plan may hold, with which parameters, and what carrying it out does, literally.

One type is real. The others are dry runs, whatever anybody proposes: the tier and `real` are the catalogue's, never the
proposal's.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from praxis.api.plan import REAL, TIERS, Action, ActionTarget, ActionType, Tier
from praxis.api.target import RemediationTarget
from praxis.errors import InvalidAnswer

MARKER: Final = "PRAXIS_RESTART_ID"
"""The environment variable that carries the intent id: what proves afterwards that our own request was applied."""
MAX_REPLICAS: Final = 100
RESERVED_PREFIXES: Final = ("PRAXIS_", "FC_", "ALIBABA_CLOUD_")
"""The marker's own namespace, and those that Function Compute fills in."""
SECRET_LIKE: Final = re.compile(
    r"SECRET|TOKEN|PASSW|PWD|CREDENTIAL|PRIVATE|AUTH|COOKIE|SESSION|SIGNATURE|CERT|DSN|CONN(ECTION)?_?STR"
    r"|(API|ACCESS|ENCRYPTION|SIGNING|SHARED|MASTER|LICENSE)_?KEY",
    re.IGNORECASE,
)


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must hold printable characters only")
    return text


def _ordinary_key(key: str) -> str:
    if key.upper().startswith(RESERVED_PREFIXES):
        raise ValueError(f"{key} is reserved; keys must not begin with {', '.join(RESERVED_PREFIXES)}")
    if SECRET_LIKE.search(key):
        raise ValueError(f"{key} looks like the name of a secret; secrets are not set by plans")
    return key


def _count(text: str) -> str:
    if not re.fullmatch(r"0|[1-9][0-9]{0,2}", text) or int(text) > MAX_REPLICAS:
        raise ValueError(f"must be a whole number from 0 to {MAX_REPLICAS}, as a string")
    return text


class Parameters(BaseModel):
    """Parameters of an action: strings on the wire, no more and no fewer than declared."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class NoParameters(Parameters):
    """An action that takes none."""


class ConfigChange(Parameters):
    """One environment variable; names that are reserved or look like a secret's are refused."""

    key: Annotated[
        str,
        StringConstraints(max_length=64, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"),
        AfterValidator(_ordinary_key),
        Field(description="Name of the environment variable; never reserved, never a secret's."),
    ]
    value: Annotated[
        str,
        StringConstraints(max_length=256),
        AfterValidator(_printable),
        Field(description="Its new value; must not be a secret."),
    ]


class Scale(Parameters):
    """How many instances to keep."""

    replicas: Annotated[str, AfterValidator(_count), Field(description=f'Instances to keep, "0" to "{MAX_REPLICAS}".')]


class Rollback(Parameters):
    """A published revision to return to."""

    revision: Annotated[
        str,
        StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"),
        Field(description="The published version or alias to go back to."),
    ]


@dataclass(frozen=True)
class Entry:
    """An action type: its schema, what it is for, and its effect as a clause that follows "would" or a name."""

    type: ActionType
    purpose: str
    parameters: builtins.type[Parameters]
    clause: Callable[[Mapping[str, str], str], str]

    @property
    def tier(self) -> Tier:
        """Its risk tier."""
        return TIERS[self.type]

    @property
    def real(self) -> bool:
        """Whether it changes anything."""
        return self.type in REAL

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its parameters, for prompts and structured output."""
        return self.parameters.model_json_schema()


def _restart(parameters: Mapping[str, str], function: str) -> str:
    del parameters
    return (
        f"Sets {MARKER} in the environment of function {function}, as Function Compute has no restart call; "
        "running instances are replaced."
    )


CATALOGUE: Final[Mapping[ActionType, Entry]] = MappingProxyType(
    {
        entry.type: entry
        for entry in (
            Entry(
                ActionType.RESTART_FUNCTION,
                "Replace the running instances of the target's function; its code and configuration stay.",
                NoParameters,
                _restart,
            ),
            Entry(
                ActionType.UPDATE_CONFIG,
                "Show a change of one environment variable that is not a secret.",
                ConfigChange,
                lambda given, function: f'set {given["key"]}="{given["value"]}" in the environment of {function}',
            ),
            Entry(
                ActionType.SCALE_SERVICE,
                "Show a change of the number of instances that are kept.",
                Scale,
                lambda given, function: f"keep {given['replicas']} instances of {function}",
            ),
            Entry(
                ActionType.ROLLBACK_DEPLOY,
                "Show a return to an earlier published version.",
                Rollback,
                lambda given, function: f"point {function} at published version {given['revision']}",
            ),
        )
    }
)


def pin(
    *,
    action_id: str,
    action_type: ActionType,
    tier: Tier,
    parameters: Mapping[str, str],
    rollback: str,
    target: RemediationTarget,
    state: str,
    parts: Sequence[str] = (),
) -> Action:
    """Validate a proposed action and bind it to the target as it is now.

    `state` and `parts` are digests of the function's own configuration, from `Adapter.observe`.

    Raises:
        InvalidAnswer: the tier is not the catalogue's, the parameters do not hold its schema, a field is out of bounds,
            or a real action names a target that is not disposable.
    """
    entry = CATALOGUE[action_type]
    if tier is not entry.tier:
        raise InvalidAnswer(f"action {action_id}: {action_type} is of tier {entry.tier}, not {tier}")
    if entry.real and not target.spec.disposable:
        raise InvalidAnswer(
            f"action {action_id}: target {target.metadata.name} is not disposable: nothing real runs on it"
        )
    try:
        given = entry.parameters.model_validate(dict(parameters)).model_dump()
        return Action(
            id=action_id,
            type=action_type,
            tier=entry.tier,
            real=entry.real,
            target=ActionTarget(
                name=target.metadata.name,
                uid=target.metadata.uid,
                generation=target.metadata.generation,
                state=state,
                parts=list(parts),
            ),
            parameters=given,
            effect=effect_of(action_type, given, target),
            rollback=rollback,
        )
    except ValidationError as error:
        raise InvalidAnswer(f"action {action_id} ({action_type}): {_sentence(error)}") from error


def effect_of(action_type: ActionType, parameters: Mapping[str, str], target: RemediationTarget) -> str:
    """What carrying an action out does, literally; a dry run begins with "DRY RUN"."""
    entry = CATALOGUE[action_type]
    spec = target.spec.function_compute
    clause = entry.clause(parameters, f"{spec.function} ({spec.region})" if entry.real else f"function {spec.function}")
    return clause if entry.real else f"DRY RUN: would {clause} ({spec.region}); nothing is changed."


def _sentence(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(str(part) for part in each['loc']) or 'parameters'}: {each['msg'].removeprefix('Value error, ')}"
        for each in error.errors(include_input=False, include_url=False)
    )
