"""The scripted model as a server: its protocol, its refusals, its vectors, its labels, its admin surface."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
from openai import AsyncOpenAI

from praxis.demo.scripted.embedding import embedding
from praxis.demo.scripted.looking import next_calls
from praxis.demo.scripted.planning import wishes
from praxis.demo.scripted.reading import Observed, Shown, Task, read
from praxis.demo.scripted.signals import weighed
from praxis.demo.scripted_model import FaultKind, ScriptedModel
from praxis.evidence import arguments
from praxis.reasoning import prompts
from praxis.reasoning.quoting import block
from tests import builders
from tests.reasoning.parts import house, incident, investigated, scope

START_SECONDS = 60


def client(model: ScriptedModel) -> AsyncOpenAI:
    """The SDK as anybody would use it."""
    return AsyncOpenAI(api_key="k", base_url=model.url, max_retries=0, http_client=httpx2.AsyncClient(trust_env=False))


async def test_the_plain_sdk_can_talk_to_it() -> None:
    """Chat, models and embeddings (in the SDK's default Base64) parse in the SDK's own types."""
    async with ScriptedModel() as model, client(model) as sdk:
        answer = await sdk.chat.completions.create(
            model="scripted-fast", messages=[{"role": "user", "content": "hello"}]
        )
        assert answer.choices[0].finish_reason == "stop"
        assert "[scripted]" in str(answer.choices[0].message.content)
        assert answer.usage is not None
        assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
        assert [each.id async for each in sdk.models.list()] == [
            "scripted-fast",
            "scripted-reasoning",
            "scripted-embedding",
        ]
        vectors = await sdk.embeddings.create(model="scripted-embedding", input="memory leak")
        assert len(vectors.data[0].embedding) == 1024


async def post(model: ScriptedModel, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    """A raw request."""
    root = model.url.removesuffix("/v1")
    async with (
        aiohttp.ClientSession() as session,
        session.post(root + path, json=body, headers={"Authorization": "Bearer k", **headers}) as response,
    ):
        return response.status, await response.json()


CHAT: dict[str, Any] = {"model": "scripted-fast", "messages": [{"role": "user", "content": "hello"}]}


@pytest.mark.parametrize(
    ("path", "changes", "status", "code"),
    [
        ("/v1/chat/completions", {"model": "qwen-plus"}, 404, "model_not_found"),
        ("/v1/chat/completions", {"model": "scripted-embedding"}, 404, "model_not_found"),
        ("/v1/chat/completions", {"messages": []}, 400, "invalid_parameter_error"),
        ("/v1/chat/completions", {"stream": True}, 400, "invalid_parameter_error"),
        ("/v1/chat/completions", {"response_format": {"type": "json_object"}}, 400, "invalid_parameter_error"),
        (
            "/v1/chat/completions",
            {"enable_thinking": True, "tool_choice": "required"},
            400,
            "invalid_parameter_error",
        ),
        ("/v1/embeddings", {"model": "scripted-embedding", "input": ["x"] * 11}, 400, "invalid_parameter_error"),
        ("/v1/embeddings", {"model": "scripted-embedding", "input": ""}, 400, "invalid_parameter_error"),
        (
            "/v1/embeddings",
            {"model": "scripted-embedding", "input": "x", "dimensions": 512},
            400,
            "invalid_parameter_error",
        ),
        ("/admin/faults", {"kind": "unheard-of"}, 400, "invalid_parameter_error"),
    ],
)
async def test_it_refuses_as_model_studio_does(path: str, changes: dict[str, Any], status: int, code: str) -> None:
    """Statuses and error documents; it never answers as Qwen."""
    async with ScriptedModel() as model:
        got, document = await post(model, path, {**CHAT, **changes})
        assert (got, document["error"]["code"]) == (status, code)


async def test_it_wants_a_key() -> None:
    """Any key, but one."""
    async with ScriptedModel() as model:
        status, document = await post(model, "/v1/chat/completions", CHAT, Authorization="")
        assert (status, document["error"]["code"]) == (401, "invalid_api_key")


async def test_faults_are_queued_and_released_over_http() -> None:
    """The admin surface does what the Python one does."""
    async with ScriptedModel() as model:
        status, document = await post(model, "/admin/faults", {"kind": "throttle", "times": 2, "after": 3})
        assert (status, document) == (201, {"waiting": 1})
        assert (await post(model, "/v1/chat/completions", CHAT))[0] == 429
        assert model.faults.waiting[0].times == 1
        async with aiohttp.ClientSession() as session:
            async with session.delete(model.url.removesuffix("/v1") + "/admin/faults") as response:
                assert response.status == 200
            async with session.get(model.url.removesuffix("/v1") + "/admin/requests") as response:
                assert (await response.json())[0]["path"] == "/v1/chat/completions"
        assert (await post(model, "/v1/chat/completions", CHAT))[0] == 200


async def test_every_text_it_writes_is_marked() -> None:
    """Nobody can take an answer for a language model's."""
    async with house() as built:
        classified = (await built.reasoner.classify(incident())).answer
        at = await investigated(built, incident())
        plan = (await built.reasoner.draft(at, [builders.target()])).answer
        assert at.status.diagnosis is not None
        texts = [
            classified.summary,
            at.status.diagnosis.summary,
            *(claim.text for claim in at.status.diagnosis.claims),
            plan.summary,
            plan.rationale,
            *(action.rollback for action in plan.actions),
        ]
        assert [text[:10] for text in texts] == ["[scripted]"] * len(texts)


def similarity(left: str, right: str) -> float:
    """Cosine of two texts' vectors."""
    return sum(a * b for a, b in zip(embedding(left), embedding(right), strict=True))


def test_a_recurrence_is_near_and_another_kind_is_far() -> None:
    """Numbers, times and pod names differ between occurrences; the words do not."""
    leak = (
        "MemoryLeak (critical) of checkout alert alertname=MemoryHigh service=checkout memory of checkout is at 1.9 GiB"
    )
    again = (
        "MemoryLeak (critical) of checkout alert alertname=MemoryHigh service=checkout memory of checkout is at 2.3 GiB"
    )
    other = (
        "TrafficSpike (medium) of search alert alertname=RequestFlood service=search 2000 requests per second arrive"
    )
    assert similarity(leak, again) > 0.95
    assert similarity(leak, leak.replace("checkout", "cart")) > 0.5
    assert similarity(leak, other) < 0.45


@pytest.mark.parametrize("text", ["", "1234 5678", "…", "x"])
def test_a_text_without_words_still_has_a_unit_vector(text: str) -> None:
    """Never all zero, which has no direction."""
    assert sum(each * each for each in embedding(text)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("correction", "vetoed", "wanted"),
    [
        ("no scaling", {"scale_service"}, ()),
        ("please don't restart the function", {"restart_function"}, ()),
        ("restart instead of scaling", {"scale_service"}, ("restart_function",)),
        ("scale to 6", set(), ("scale_service",)),
        ("do not change the configuration, roll back", {"update_config"}, ("rollback_deploy",)),
        ("looks good", set(), ()),
    ],
)
def test_corrections_are_read(correction: str, vetoed: set[str], wanted: tuple[str, ...]) -> None:
    """What is ruled out and what is asked for."""
    wish = wishes([correction])
    assert (wish.vetoed, wish.wanted) == (frozenset(vetoed), wanted)


def test_it_fills_in_the_arguments_of_the_real_tools() -> None:
    """Every tool of the operator's own toolbox is called with arguments that hold its schema, pods before logs."""
    kinds: dict[str, type[arguments.Arguments]] = {
        "list_events": arguments.ListEvents,
        "list_pods": arguments.ListPods,
        "pod_logs": arguments.PodLogs,
        "list_workloads": arguments.ListWorkloads,
        "prometheus_query": arguments.PrometheusQuery,
        "prometheus_query_range": arguments.PrometheusQueryRange,
        "function_status": arguments.FunctionStatus,
    }
    tools = [
        {"type": "function", "function": {"name": name, "parameters": kind.schema_for_model()}}
        for name, kind in kinds.items()
    ]
    messages = prompts.diagnose(incident(), scope().targets, ())
    first = next_calls(read({"messages": messages, "tools": tools}))
    assert {name for name, _ in first} == kinds.keys() - {"pod_logs"}
    for name, written in first:
        kinds[name].model_validate_json(written)
    assert dict(first)["function_status"] == '{"target": "checkout-fn"}'
    seen = {
        "id": "e1",
        "tool": "list_pods",
        "query": "",
        "excerpt": "checkout-7d9f8b6c5d-x2x4z phase=Running",
        "truncated": False,
    }
    done = [{"function": {"name": name, "arguments": written}} for name, written in first]
    messages += [
        {"role": "assistant", "content": "", "tool_calls": done},
        {"role": "tool", "tool_call_id": "1", "content": "Observation e1:\n" + block("observation", seen)},
    ]
    second = next_calls(read({"messages": messages, "tools": tools}))
    assert second == [("pod_logs", '{"pod": "checkout-7d9f8b6c5d-x2x4z"}')]


@pytest.mark.parametrize(
    "body", [{}, {"messages": 7}, {"messages": [{"role": "system", "content": "Task: dance"}]}, {"tools": [3]}]
)
def test_odd_requests_are_read_as_nothing(body: dict[str, Any]) -> None:
    """What cannot be read is not there; nothing crashes."""
    assert read(body).task == "unknown"


def test_every_kind_of_fault_is_known_by_its_word() -> None:
    """The words of the admin surface, once."""
    assert len(set(FaultKind)) == len(FaultKind)
    assert FaultKind("obey-injection") is FaultKind.OBEY_INJECTION


def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """The port file names the port once it listens; SIGTERM ends it with 0."""
    port_file = tmp_path / "port"
    command = [
        sys.executable,
        "-c",
        "from praxis.cli import main; main()",
        "scripted-model",
        "--port-file",
        str(port_file),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said.startswith("The scripted model (scripted-fast, scripted-reasoning, scripted-embedding) listens")
            port = int(port_file.read_text())
            assert f"http://127.0.0.1:{port}/v1" in said
            listed = httpx2.get(f"http://127.0.0.1:{port}/v1/models", trust_env=False, timeout=START_SECONDS)
            assert json.loads(listed.text)["data"][0]["owned_by"] == "scripted"
        finally:
            process.terminate()
        assert process.wait(START_SECONDS) == 0


def test_events_of_another_service_are_no_evidence() -> None:
    """The Events of a namespace are of all that runs there."""
    events = (
        "12:00 Warning Killing Pod/checkout-7d-x out of memory\n"
        "12:01 Warning HandlerPanics Deployment/payments-edge x9 panic: pool exhausted; panic: payments keeps crashing"
    )
    shown = Shown(
        task=Task.DIAGNOSE,
        blocks={"incident": {"alerts": [{"labels": {"service": "checkout"}}]}},
        observations=(Observed("e1", "kubernetes_events", "", events),),
        tools={},
        called=frozenset(),
    )
    finding = weighed(shown, with_evidence=True)
    assert (finding.category, [each.id for each in finding.cited]) == ("OutOfMemory", ["e1"])
