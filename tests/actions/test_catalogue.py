"""The catalogue: schemas, tiers, and the literal sentence of what an action does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.actions.catalogue import CATALOGUE, ConfigChange, Scale, pin
from praxis.api.base import ObjectMeta
from praxis.api.plan import Action, ActionType, Tier
from praxis.api.target import FunctionCompute, LabelSelector, RemediationTarget, RemediationTargetSpec
from praxis.errors import InvalidAnswer

TARGET = RemediationTarget(
    metadata=ObjectMeta(name="checkout-fn", namespace="shop", uid="uid-1", generation=7),
    spec=RemediationTargetSpec(
        kind="FunctionCompute",
        function_compute=FunctionCompute(region="ap-southeast-1", account_id="1234567890", function="checkout"),
        credentials_file="checkout.json",
        disposable=True,
        alert_selector=LabelSelector(match_labels={"service": "checkout"}),
    ),
)


def pinned(action_type: ActionType, tier: Tier, parameters: dict[str, str], **changes: Any) -> Action:
    fields: dict[str, Any] = {"action_id": "a1", "rollback": "Nothing to undo.", "target": TARGET, "state": "digest"}
    return pin(action_type=action_type, tier=tier, parameters=parameters, **{**fields, **changes})


def test_it_holds_exactly_the_four_types() -> None:
    """The catalogue has one entry for each action type, of the tier and reality that the plan's model demands."""
    assert {entry.type: (entry.tier, entry.real) for entry in CATALOGUE.values()} == {
        ActionType.RESTART_FUNCTION: (Tier.SAFE, True),
        ActionType.UPDATE_CONFIG: (Tier.CAUTION, False),
        ActionType.SCALE_SERVICE: (Tier.CAUTION, False),
        ActionType.ROLLBACK_DEPLOY: (Tier.DANGEROUS, False),
    }


@pytest.mark.parametrize(
    ("action_type", "tier", "parameters", "effect"),
    [
        pytest.param(
            ActionType.RESTART_FUNCTION,
            Tier.SAFE,
            {},
            "Sets PRAXIS_RESTART_ID in the environment of function checkout (ap-southeast-1), as Function Compute has "
            "no restart call; running instances are replaced.",
            id="restart",
        ),
        pytest.param(
            ActionType.UPDATE_CONFIG,
            Tier.CAUTION,
            {"key": "POOL_SIZE", "value": "20"},
            'DRY RUN: would set POOL_SIZE="20" in the environment of function checkout (ap-southeast-1); nothing is '
            "changed.",
            id="config",
        ),
        pytest.param(
            ActionType.SCALE_SERVICE,
            Tier.CAUTION,
            {"replicas": "3"},
            "DRY RUN: would keep 3 instances of function checkout (ap-southeast-1); nothing is changed.",
            id="scale",
        ),
        pytest.param(
            ActionType.ROLLBACK_DEPLOY,
            Tier.DANGEROUS,
            {"revision": "41"},
            "DRY RUN: would point function checkout at published version 41 (ap-southeast-1); nothing is changed.",
            id="rollback",
        ),
    ],
)
def test_the_effect_is_said_literally(
    action_type: ActionType, tier: Tier, parameters: dict[str, str], effect: str
) -> None:
    """A pinned action says in one sentence what it will do, and begins with DRY RUN when that is nothing."""
    assert pinned(action_type, tier, parameters).effect == effect


def test_an_action_is_pinned_to_the_target_as_it_is() -> None:
    """Name, uid, generation and state of the target go into the action, and so into the plan's digest."""
    target = pinned(ActionType.RESTART_FUNCTION, Tier.SAFE, {}, state="hmac-sha256:0").target
    assert (target.name, target.uid, target.generation, target.state) == ("checkout-fn", "uid-1", 7, "hmac-sha256:0")


@pytest.mark.parametrize(
    ("action_type", "tier", "parameters", "complaint"),
    [
        pytest.param(ActionType.RESTART_FUNCTION, Tier.CAUTION, {}, "is of tier safe, not caution", id="tier-too-high"),
        pytest.param(ActionType.ROLLBACK_DEPLOY, Tier.SAFE, {"revision": "1"}, "of tier dangerous", id="tier-too-low"),
        pytest.param(ActionType.RESTART_FUNCTION, Tier.SAFE, {"force": "true"}, "force: Extra inputs", id="extra"),
        pytest.param(ActionType.UPDATE_CONFIG, Tier.CAUTION, {"key": "A"}, "value: Field required", id="missing"),
        pytest.param(
            ActionType.UPDATE_CONFIG, Tier.CAUTION, {"key": "PRAXIS_RESTART_ID", "value": "x"}, "reserved", id="marker"
        ),
        pytest.param(
            ActionType.UPDATE_CONFIG, Tier.CAUTION, {"key": "praxis_mode", "value": "x"}, "reserved", id="lower-case"
        ),
        pytest.param(ActionType.UPDATE_CONFIG, Tier.CAUTION, {"key": "FC_X", "value": "x"}, "reserved", id="service"),
        pytest.param(
            ActionType.UPDATE_CONFIG, Tier.CAUTION, {"key": "DB_PASSWORD", "value": "x"}, "secret", id="password"
        ),
        pytest.param(ActionType.UPDATE_CONFIG, Tier.CAUTION, {"key": "api_key", "value": "x"}, "secret", id="api-key"),
        pytest.param(ActionType.UPDATE_CONFIG, Tier.CAUTION, {"key": "A B", "value": "x"}, "key: ", id="key-syntax"),
        pytest.param(
            ActionType.UPDATE_CONFIG, Tier.CAUTION, {"key": "A", "value": "x\nDRY RUN"}, "printable", id="newline"
        ),
        pytest.param(
            ActionType.UPDATE_CONFIG, Tier.CAUTION, {"key": "A", "value": "x" * 257}, "256", id="value-too-long"
        ),
        pytest.param(ActionType.SCALE_SERVICE, Tier.CAUTION, {"replicas": "101"}, "0 to 100", id="too-many"),
        pytest.param(ActionType.SCALE_SERVICE, Tier.CAUTION, {"replicas": "-1"}, "0 to 100", id="negative"),
        pytest.param(ActionType.SCALE_SERVICE, Tier.CAUTION, {"replicas": "07"}, "0 to 100", id="leading-zero"),
        pytest.param(ActionType.SCALE_SERVICE, Tier.CAUTION, {"replicas": "٣"}, "0 to 100", id="other-digits"),
        pytest.param(ActionType.ROLLBACK_DEPLOY, Tier.DANGEROUS, {"revision": "../1"}, "revision: ", id="path"),
    ],
)
def test_what_does_not_hold_the_schema_is_refused(
    action_type: ActionType, tier: Tier, parameters: dict[str, str], complaint: str
) -> None:
    """A wrong tier, and a parameter that is unknown, missing, reserved, secret or out of bounds, is InvalidAnswer."""
    with pytest.raises(InvalidAnswer, match=complaint):
        pinned(action_type, tier, parameters)


def test_a_real_action_needs_a_disposable_target() -> None:
    """A restart of a target that is not disposable cannot even be planned; a dry run can."""
    precious = TARGET.replace(spec=TARGET.spec.replace(disposable=False))
    with pytest.raises(InvalidAnswer, match="not disposable"):
        pinned(ActionType.RESTART_FUNCTION, Tier.SAFE, {}, target=precious)
    assert not pinned(ActionType.SCALE_SERVICE, Tier.CAUTION, {"replicas": "1"}, target=precious).real


def test_a_complaint_does_not_repeat_the_value() -> None:
    """The message of a refused value does not quote it: it goes into status and logs."""
    with pytest.raises(InvalidAnswer) as raised:
        pinned(ActionType.UPDATE_CONFIG, Tier.CAUTION, {"key": "A", "value": "hunter2hunter2\x00"})
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("replicas", ["0", "1", "99", "100"])
def test_every_count_within_the_bound_is_taken(replicas: str) -> None:
    """0 and 100 instances are within the bound."""
    assert Scale(replicas=replicas).replicas == replicas


@given(
    key=st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,62}", fullmatch=True), prefix=st.sampled_from(["PRAXIS_", "Praxis_"])
)
def test_no_key_reaches_the_marker(key: str, prefix: str) -> None:
    """Whatever follows the reserved prefix, in whatever case, the key is refused."""
    reserved = (prefix + key)[:64]
    with pytest.raises(ValueError, match="reserved"):
        ConfigChange(key=reserved, value="x")


def test_the_schema_is_closed() -> None:
    """The JSON schema shown to the model allows no further properties, for every action."""
    assert {entry.type: entry.schema()["additionalProperties"] for entry in CATALOGUE.values()} == dict.fromkeys(
        ActionType, False
    )


def test_the_longest_effect_fits_a_sentence() -> None:
    """The effect of the restart fits a status sentence even with the longest names."""
    longest = TARGET.spec.function_compute.replace(function="f" * 64, region="r" * 64)
    target = TARGET.replace(spec=TARGET.spec.replace(function_compute=longest))
    assert len(pinned(ActionType.RESTART_FUNCTION, Tier.SAFE, {}, target=target).effect) <= 1024
