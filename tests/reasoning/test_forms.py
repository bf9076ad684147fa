"""Whatever a model writes: a valid answer, or a refusal that says what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praxis.actions.catalogue import CATALOGUE, pin
from praxis.api import bounds
from praxis.api.incident import Classification, Usage
from praxis.api.plan import REAL, TIERS, ActionType, Diagnosis
from praxis.reasoning.answers import classification_form, diagnosis_form
from praxis.reasoning.cleaning import bounded, line
from praxis.reasoning.contract import ProposedPlan
from praxis.reasoning.plan_form import plan_form
from praxis.reasoning.protocol import Reply
from praxis.reasoning.structured import ANSWER_CHARACTERS, Form, Unacceptable, parsed
from tests import builders

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
TARGETS = [builders.target(), builders.target("cart-fn", disposable=False)]
NEARLY_ACTIONS = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["a", "b", "restart-1", "-x", "A", ""]) | st.text(max_size=70),
        "type": st.sampled_from([*ActionType, "delete_everything", ""]),
        "tier": st.sampled_from(["safe", "caution", "dangerous", "none"]),
        "target": st.sampled_from(["checkout-fn", "cart-fn", "payments", ""]),
        "rollback": st.sampled_from(["undo it", "", "\x1b\u202e", "x" * 5000]) | JSON_VALUES,
        "parameters": st.sampled_from(
            [{}, {"replicas": "3"}, {"replicas": "101"}, {"revision": "v1"}, {"key": "LOG_LEVEL", "value": "debug"}]
        )
        | st.dictionaries(st.text(max_size=6), JSON_VALUES, max_size=2),
    },
    optional={"extra": JSON_VALUES},
)
NEARLY_PLANS = st.fixed_dictionaries(
    {"summary": st.text(max_size=2000), "actions": st.lists(NEARLY_ACTIONS, max_size=6)},
    optional={"rationale": st.text(max_size=5000) | JSON_VALUES, "approved": JSON_VALUES},
)


def reply(content: str, finish_reason: str = "stop") -> Reply:
    """An answer of a model."""
    return Reply(content=content, tool_calls=(), finish_reason=finish_reason, model="qwen-plus", usage=Usage())


def accepted(form: Form[Any], content: str) -> Any:
    """What the form makes of it, None when it is refused; anything but Unacceptable fails the test."""
    try:
        return form.accept(reply(content))
    except Unacceptable:
        return None


@settings(max_examples=300)
@given(JSON_VALUES | NEARLY_PLANS)
def test_a_plan_holds_every_rule_or_is_refused(document: Any) -> None:
    """Random and nearly right JSON: never anything but a plan on the catalogue and the targets, ready to be pinned."""
    plan = accepted(plan_form(TARGETS), json.dumps(document))
    if plan is None:
        return
    assert isinstance(plan, ProposedPlan)
    assert 1 <= len(plan.actions) <= bounds.ACTIONS
    assert sum(each.type in REAL for each in plan.actions) <= 1
    assert len({each.id for each in plan.actions}) == len(plan.actions)
    by_name = {each.metadata.name: each for each in TARGETS}
    for each in plan.actions:
        assert each.tier is TIERS[each.type]
        pin(
            action_id=each.id,
            action_type=each.type,
            tier=each.tier,
            parameters=each.parameters,
            rollback=each.rollback,
            target=by_name[each.target],
            state=builders.STATE,
        )


@given(st.text() | JSON_VALUES.map(json.dumps))
def test_a_classification_is_valid_or_refused(content: str) -> None:
    """Random text: nothing but a classification or a refusal."""
    assert isinstance(accepted(classification_form(), content), Classification | None)


@given(
    st.fixed_dictionaries(
        {
            "summary": st.text(max_size=3000),
            "confidence": st.sampled_from(["low", "medium", "high", "certain"]),
            "claims": st.lists(
                st.fixed_dictionaries(
                    {"text": st.text(max_size=3000), "evidence": st.lists(st.sampled_from(["e1", "e2", "e3", ""]))}
                ),
                max_size=10,
            ),
        }
    )
)
def test_a_diagnosis_cites_known_evidence_or_is_refused(document: Any) -> None:
    """Every claim of an accepted diagnosis rests on evidence that exists, and fits the field's bounds."""
    diagnosis = accepted(diagnosis_form(["e1", "e2"]), json.dumps(document))
    if diagnosis is None:
        return
    assert isinstance(diagnosis, Diagnosis)
    assert all(claim.evidence and set(claim.evidence) <= {"e1", "e2"} for claim in diagnosis.claims)
    assert Diagnosis.model_validate(diagnosis.dump()) == diagnosis


def good_plan(**changes: Any) -> dict[str, Any]:
    """A plan that holds."""
    action = {
        "id": "restart",
        "type": "restart_function",
        "tier": "safe",
        "target": "checkout-fn",
        "parameters": {},
        "rollback": "nothing to undo",
    }
    return {"summary": "Restart.", "rationale": "e1", "actions": [{**action, **changes}]}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"type": "delete_everything"}, "actions.0.type: Input should be"),
        ({"tier": "caution"}, "actions.0.tier: restart_function is of tier safe, not caution"),
        ({"target": "payments"}, "actions.0.target: 'payments' is none of: checkout-fn, cart-fn"),
        ({"target": "cart-fn"}, "actions.0.target: cart-fn is not disposable"),
        ({"rollback": ""}, "actions.0.rollback"),
        ({"rollback": "\x00\u202e "}, "actions.0.rollback"),
        ({"id": "Restart It"}, "actions.0.id"),
        ({"parameters": {"force": "true"}}, "actions.0.parameters: force: Extra inputs are not permitted"),
        ({"type": "scale_service", "tier": "caution"}, "actions.0.parameters: replicas: Field required"),
        ({"type": "scale_service", "tier": "caution", "parameters": {"replicas": "100"}}, None),
        ({"type": "scale_service", "tier": "caution", "parameters": {"replicas": "101"}}, "from 0 to 100"),
        ({"approved": True}, "actions.0.approved: Extra inputs are not permitted"),
    ],
)
def test_each_rule_of_a_plan(changes: dict[str, Any], problem: str | None) -> None:
    """Each violation is named where it stands; what holds is accepted as written."""
    form = plan_form(TARGETS)
    if problem is None:
        assert form.accept(reply(json.dumps(good_plan(**changes)))).actions[0].target == "checkout-fn"
    else:
        with pytest.raises(Unacceptable) as caught:
            form.accept(reply(json.dumps(good_plan(**changes))))
        assert problem in str(caught.value)


@pytest.mark.parametrize("count", [0, 1, bounds.ACTIONS, bounds.ACTIONS + 1])
def test_a_plan_has_one_to_four_actions(count: int) -> None:
    """At, below and above the bounds."""
    scale = {"type": "scale_service", "tier": "caution", "parameters": {"replicas": "3"}}
    actions = [good_plan(**scale, id=f"a{number}")["actions"][0] for number in range(count)]
    plan = accepted(plan_form(TARGETS), json.dumps({**good_plan(), "actions": actions}))
    assert (plan is not None) is (1 <= count <= bounds.ACTIONS)


def test_two_real_actions_and_a_repeated_id_are_refused_together() -> None:
    """All problems are told at once, so that one repair turn can mend them."""
    action = good_plan()["actions"][0]
    with pytest.raises(
        Unacceptable, match="an id is used twice; actions: at most one may be real, restart, restart are"
    ):
        plan_form(TARGETS).accept(reply(json.dumps({**good_plan(), "actions": [action, action]})))


def test_prose_is_cut_to_its_bounds() -> None:
    """Long prose is no reason to refuse a plan; it ends in an ellipsis at the field's bound."""
    document = {**good_plan(rollback="r" * 3000), "summary": "s" * 3000, "rationale": "t" * 9000}
    plan = plan_form(TARGETS).accept(reply(json.dumps(document)))
    assert (len(plan.summary), len(plan.rationale), len(plan.actions[0].rollback)) == (1024, 4096, 1024)
    assert plan.summary.endswith("s…")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the answer is empty"),
        ("   \n", "the answer is empty"),
        ("no", "not one JSON document"),
        ("{} {}", "not one JSON document"),
        ('{"a": 1, "a": 2}', "a key stands twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "not one JSON document"),
        ("1" * 5000, "not one JSON document"),
        ('"' + "x" * ANSWER_CHARACTERS + '"', "exceeds 262144 characters"),
        ("```json\n{}\n``` and more", "not one JSON document"),
    ],
    ids=["empty", "blank", "prose", "two", "twice", "nan", "deep", "digits", "long", "fence and prose"],
)
def test_an_answer_that_is_not_one_document_is_refused(content: str, problem: str) -> None:
    """Strict parsing: nothing is guessed."""
    with pytest.raises(Unacceptable, match=problem):
        parsed(content)


@pytest.mark.parametrize("content", ['{"a": 1}', '```json\n{"a": 1}\n```', '```\n{"a": 1}```', ' {"a": 1}\n'])
def test_bare_and_fenced_json_is_read(content: str) -> None:
    """The two ways in which models write JSON."""
    assert parsed(content) == {"a": 1}


def test_an_answer_that_was_cut_off_is_refused_even_when_it_parses() -> None:
    """finish_reason length: what is missing cannot be known."""
    with pytest.raises(Unacceptable, match="cut off at the output limit"):
        plan_form(TARGETS).accept(reply(json.dumps(good_plan()), finish_reason="length"))


@pytest.mark.parametrize(("confidence", "holds"), [("low", True), ("medium", False), ("high", False)])
def test_confidence_without_claims_is_low(confidence: str, holds: bool) -> None:
    """A diagnosis that cites nothing may not be sure."""
    document = {"summary": "unknown", "claims": [], "confidence": confidence}
    assert (accepted(diagnosis_form(["e1"]), json.dumps(document)) is not None) is holds


def test_the_plan_s_schema_allows_the_catalogue_on_the_targets_only() -> None:
    """Each action type stands with its exact tier and parameters, and every object is closed, as strict mode wants."""
    schema = plan_form(TARGETS).schema.document
    variants = schema["properties"]["actions"]["items"]["anyOf"]
    assert [each["properties"]["type"]["enum"] for each in variants] == [[each.value] for each in CATALOGUE]
    assert [each["properties"]["tier"]["enum"] for each in variants] == [[TIERS[each].value] for each in CATALOGUE]
    for each in (schema, *variants, *(each["properties"]["parameters"] for each in variants)):
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])
    assert variants[0]["properties"]["target"]["enum"] == ["checkout-fn", "cart-fn"]


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_cleaned_text_fits_and_deceives_nobody(text: str, limit: int) -> None:
    """No control or format characters, never beyond the limit, and UTF-8 can hold it."""
    for cleaned in (bounded(text, limit), line(text, limit)):
        assert len(cleaned) <= limit
        assert not any(each in cleaned for each in "\x00\x1b\u202e\u2066\ud800")
        cleaned.encode()
    assert "\n" not in line(text, limit)


@pytest.mark.parametrize(("length", "expected"), [(9, "x" * 9), (10, "x" * 10), (11, "x" * 9 + "…")])
def test_text_is_cut_above_the_limit_only(length: int, expected: str) -> None:
    """At the limit it stays whole."""
    assert bounded("x" * length, 10) == expected
