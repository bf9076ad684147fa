"""What an approval binds."""

from __future__ import annotations

import hashlib

import pytest
from pydantic import ValidationError

from praxis.api.plan import Action, ActionType, Tier, plan_digest
from tests import builders

DIGEST = "sha256:" + "e" * 64


def digested(**changes: object) -> str:
    """The digest of a small plan, changed in one thing."""
    fields = {"incident_uid": "uid-1", "revision": 1, "actions": [builders.action()], "evidence_digest": DIGEST}
    return plan_digest(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_digest_literally() -> None:
    """SHA-256 of the canonical JSON of the incident, the revision, every action as it will run, and the evidence."""
    action = builders.action()
    text = (
        '{"actions":[{"effect":"' + action.effect + '","id":"restart-function","parameters":{},"real":true,"rollback":"'
        f'{action.rollback}","target":{{"generation":1,"name":"checkout-fn","parts":[],"state":"{action.target.state}",'
        f'"uid":"{action.target.uid}"}},"tier":"safe","type":"restart_function"}}],'
        f'"evidenceDigest":"{DIGEST}","incidentUid":"uid-1","revision":1}}'
    )
    assert digested() == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


TARGET = builders.action().target


@pytest.mark.parametrize(
    "changes",
    [
        {"incident_uid": "uid-2"},
        {"revision": 2},
        {"evidence_digest": "sha256:" + "f" * 64},
        {"actions": [builders.action().replace(id="other")]},
        {"actions": [builders.action().replace(effect="something else")]},
        {"actions": [builders.action().replace(rollback="something else")]},
        {"actions": [builders.action().replace(parameters={"key": "value"})]},
        {"actions": [builders.action().replace(target=TARGET.replace(uid="another"))]},
        {"actions": [builders.action().replace(target=TARGET.replace(name="another"))]},
        {"actions": [builders.action().replace(target=TARGET.replace(generation=2))]},
        {"actions": [builders.action().replace(target=TARGET.replace(state="hmac-sha256:0"))]},
        {"actions": [builders.action().replace(target=TARGET.replace(parts=["cpu=1"]))]},
        {"actions": [builders.action(), builders.action().replace(id="again")]},
    ],
    ids=str,
)
def test_whatever_differs_is_another_plan(changes: dict[str, object]) -> None:
    """Nothing that would run, or on which it was decided, can change under an approval."""
    assert digested(**changes) != digested()


@pytest.mark.parametrize(
    ("type_", "changes", "says"),
    [
        (ActionType.RESTART_FUNCTION, {"tier": Tier.CAUTION}, "restart_function is of tier safe, not caution"),
        (ActionType.ROLLBACK_DEPLOY, {"tier": Tier.SAFE}, "rollback_deploy is of tier dangerous, not safe"),
        (ActionType.RESTART_FUNCTION, {"real": False}, "restart_function is a real action"),
        (ActionType.UPDATE_CONFIG, {"real": True}, "update_config is a dry run"),
    ],
)
def test_an_action_is_what_the_catalogue_says(type_: ActionType, changes: dict[str, object], says: str) -> None:
    """Whoever builds or reads one: a model's answer, a stored status, a recorded plan."""
    document = {**builders.action(type_).dump(), **changes}
    with pytest.raises(ValidationError, match=says):
        Action.model_validate(document)
