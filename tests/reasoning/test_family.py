"""Invariant 10: Qwen only, on the configured route only."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from praxis.errors import NeedsPerson
from praxis.reasoning.client import ModelClient
from praxis.reasoning.family import family_of, route_of, same_family
from praxis.settings import ModelSettings
from tests.reasoning.parts import StillClock, house, incident, settings

REMOTE = "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
LOCAL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("setting", "model"),
    [
        ("fast", "gpt-5-mini"),
        ("reasoning", "claude-opus-5"),
        ("reasoning", "deepseek-v4"),
        ("reasoning", "openai/qwen-plus"),
        ("reasoning", "not-qwen"),
        ("reasoning", "qwen plus"),
        ("reasoning", "qwen-plus\n"),
        ("reasoning", "qwen/gpt-5"),
        ("reasoning", "text-embedding-v4"),
        ("fast", ""),
        ("fast", "scripted-fast"),
        ("embedding", "text-embedding-3-large"),
        ("embedding", "scripted-embedding"),
    ],
)
def test_a_foreign_model_is_refused_at_construction(setting: str, model: str) -> None:
    """The operator does not start with it; the message names the setting to change."""
    with pytest.raises(NeedsPerson, match=f"PRAXIS_MODELS__{setting.upper()}"):
        ModelClient(
            settings=ModelSettings(**{"base_url": REMOTE, setting: model}),
            clock=StillClock(),
            registry=CollectorRegistry(),
            environment={"DASHSCOPE_API_KEY": "k"},
        )


@pytest.mark.parametrize("model", ["gpt-5-mini", "Scripted-fast", "scripted_fast"])
def test_loopback_serves_no_foreign_model_either(model: str) -> None:
    """The address is no excuse: only ids that are named scripted are accepted besides Qwen."""
    with pytest.raises(NeedsPerson, match="Qwen family"):
        route_of(settings(LOCAL, fast=model))


@pytest.mark.parametrize(
    ("changes", "base_url"),
    [
        ({}, REMOTE),
        ({"fast": "qwen/qwen3.6-flash", "reasoning": "qwen/qwen3.7-max", "embedding": "qwen/qwen3-embedding-8b"},
         "https://openrouter.ai/api/v1"),
        ({"reasoning": "Qwen/Qwen3-32B"}, "https://models.corp.example/v1"),
        ({"reasoning": "qwen3-max-2026-01-23"}, "https://ws1.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1"),
        ({"fast": "scripted-fast", "reasoning": "scripted-reasoning", "embedding": "scripted-embedding"}, LOCAL),
        ({"fast": "qwen-flash"}, LOCAL),
    ],
)  # fmt: skip
def test_qwen_is_accepted_anywhere_and_the_scripted_model_on_loopback(changes: dict[str, str], base_url: str) -> None:
    """Ids as Model Studio, OpenRouter and self-hosted servers write them."""
    assert route_of(ModelSettings(base_url=base_url, **changes)).base_url == base_url


@pytest.mark.parametrize(
    "base_url",
    [
        "http://dashscope-intl.aliyuncs.com/v1",
        "http://127.0.0.1.evil.example/v1",
        "ftp://127.0.0.1/v1",
        "dashscope-intl.aliyuncs.com",
        "https://user:secret@dashscope-intl.aliyuncs.com/v1",
        "https://dashscope-intl.aliyuncs.com/v1?key=1",
        "https://dashscope-intl.aliyuncs.com:99999/v1",
        "",
    ],
)
def test_a_base_url_that_would_leak_is_refused(base_url: str) -> None:
    """Plain http beyond loopback, credentials, queries and what is no URL; the secret is not repeated."""
    with pytest.raises(NeedsPerson, match="PRAXIS_MODELS__BASE_URL") as caught:
        route_of(ModelSettings(base_url=base_url))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("qwen3.7-max", "qwen3.7-max-2026-11-01", True),
        ("qwen/qwen3.7-max", "qwen/qwen3.7-max", True),
        ("qwen-plus", "gpt-5", False),
        ("qwen-plus", "", False),
        ("qwen-plus", "scripted-fast", False),
        ("scripted-fast", "qwen-plus", False),
        ("scripted-fast", "scripted-fast", True),
        ("text-embedding-v4", "text-embedding-v4", True),
    ],
)
def test_the_answering_model_must_be_of_the_family_that_was_asked(asked: str, answered: str, same: bool) -> None:
    """The scripted model never answers for Qwen, nor Qwen for it."""
    assert same_family(asked, answered) is same


def test_a_nameless_model_has_no_family() -> None:
    """An empty or foreign name belongs to nobody."""
    assert family_of("") is None
    assert family_of("gpt-qwen") is None


@pytest.mark.parametrize("kind", ["foreign-model", "no-model"])
async def test_a_foreign_answer_is_discarded_and_counted(kind: str) -> None:
    """It never becomes a classification; its tokens and its outcome show in the metrics."""
    async with house() as built:
        built.model.faults.add(kind)
        with pytest.raises(Exception, match="discarded" if kind == "foreign-model" else "protocol"):
            await built.reasoner.classify(incident())
        outcome = "foreign_model" if kind == "foreign-model" else "retry_later"
        labels = {"model": "scripted-fast", "operation": "classify"}
        assert built.metric("praxis_model_calls_total", **labels, outcome=outcome) == 1
        assert built.metric("praxis_model_calls_total", **labels, outcome="answered") == 0


async def test_a_foreign_embedding_is_discarded() -> None:
    """Vectors of another family would poison the memory."""
    async with house() as built:
        built.model.faults.add("foreign-model")
        with pytest.raises(Exception, match="scripted-embedding was asked and gpt-5-mini answered: discarded"):
            await built.client.embed(["x"])


@pytest.mark.parametrize(
    ("base_url", "environment", "fits"),
    [
        (REMOTE, {"DASHSCOPE_API_KEY": "k"}, True),
        (REMOTE, {"OPENROUTER_API_KEY": "k"}, False),
        (REMOTE, {"OPENAI_API_KEY": "k"}, False),
        ("https://openrouter.ai/api/v1", {"OPENROUTER_API_KEY": "k"}, True),
        ("https://openrouter.ai/api/v1", {"DASHSCOPE_API_KEY": "k"}, False),
        ("https://evilopenrouter.ai/v1", {"OPENROUTER_API_KEY": "k"}, False),
        ("https://aliyuncs.com.evil.example/v1", {"DASHSCOPE_API_KEY": "k"}, False),
        (REMOTE, {"DASHSCOPE_API_KEY": "two words"}, False),
        (LOCAL, {}, True),
    ],
)
def test_a_key_from_the_environment_goes_to_its_own_provider_only(
    base_url: str, environment: dict[str, str], fits: bool
) -> None:
    """Any other host needs a key file; the message says so."""

    def build() -> ModelClient:
        return ModelClient(
            settings=ModelSettings(base_url=base_url),
            clock=StillClock(),
            registry=CollectorRegistry(),
            environment=environment,
        )

    if fits:
        build()
    else:
        with pytest.raises(NeedsPerson, match="PRAXIS_MODELS__API_KEY_FILE"):
            build()


async def test_the_key_file_is_read_for_every_request(tmp_path: Path) -> None:
    """A rotated key is used at once; an empty or absent file needs a person."""
    path = tmp_path / "key"
    path.write_text("first\n")
    async with house(api_key_file=path) as built:
        await built.reasoner.classify(incident())
        path.write_text("second\n")
        await built.reasoner.classify(incident())
        assert [each.headers["Authorization"] for each in built.model.requests] == ["Bearer first", "Bearer second"]
        path.write_text("")
        with pytest.raises(NeedsPerson, match="is empty"):
            await built.reasoner.classify(incident())
        path.unlink()
        with pytest.raises(NeedsPerson, match="cannot be read"):
            await built.reasoner.classify(incident())
        assert len(built.model.requests) == 2


async def test_ambient_openai_settings_do_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, organisations and proxies of the environment are not sent to the configured route."""
    monkeypatch.setenv("OPENAI_API_KEY", "ambient-key")
    monkeypatch.setenv("OPENAI_ORG_ID", "ambient-org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "ambient-project")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer ambient-header")
    async with house() as built:
        await built.reasoner.classify(incident())
        assert "ambient" not in built.model.requests[0].text
