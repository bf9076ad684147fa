"""The reasoner against the scripted model, over a real socket: what it answers, what it costs, what it shows."""

from __future__ import annotations

import pytest

from praxis.api import bounds
from praxis.api.incident import Recalled, Usage
from praxis.api.plan import ActionType, Tier
from praxis.errors import InvalidAnswer, NeedsPerson, RetryLater
from praxis.reasoning.contract import spent_on
from tests import builders
from tests.reasoning.parts import LEAKING, QUIET, Sources, blocks_of, house, incident, investigated, scope


async def test_alerts_are_classified_by_the_fast_model() -> None:
    """The category, severity and service come from the alerts, and the answer names the model that gave it."""
    async with house() as built:
        answered = await built.reasoner.classify(incident())
        assert answered.answer.category == "MemoryLeak"
        assert answered.answer.severity == "critical"
        assert answered.answer.service == "checkout"
        assert answered.answer.summary.startswith("[scripted] MemoryHigh: checkout leaks memory")
        assert answered.model == answered.answer.model == "scripted-fast"
        assert built.bodies()[0]["enable_thinking"] is False


async def test_a_diagnosis_cites_the_evidence_that_was_gathered() -> None:
    """Tools are called, each result becomes evidence with an id, and every claim cites such an id."""
    async with house() as built:
        answered = await built.reasoner.diagnose(scope(), ())
        assert [each.id for each in answered.evidence] == ["e1", "e2", "e3"]
        assert [each.tool for each in answered.evidence] == ["list_pods", "function_status", "pod_logs"]
        assert built.sources.calls[-1] == ("pod_logs", '{"pod": "checkout-7d9f8b6c5d-x2x4z"}')
        assert answered.evidence[2].excerpt == LEAKING["pod_logs"]
        assert answered.evidence[0].time == "2026-01-31T12:00:00.000000Z"
        assert answered.answer.claims[0].evidence == ["e3"]
        assert answered.answer.confidence == "medium"
        assert answered.answer.model == "scripted-reasoning"
        assert [body["enable_thinking"] for body in built.bodies()] == [True, True, True]


async def test_a_leak_with_instances_running_is_restarted() -> None:
    """The plan restarts the given disposable target, in the catalogue's tier, with a rollback text."""
    async with house() as built:
        at = await investigated(built, incident())
        answered = await built.reasoner.draft(at, [builders.target()])
        action = answered.answer.actions[0]
        assert (action.type, action.tier, action.target) == (ActionType.RESTART_FUNCTION, Tier.SAFE, "checkout-fn")
        assert action.rollback.startswith("[scripted] Nothing to undo")
        assert "(e3)" in answered.answer.rationale


async def test_nothing_running_means_no_restart() -> None:
    """The same alert with a function that has no instance gives a dry run and says why."""
    async with house(sources=Sources({**LEAKING, "function_status": "checkout: no active instances"})) as built:
        at = await investigated(built, incident())
        answered = await built.reasoner.draft(at, [builders.target()])
        assert [each.type for each in answered.answer.actions] == [ActionType.UPDATE_CONFIG]
        assert "No restart: the function has no running instance (e2)" in answered.answer.rationale


@pytest.mark.parametrize(
    ("alertname", "summary", "texts", "expected"),
    [
        ("MemoryHigh", "memory of checkout grows", LEAKING, ActionType.RESTART_FUNCTION),
        ("TrafficSpike", "2000 requests per second on checkout", QUIET, ActionType.SCALE_SERVICE),
        ("HighLatency", "p99 latency of checkout is 4 s", QUIET, ActionType.SCALE_SERVICE),
        ("HighErrorRate", "5xx since the rollout of v1.8.0, was v1.7.2", QUIET, ActionType.ROLLBACK_DEPLOY),
        ("ConfigError", "invalid setting: CACHE_TTL must be 300", QUIET, ActionType.UPDATE_CONFIG),
        ("Strange", "something unheard of", QUIET, ActionType.UPDATE_CONFIG),
        ("HighLatency", "p99 latency of checkout is 4 s", LEAKING, ActionType.RESTART_FUNCTION),
    ],
    ids=["leak", "traffic", "latency", "bad deploy", "configuration", "unknown", "latency that is a leak"],
)
async def test_different_alerts_and_evidence_give_different_plans(
    alertname: str, summary: str, texts: dict[str, str], expected: ActionType
) -> None:
    """The remedy follows from what was shown, not from a fixed script."""
    async with house(sources=Sources(texts)) as built:
        at = await investigated(built, incident(alertname, summary))
        answered = await built.reasoner.draft(at, [builders.target()])
        assert answered.answer.actions[0].type == expected


async def test_parameters_are_read_from_what_was_shown() -> None:
    """Values in a plan come from alerts and evidence."""
    async with house(sources=Sources(QUIET)) as built:
        at = await investigated(built, incident("ConfigError", "invalid setting: CACHE_TTL must be 300"))
        config = await built.reasoner.draft(at, [builders.target()])
        assert config.answer.actions[0].parameters == {"key": "CACHE_TTL", "value": "300"}
        at = await investigated(built, incident("HighErrorRate", "5xx since the rollout of v1.8.0, was v1.7.2"))
        back = await built.reasoner.draft(at, [builders.target()])
        assert back.answer.actions[0].parameters == {"revision": "v1.7.2"}


async def test_corrections_are_heeded() -> None:
    """What a reviewer rules out is not in the next plan, and the rationale says so."""
    async with house(sources=Sources(QUIET)) as built:
        at = await investigated(built, incident("TrafficSpike", "2000 requests per second"))
        first = await built.reasoner.draft(at, [builders.target()])
        assert first.answer.actions[0].type == ActionType.SCALE_SERVICE
        at = at.replace(status=at.status.replace(corrections=["no scaling please, this is a cost centre"]))
        second = await built.reasoner.draft(at, [builders.target()])
        assert [each.type for each in second.answer.actions] == [ActionType.UPDATE_CONFIG]
        assert "Scale_service is left out, as the reviewers asked" in second.answer.rationale


async def test_memories_reach_the_rationale() -> None:
    """A recalled incident is quoted in the plan's rationale."""
    memory = Recalled(id="m1", incident="shop/checkout-0", score=0.91, summary="A restart ended the leak.")
    async with house() as built:
        at = incident()
        at = await investigated(built, at.replace(status=at.status.replace(recalled=[memory])))
        answered = await built.reasoner.draft(at, [builders.target()])
        assert "Memory of shop/checkout-0 (score 0.91): A restart ended the leak." in answered.answer.rationale


async def test_the_draft_is_told_how_the_earlier_plan_ended() -> None:
    """After NotEffective the model sees the old actions and their outcome, and does not restart again."""
    async with house() as built:
        past = builders.incident(builders.Phase.OBSERVING)
        at = past.replace(status=past.status.replace(reason="NotEffective"))
        at = await investigated(built, at)
        answered = await built.reasoner.draft(at, [builders.target()])
        earlier = blocks_of(built.bodies()[-1])["earlier"]
        assert earlier["revision"] == 1
        assert earlier["actions"][0]["type"] == "restart_function"
        assert earlier["outcomes"][0]["result"] == "Applied"
        assert answered.answer.actions[0].type is not ActionType.RESTART_FUNCTION


async def test_every_answer_is_paid_for() -> None:
    """The usage of a diagnosis is the sum of all its turns, as the server counted them."""
    async with house() as built:
        answered = await built.reasoner.diagnose(scope(), ())
        assert answered.usage.model_calls == 3
        assert answered.usage.input_tokens == built.metric(
            "praxis_model_tokens_total", model="scripted-reasoning", direction="input"
        )
        assert answered.usage.output_tokens == built.metric(
            "praxis_model_tokens_total", model="scripted-reasoning", direction="output"
        )
        assert answered.usage.cost_micro_usd == 0


async def test_an_answer_that_does_not_hold_is_paid_for_too() -> None:
    """InvalidAnswer carries what both the answer and its repair cost."""
    async with house() as built:
        built.model.faults.add("wrong-schema", times=2)
        with pytest.raises(InvalidAnswer) as caught:
            await built.reasoner.classify(incident())
        assert spent_on(caught.value).model_calls == 2
        assert spent_on(caught.value).input_tokens > 0


async def test_turns_before_an_outage_are_paid_for() -> None:
    """RetryLater in the second turn carries the first turn's cost."""
    async with house() as built:
        built.model.faults.add("unknown-tool")
        built.model.faults.add("server-error")
        with pytest.raises(RetryLater) as caught:
            await built.reasoner.diagnose(scope(), ())
        assert spent_on(caught.value).model_calls == 1


@pytest.mark.parametrize(("used", "asked"), [(999, 1), (1000, 0), (1001, 0)])
async def test_a_spent_budget_stalls(used: int, asked: int) -> None:
    """At the limit nothing more is asked, and the reason says why; below it the question is asked."""
    async with house(tokens_per_incident=1000) as built:
        at = incident(usage=Usage(model_calls=1, input_tokens=used - 1, output_tokens=1))
        if asked:
            assert (await built.reasoner.classify(at)).answer.category == "MemoryLeak"
        else:
            with pytest.raises(RetryLater) as caught:
                await built.reasoner.classify(at)
            assert caught.value.reason == "BudgetSpent"
        assert len(built.model.requests) == asked


async def test_the_budget_bounds_a_diagnosis_between_its_turns() -> None:
    """The turns of the diagnosis itself count: it stops in the middle, and says what it spent."""
    async with house(tokens_per_incident=1000) as built:
        built.model.faults.add("endless-tools", times=None)
        with pytest.raises(RetryLater) as caught:
            await built.reasoner.diagnose(scope(), ())
        assert caught.value.reason == "BudgetSpent"
        assert len(built.model.requests) == spent_on(caught.value).model_calls < 8


async def test_without_a_target_nothing_is_asked() -> None:
    """A draft without targets needs a person; no model could name one."""
    async with house() as built:
        with pytest.raises(NeedsPerson) as caught:
            await built.reasoner.draft(incident(), [])
        assert caught.value.reason == "NoTarget"
        assert not built.model.requests


async def test_what_goes_to_status_holds_the_bounds() -> None:
    """Texts beyond a field's bound are cut, and control characters and direction overrides are dropped."""
    long = "memory leak \x1b[2J\u202e" + "x" * 5000
    async with house(sources=Sources({**LEAKING, "pod_logs": long})) as built:
        answered = await built.reasoner.diagnose(scope(incident(summary="memory " + "y" * 2000)), ())
        log = answered.evidence[2]
        assert len(log.excerpt) == bounds.EXCERPT
        assert log.excerpt.startswith("memory leak [2Jxxx")
        assert log.excerpt.endswith("x…")
        assert log.truncated
