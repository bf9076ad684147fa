"""The bounds of the tool loop, at, below and above."""

from __future__ import annotations

from typing import Any

import pytest

from praxis.api import bounds
from praxis.errors import InvalidAnswer
from praxis.evidence.contract import ToolSpec
from praxis.reasoning import prompts
from praxis.reasoning.investigation import CALLS_PER_TURN, Investigation
from praxis.reasoning.metering import Ledger, Operation
from praxis.reasoning.protocol import Message, ToolCall
from praxis.reasoning.structured import Session
from tests.reasoning.parts import LEAKING, House, Sources, house, scope


def tools_offered(body: dict[str, Any]) -> bool:
    """Whether a request offers tools."""
    return bool(body.get("tools"))


@pytest.mark.parametrize("turns", [1, 2, 3])
async def test_tools_are_withdrawn_after_the_last_turn(turns: int) -> None:
    """A model that never stops calling is asked for its answer without tools, in the structured form."""
    async with house(tool_turns=turns) as built:
        built.model.faults.add("endless-tools", times=turns)
        answered = await built.reasoner.diagnose(scope(), ())
        assert [tools_offered(body) for body in built.bodies()] == [True] * turns + [False]
        assert built.bodies()[-1]["response_format"]["json_schema"]["name"] == "diagnosis"
        assert built.bodies()[-1]["enable_thinking"] is False
        assert len(answered.evidence) == turns


async def test_a_model_that_calls_tools_when_none_are_offered_fails() -> None:
    """Endless calls end in one repair turn and InvalidAnswer; nothing was called beyond the turns."""
    async with house(tool_turns=2) as built:
        built.model.faults.add("endless-tools", times=None)
        with pytest.raises(InvalidAnswer, match="the answer is empty"):
            await built.reasoner.diagnose(scope(), ())
        assert len(built.model.requests) == 2 + 2
        assert len(built.sources.calls) == 2


async def test_a_model_that_is_done_answers_in_the_form_at_once() -> None:
    """Fewer turns than allowed: no further request is made."""
    async with house(tool_turns=8) as built:
        await built.reasoner.diagnose(scope(), ())
        assert [tools_offered(body) for body in built.bodies()] == [True, True, True]


@pytest.mark.parametrize("count", [CALLS_PER_TURN - 1, CALLS_PER_TURN, CALLS_PER_TURN + 1])
async def test_calls_of_one_turn_are_bounded(count: int) -> None:
    """Every call gets a result, as the protocol wants; those beyond the bound say that they were not made."""
    tools = tuple(ToolSpec(f"look{number}", "Look.", {"type": "object", "properties": {}}) for number in range(count))
    texts = {tool.name: "memory leak" for tool in tools}
    async with house(sources=Sources(texts, tools=tools), tool_turns=1) as built:
        calls = [{"id": f"c{n}", "name": tool.name} for n, tool in enumerate(tools)]
        results = await observe(built, calls)
        made = min(count, CALLS_PER_TURN)
        assert [each["content"].startswith("Observation ") for each in results] == [True] * made + [False] * (
            count - made
        )
        assert len(built.sources.calls) == made


@pytest.mark.parametrize("already", [bounds.EVIDENCE - 2, bounds.EVIDENCE - 1, bounds.EVIDENCE])
async def test_observations_are_bounded(already: int) -> None:
    """With room for two, one or none, of two calls so many are made."""
    async with house() as built:
        investigation = make(built)
        for number in range(already):
            await investigation._observe([call(f"c{number}", "list_pods", f'{{"n": {number}}}')])
        before = len(built.sources.calls)
        results = await investigation._observe([call("x", "list_pods", "{}"), call("y", "function_status", "{}")])
        room = bounds.EVIDENCE - already
        assert len(built.sources.calls) - before == room
        assert len(investigation.evidence) == bounds.EVIDENCE
        assert investigation.evidence[-1].id == f"e{bounds.EVIDENCE}"
        assert [each["content"].startswith("error: 24 observations") for each in results] == [False] * room + [True] * (
            2 - room
        )


async def test_the_loop_ends_when_the_evidence_is_full() -> None:
    """After the last observation that fits, the model must conclude, whatever turns are left."""
    tools = tuple(ToolSpec(f"look{n}", "Look.", {"type": "object", "properties": {}}) for n in range(30))
    async with house(sources=Sources({each.name: "memory leak" for each in tools}, tools=tools), tool_turns=8) as built:
        answered = await built.reasoner.diagnose(scope(), ())
        assert len(answered.evidence) == bounds.EVIDENCE
        assert [tools_offered(body) for body in built.bodies()] == [True, True, True, False]


async def test_the_same_call_is_made_once() -> None:
    """A repeated call is answered with a reference to the first, also within one turn."""
    async with house() as built:
        investigation = make(built)
        results = await investigation._observe([call("a", "list_pods", "{}"), call("b", "list_pods", "{}")])
        assert len(built.sources.calls) == 1
        assert results[1]["content"] == "error: the same call was answered already, see e1"
        assert [each["tool_call_id"] for each in results] == ["a", "b"]


async def test_an_unknown_tool_is_an_error_observation() -> None:
    """A model that asks for a shell learns that there is none; nothing runs, and the diagnosis goes on."""
    async with house() as built:
        built.model.faults.add("unknown-tool")
        answered = await built.reasoner.diagnose(scope(), ())
        assert answered.evidence[0].tool == "shell"
        assert answered.evidence[0].excerpt == "error: there is no tool shell"
        assert answered.answer.summary.startswith("[scripted] checkout leaks memory")


async def test_a_claim_on_evidence_that_does_not_exist_is_repaired() -> None:
    """The repair turn names the id and those that exist; the second answer cites real evidence."""
    async with house(tool_turns=1) as built:
        built.model.faults.add("endless-tools")
        built.model.faults.add("foreign-evidence")
        answered = await built.reasoner.diagnose(scope(), ())
        problem = built.bodies()[-1]["messages"][-1]["content"]
        assert "claims.0.evidence: there is no evidence 'e99'; there is: e1" in problem
        assert all(cited == "e1" for claim in answered.answer.claims for cited in claim.evidence)


async def test_a_claim_on_evidence_that_does_not_exist_never_reaches_status() -> None:
    """When the repair does not hold either, the diagnosis is refused."""
    async with house() as built:
        built.model.faults.add("foreign-evidence", times=None)
        with pytest.raises(InvalidAnswer, match="there is no evidence 'e99'"):
            await built.reasoner.diagnose(scope(), ())


async def test_unreadable_sources_give_a_diagnosis_of_low_confidence() -> None:
    """Every source failing is no outage of the model: the diagnosis says what it rests on."""
    failing = dict.fromkeys(LEAKING, "error: connection refused")
    async with house(sources=Sources(failing)) as built:
        answered = await built.reasoner.diagnose(scope(), ())
        assert answered.answer.confidence == "low"
        assert "This rests on the alerts alone" in answered.answer.summary


def make(built: House) -> Investigation:
    """An investigation that has not begun."""
    at = scope()
    return Investigation(
        session=Session(
            client=built.client,
            ledger=Ledger.of(at.incident, 10_000),
            model="scripted-reasoning",
            operation=Operation.DIAGNOSE,
        ),
        toolbox=built.sources,
        clock=built.clock,
        scope=at,
        turns=8,
        messages=prompts.diagnose(at.incident, at.targets, ()),
    )


def call(id_: str, name: str, arguments: str) -> ToolCall:
    """A tool call."""
    return ToolCall(id=id_, name=name, arguments=arguments)


async def observe(built: House, calls: list[dict[str, str]]) -> list[Message]:
    """The results of one turn's calls."""
    return await make(built)._observe([call(each["id"], each["name"], "{}") for each in calls])
