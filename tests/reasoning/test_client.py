"""The model client: embeddings, metrics, prices, and the requests it writes."""

from __future__ import annotations

import math
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from praxis.api.bounds import EMBEDDING_DIMENSIONS
from praxis.errors import InvalidAnswer, RetryLater
from praxis.reasoning.client import EMBEDDING_CHARACTERS, EMBEDDING_ROWS
from praxis.reasoning.family import Provider
from praxis.reasoning.features import Features, body_of
from praxis.reasoning.metering import ModelMetrics, Operation, Tokens
from praxis.reasoning.prices import cost_micro_usd
from praxis.reasoning.protocol import ChatRequest, Schema, WireUsage
from tests.reasoning.parts import TOOLS, house, incident


@pytest.mark.parametrize(
    ("rows", "batches"),
    [
        (0, []),
        (1, [1]),
        (EMBEDDING_ROWS, [EMBEDDING_ROWS]),
        (EMBEDDING_ROWS + 1, [EMBEDDING_ROWS, 1]),
        (2 * EMBEDDING_ROWS + 5, [EMBEDDING_ROWS, EMBEDDING_ROWS, 5]),
    ],
)
async def test_texts_are_embedded_in_batches_and_in_order(rows: int, batches: list[int]) -> None:
    """At most ten rows a request; the vectors come back in the order of the texts."""
    async with house() as built:
        texts = [f"incident {'abcdefghijklmnopqrstuvwxyz'[number]}" for number in range(rows)]
        vectors = await built.client.embed(texts)
        assert [len(body["input"]) for body in built.bodies()] == batches
        assert len(vectors) == rows
        if rows:
            assert vectors[-1] == (await built.client.embed(texts[-1:]))[0]


@pytest.mark.parametrize("length", [EMBEDDING_CHARACTERS - 1, EMBEDDING_CHARACTERS, EMBEDDING_CHARACTERS + 1])
async def test_a_long_text_is_cut_to_what_the_model_takes(length: int) -> None:
    """One row is at most 8,192 tokens, which 8,000 characters never exceed."""
    async with house() as built:
        await built.client.embed(["x" * length])
        assert len(built.bodies()[0]["input"][0]) == min(length, EMBEDDING_CHARACTERS)


async def test_an_empty_text_still_has_a_vector() -> None:
    """The service refuses empty rows; the memory need not know."""
    async with house() as built:
        vector = (await built.client.embed(["  "]))[0]
        assert len(vector) == EMBEDDING_DIMENSIONS


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("short-vector", InvalidAnswer, "512 dimensions, not 1024"),
        ("missing-vector", InvalidAnswer, "2 embeddings were asked for, 1 came"),
        ("server-error", RetryLater, "500"),
        ("drop", RetryLater, "could not be reached"),
        ("html", RetryLater, "no JSON"),
    ],
)
async def test_embeddings_that_do_not_hold_are_refused(kind: str, error: type[Exception], text: str) -> None:
    """A vector of the wrong length never reaches a store."""
    async with house() as built:
        built.model.faults.add(kind)
        with pytest.raises(error, match=text):
            await built.client.embed(["a", "b"])


async def test_vectors_have_length_one_and_the_agreed_dimensions() -> None:
    """1024 finite floats, asked for as floats and not as Base64."""
    async with house() as built:
        vector = (await built.client.embed(["memory of checkout grows"]))[0]
        assert len(vector) == 1024
        assert math.isclose(sum(each * each for each in vector), 1.0)
        assert built.bodies()[0]["encoding_format"] == "float"
        assert built.bodies()[0]["dimensions"] == 1024


@pytest.mark.parametrize(
    ("model", "tokens", "cost"),
    [
        ("qwen3.7-max", (1_000_000, 0, 0), 2_500_000),
        ("qwen3.7-max", (1_000_000, 1_000_000, 0), 500_000),
        ("qwen3.7-max", (0, 0, 1_000_000), 7_500_000),
        ("qwen/qwen3.7-max", (100, 50, 10), 225),
        ("qwen3.7-max-2026-11-01", (100, 0, 0), 250),
        ("qwen-flash", (256_000, 0, 0), 12_800),
        ("qwen-flash", (256_001, 0, 0), 64_001),
        ("qwen-flash", (1, 0, 0), 1),
        ("text-embedding-v4", (1000, 0, 0), 70),
        ("qwen-plus", (1000, 0, 0), None),
        ("scripted-fast", (1000, 0, 0), None),
    ],
)
def test_what_a_call_costs(model: str, tokens: tuple[int, int, int], cost: int | None) -> None:
    """Millionths of a dollar by the list, rounded up, by band; an unlisted model has no price."""
    sent, cached, received = tokens
    assert cost_micro_usd(model, input_tokens=sent, cached_tokens=cached, output_tokens=received) == cost


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 20}, Tokens(100, 20, 0, 0)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 64, "cache_creation_input_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 11},
            },
            Tokens(100, 20, 64, 11),
        ),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 99}}, Tokens(10, 0, 10, 0)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": None}}, Tokens(10, 0, 0, 0)),
    ],
)
def test_usage_is_read_as_the_services_report_it(usage: dict[str, Any], tokens: Tokens) -> None:
    """Cached and reasoning tokens are part of input and output, and never more than those."""
    assert WireUsage.model_validate(usage).tokens() == tokens


async def test_metrics_begin_at_zero_and_count_calls_and_tokens() -> None:
    """Every series of a configured model is there before the first call."""
    async with house() as built:
        labels = {"model": "scripted-reasoning", "operation": "draft", "outcome": "retry_later"}
        assert built.registry.get_sample_value("praxis_model_calls_total", labels) == 0
        await built.reasoner.classify(incident())
        labels = {"model": "scripted-fast", "operation": "classify", "outcome": "answered"}
        assert built.metric("praxis_model_calls_total", **labels) == 1
        assert (
            built.metric("praxis_model_call_duration_seconds_count", model="scripted-fast", operation="classify") == 1
        )
        assert built.metric("praxis_model_tokens_total", model="scripted-fast", direction="output") > 0


def test_money_is_counted_in_dollars() -> None:
    """Prometheus' base unit for money in the metric's name."""
    registry = CollectorRegistry()
    ModelMetrics(registry).spent("qwen3.7-max", Tokens(100, 10), 325)
    assert registry.get_sample_value("praxis_model_cost_usd_total", {"model": "qwen3.7-max"}) == 0.000325
    assert b"praxis_model_cost_usd_total" in generate_latest(registry)


def request(**changes: Any) -> ChatRequest:
    """A request with everything in it."""
    fields: dict[str, Any] = {
        "model": "qwen3.7-max",
        "operation": Operation.DIAGNOSE,
        "messages": [],
        "tools": TOOLS[:1],
        "schema": Schema("plan", {"type": "object"}),
        "thinking": True,
    }
    return ChatRequest(**{**fields, **changes})


def test_the_request_that_model_studio_gets() -> None:
    """Thinking is always said, tool_choice is auto, the schema is strict, the answer is bounded."""
    assert body_of(request(), Features().shape(request()), Provider.MODEL_STUDIO, 4096) == {
        "model": "qwen3.7-max",
        "max_tokens": 4096,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "list_pods",
                    "description": "Pods of the namespace.",
                    "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
                },
            }
        ],
        "tool_choice": "auto",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "plan", "strict": True, "schema": {"type": "object"}},
        },
        "extra_body": {"enable_thinking": True},
    }


def test_the_request_that_openrouter_gets() -> None:
    """No parameter may be dropped in silence, no data collected; thinking has another name."""
    asked = request(tools=(), schema=None, thinking=False)
    assert body_of(asked, Features().shape(asked), Provider.OPENROUTER, 4096) == {
        "model": "qwen3.7-max",
        "max_tokens": 4096,
        "extra_body": {
            "reasoning": {"enabled": False},
            "provider": {"require_parameters": True, "data_collection": "deny"},
        },
    }


def test_the_ladder_ends() -> None:
    """json_schema, json_object, plain text, and then nothing is left to give up; thinking is given up once."""
    features, asked = Features(), request()
    given_up = [features.give_up(asked, features.shape(asked), "invalid_parameter response_format") for _ in range(3)]
    assert given_up == ["json_schema", "json_object", None]
    assert features.give_up(asked, features.shape(asked), "enable_thinking must be false") == "thinking"
    assert features.shape(asked).thinking is False
    assert features.give_up(asked, features.shape(asked), "enable_thinking must be true") is None
    other = request(model="qwen-plus")
    assert features.shape(other).rung == "json_schema"
