"""What is recorded of a model run: every exchange as it was, before its answer is given out."""

from __future__ import annotations

from typing import Any

import pytest

from praxis.errors import InvalidAnswer, NeedsPerson, RetryLater
from praxis.reasoning import prompts
from praxis.reasoning.contract import spent_on
from praxis.recorder.contract import Record
from tests import builders
from tests.reasoning.parts import LEAKING, House, Sources, house, incident, investigated, scope

UID = builders.INCIDENT_UID


def runs(built: House) -> list[Any]:
    """The documents of the recorded runs."""
    return [each.document for each in built.records.kept.values() if each.kind == "ModelRun"]


def conversation(run: Any, exchange: int) -> list[Any]:
    """The messages of one exchange, as they were sent."""
    return [run["messages"][number] for number in run["exchanges"][exchange]["input"]]


async def test_a_classification_names_its_recorded_run() -> None:
    """The digest is that of a record that is stored already, with the model's own words and OpenTelemetry's names."""
    async with house() as built:
        answered = await built.reasoner.classify(incident())
        run = await built.records.get(UID, str(answered.answer.run))
        assert run is not None
        assert answered.run == answered.answer.run == run.digest
        document = run.document
        assert (document["incidentUid"], document["operation"]) == (UID, "classify")
        assert document["promptVersion"] == prompts.VERSION
        [exchange] = document["exchanges"]
        assert exchange["attributes"] == {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "model-studio",
            "gen_ai.request.model": "scripted-fast",
            "gen_ai.request.max_tokens": 16384,
            "gen_ai.response.model": "scripted-fast",
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.usage.input_tokens": answered.usage.input_tokens,
            "gen_ai.usage.output_tokens": answered.usage.output_tokens,
            "server.address": "127.0.0.1",
        }
        assert exchange["parameters"]["response_format"]["type"] == "json_schema"
        assert (exchange["attempt"], exchange["tools"]) == (1, [])
        assert exchange["startTime"] == exchange["endTime"] == "2026-01-31T12:00:00.000000Z"
        assert answered.answer.summary in exchange["output"]["choices"][0]["message"]["content"]


async def test_messages_are_recorded_as_they_were_sent() -> None:
    """Each turn of a diagnosis as the model got it, tools and their results too, and each message once."""
    async with house() as built:
        answered = await built.reasoner.diagnose(scope(), ())
        [run] = runs(built)
        assert [conversation(run, each) for each in range(3)] == [body["messages"] for body in built.bodies()]
        assert [each["name"] for each in run["tools"]] == ["list_pods", "pod_logs", "function_status"]
        assert run["exchanges"][0]["tools"] == ["list_pods", "pod_logs", "function_status"]
        assert len(run["messages"]) == len(built.bodies()[-1]["messages"])
        results = [each for each in run["messages"] if each["role"] == "tool"]
        assert LEAKING["pod_logs"].splitlines()[1] in results[-1]["content"]
        evidence = [each for each in built.records.kept.values() if each.kind == "Evidence"]
        assert [each.document for each in evidence] == [[each.dump() for each in answered.evidence]]


async def test_a_plan_is_given_out_with_its_run() -> None:
    """The draft's run is recorded under the digest that the plan will carry."""
    async with house() as built:
        at = await investigated(built, incident())
        answered = await built.reasoner.draft(at, [builders.target()])
        run = await built.records.get(UID, str(answered.run))
        assert run is not None
        assert run.document["operation"] == "draft"


async def test_a_repair_turn_is_an_attempt_of_the_run() -> None:
    """What was asked and did not hold is recorded beside what did."""
    async with house() as built:
        built.model.faults.add("foreign-evidence", times=2)
        await built.reasoner.diagnose(scope(), ())
        [run] = runs(built)
        assert [each["attempt"] for each in run["exchanges"]] == [1, 2, 3, 4, 5]
        assert "there is no evidence 'e99'" in conversation(run, 4)[-1]["content"]
        assert ["e99" in str(each["output"]) for each in run["exchanges"]] == [False, False, True, True, False]


async def test_a_run_that_came_to_nothing_is_recorded() -> None:
    """Also when the answer never held: with every answer, and the error of a request that failed."""
    async with house() as built:
        built.model.faults.add("foreign-evidence", times=None)
        with pytest.raises(InvalidAnswer) as caught:
            await built.reasoner.diagnose(scope(), ())
        assert spent_on(caught.value).model_calls == 5
        [run] = runs(built)
        assert len(run["exchanges"]) == 5
    async with house(url="http://127.0.0.1:9/v1") as built:
        with pytest.raises(RetryLater):
            await built.reasoner.classify(incident())
        [run] = runs(built)
        assert [each["error"]["error.type"] for each in run["exchanges"]] == ["RetryLater"]
        assert "output" not in run["exchanges"][0]


async def test_no_model_is_asked_while_nothing_can_be_recorded() -> None:
    """It costs nothing to wait: the recorder's own words say what to do."""
    async with house() as built:
        for ask in (
            lambda: built.reasoner.classify(incident()),
            lambda: built.reasoner.diagnose(scope(), ()),
            lambda: built.reasoner.draft(incident(), [builders.target()]),
        ):
            built.records.errors.append(NeedsPerson("the flight recorder: its disk is full: free space there"))
            with pytest.raises(NeedsPerson, match="disk is full"):
                await ask()
        assert built.bodies() == []


async def test_an_answer_that_cannot_be_recorded_is_not_given_out() -> None:
    """The recorder fails between question and answer: the tokens count, the answer does not."""
    async with house() as built:
        put = built.records.put
        refusals = [RetryLater("the flight recorder is busy")]

        async def refused(records: list[Record]) -> None:
            if refusals:
                raise refusals.pop()
            await put(records)

        built.records.put = refused  # type: ignore[method-assign,assignment]
        with pytest.raises(RetryLater, match="flight recorder is busy") as caught:
            await built.reasoner.classify(incident())
        assert spent_on(caught.value).model_calls == 1


async def test_secrets_in_answers_and_results_are_not_recorded() -> None:
    """Whatever a tool shows or a model repeats."""
    token = "ghp_" + "a1B2" * 9
    async with house(sources=Sources({**LEAKING, "pod_logs": f"heap leak; git clone with {token}"})) as built:
        await built.reasoner.diagnose(scope(), ())
        kept = b"".join(each.content for each in built.records.kept.values())
        assert token.encode() not in kept
        assert b"[REDACTED:github-token]" in kept
