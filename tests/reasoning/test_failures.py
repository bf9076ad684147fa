"""Every failure shape, over a real socket, lands where somebody can do something about it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx2
import openai
import pytest

from praxis.errors import InvalidAnswer, NeedsPerson, PraxisError, RetryLater
from praxis.reasoning.failures import Fault, ParameterRefused, Throttled, in_body, mapped, of_fault
from tests.reasoning.parts import house, incident, scope

SHAPES = [
    ("server-error", RetryLater, "the model service failed (500 internal_error", 1),
    ("drop", RetryLater, "the model could not be reached", 1),
    ("html", RetryLater, "answered with no JSON", 1),
    ("huge", RetryLater, "exceeds 8388608 bytes", 1),
    ("no-choices", RetryLater, "does not hold the protocol: choices", 1),
    ("error-in-body", RetryLater, "the model service failed (502: Provider returned error)", 1),
    ("unauthorized", NeedsPerson, "PRAXIS_MODELS__API_KEY_FILE", 1),
    ("arrearage", NeedsPerson, "no balance or quota", 1),
    ("redirect", NeedsPerson, "which is not followed", 1),
    ("data-inspection", InvalidAnswer, "content filter refused the request", 1),
    ("content-filter", InvalidAnswer, "the model did not answer: content filter", 1),
    ("refusal", InvalidAnswer, "I will not answer that", 1),
    ("too-long", InvalidAnswer, "too long for the model", 1),
    ("invalid-json", InvalidAnswer, "is not one JSON document", 2),
    ("duplicate-key", InvalidAnswer, "a key stands twice", 2),
    ("wrong-schema", InvalidAnswer, "category: Field required", 2),
    ("empty", InvalidAnswer, "the answer is empty", 2),
    ("cut", InvalidAnswer, "cut off at the output limit", 2),
    ("throttle", RetryLater, "throttles (429 Throttling.RateQuota", 4),
]


@pytest.mark.parametrize(("kind", "error", "text", "sent"), SHAPES, ids=[shape[0] for shape in SHAPES])
async def test_each_failure_has_its_consequence(kind: str, error: type[PraxisError], text: str, sent: int) -> None:
    """Who can act, what is said, and how often it was sent: nothing in silence, an answer is repaired once."""
    async with house() as built:
        built.model.faults.add(kind, times=None)
        with pytest.raises(error) as caught:
            await built.reasoner.classify(incident())
        assert text in str(caught.value)
        assert len(built.model.requests) == sent


@pytest.mark.parametrize("kind", ["invalid-json", "wrong-schema", "empty", "cut", "duplicate-key"])
async def test_one_repair_turn_quotes_what_was_wrong(kind: str) -> None:
    """An answer that does not hold is asked for again with the literal error, and then holds."""
    async with house() as built:
        built.model.faults.add(kind)
        answered = await built.reasoner.classify(incident())
        assert answered.answer.category == "MemoryLeak"
        assert answered.usage.model_calls == 2
        repair = built.bodies()[1]["messages"][-1]["content"]
        assert repair.startswith('Your answer does not hold:\n<data name="problem">')
        assert built.metric("praxis_model_repair_turns_total", model="scripted-fast", operation="classify") == 1


async def test_a_fenced_answer_is_read() -> None:
    """Models fence JSON out of habit; that costs no repair turn."""
    async with house() as built:
        built.model.faults.add("fenced-json")
        assert (await built.reasoner.classify(incident())).usage.model_calls == 1


async def test_an_answer_without_usage_is_estimated() -> None:
    """A server that reports no tokens does not evade the budget."""
    async with house() as built:
        built.model.faults.add("no-usage")
        usage = (await built.reasoner.classify(incident())).usage
        assert usage.input_tokens > 500
        assert usage.output_tokens > 50


async def test_a_throttle_is_waited_out_as_long_as_the_service_says() -> None:
    """Nothing was spent, so the request is sent again after the named time, and the incident notices nothing."""
    async with house() as built:
        built.model.faults.add("throttle", times=2, after=7)
        assert (await built.reasoner.classify(incident())).usage.model_calls == 1
        assert built.clock.slept == [7.0, 7.0]
        labels = {"model": "scripted-fast", "operation": "classify"}
        assert built.metric("praxis_model_calls_total", **labels, outcome="retry_later") == 2


@pytest.mark.parametrize(("after", "slept"), [(None, [2.0, 4.0, 8.0]), (20, [20.0] * 3), (21, [])])
async def test_patience_with_a_throttle_is_bounded(after: float | None, slept: list[float]) -> None:
    """Three times, with growing pauses where none is named; a longer pause is handed on instead."""
    async with house() as built:
        built.model.faults.add("throttle", times=None, after=after)
        with pytest.raises(RetryLater) as caught:
            await built.reasoner.classify(incident())
        assert built.clock.slept == slept
        assert caught.value.after == after


async def test_a_model_that_hangs_is_left_at_the_timeout() -> None:
    """The whole call has a deadline, whatever trickles in."""
    async with house(timeout=0.2) as built:
        built.model.faults.add("hang")
        with pytest.raises(RetryLater, match="did not answer in time"):
            await built.reasoner.classify(incident())


async def test_cancelling_a_call_is_counted_and_leaves_nothing() -> None:
    """A cancelled call stays cancelled and shows as such."""
    async with house() as built:
        built.model.faults.add("hang")
        task = asyncio.create_task(built.reasoner.classify(incident()))
        await built.model.hanging.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        labels = {"model": "scripted-fast", "operation": "classify"}
        assert built.metric("praxis_model_calls_total", **labels, outcome="cancelled") == 1


@pytest.mark.parametrize(
    ("kind", "forms", "fallbacks"),
    [
        ("no-json-schema", ["json_schema", "json_object"], {"json_schema": 1}),
        ("no-response-format", ["json_schema", "json_object", None], {"json_schema": 1, "json_object": 1}),
    ],
)
async def test_a_rung_that_a_model_refuses_is_not_tried_again(
    kind: str, forms: list[str | None], fallbacks: dict[str, int]
) -> None:
    """The ladder goes down on 400 invalid_parameter, and the next request starts where the last one held."""
    async with house() as built:
        built.model.faults.add(kind, times=None)
        await built.reasoner.classify(incident())
        await built.reasoner.classify(incident())
        sent = [(body.get("response_format") or {}).get("type") for body in built.bodies()]
        assert sent == [*forms, forms[-1]]
        for feature, times in fallbacks.items():
            assert built.metric("praxis_model_fallbacks_total", model="scripted-fast", feature=feature) == times


async def test_a_model_that_refuses_thinking_is_asked_without() -> None:
    """Older models refuse thinking without streaming: remembered, and the ladder of formats stays where it is."""
    async with house() as built:
        built.model.faults.add("no-thinking", times=None)
        await built.reasoner.diagnose(scope(), ())
        assert [body["enable_thinking"] for body in built.bodies()] == [True, False, False, False]
        assert built.metric("praxis_model_fallbacks_total", model="scripted-reasoning", feature="thinking") == 1


async def test_redirects_are_not_followed() -> None:
    """The key and the prompt stay on the configured route."""
    async with house() as built:
        built.model.faults.add("redirect")
        with pytest.raises(NeedsPerson):
            await built.reasoner.classify(incident())
        assert [each.path for each in built.model.requests] == ["/v1/chat/completions"]


async def test_an_unknown_model_needs_a_person() -> None:
    """A Qwen id that the scripted model does not serve: it never answers as Qwen."""
    async with house(fast="qwen-flash") as built:
        with pytest.raises(NeedsPerson, match="404 model_not_found"):
            await built.reasoner.classify(incident())


async def test_an_unreachable_model_is_tried_later() -> None:
    """Nothing listens: the incident stays."""
    async with house(url="http://127.0.0.1:9/v1") as built:
        with pytest.raises(RetryLater, match="could not be reached"):
            await built.reasoner.classify(incident())


def subclasses(root: type[BaseException]) -> Iterator[type[BaseException]]:
    """A class and all below it."""
    yield root
    for each in root.__subclasses__():
        yield from subclasses(each)


def test_every_exception_of_the_transport_has_a_consequence() -> None:
    """Each class of httpx2 that a send or a read can raise is an outage, never a crash."""
    for kind in subclasses(httpx2.HTTPError):
        if kind is httpx2.HTTPStatusError:
            continue
        assert isinstance(mapped(kind.__new__(kind)), RetryLater), kind  # type: ignore[arg-type]


def test_every_exception_of_the_sdk_has_a_consequence() -> None:
    """Each class of the SDK maps to one of the three errors that a phase knows."""
    request = httpx2.Request("POST", "https://dashscope-intl.aliyuncs.com/v1/chat/completions")
    seen = set()
    for kind in subclasses(openai.OpenAIError):
        if issubclass(kind, openai.APIStatusError):
            status = kind.status_code if isinstance(getattr(kind, "status_code", None), int) else 503
            response = httpx2.Response(status, request=request)
            error: Exception = (
                kind("failed", response=response, body=None)
                if kind is not openai.OAuthError
                else (openai.OAuthError(response=httpx2.Response(401, request=request), body=None))
            )
        else:
            error = kind.__new__(kind)
            openai.OpenAIError.__init__(error, "failed")
        consequence = mapped(error)
        seen.add(type(consequence))
        assert isinstance(consequence, (RetryLater, NeedsPerson, InvalidAnswer)), kind
    assert {RetryLater, NeedsPerson} <= seen


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(401, "invalid_api_key", ""), NeedsPerson),
        (Fault(403, "AccessDenied", ""), NeedsPerson),
        (Fault(402, "", "insufficient credits"), NeedsPerson),
        (Fault(400, "Arrearage", ""), NeedsPerson),
        (Fault(403, "AllocationQuota.FreeTierOnly", ""), NeedsPerson),
        (Fault(404, "model_not_found", ""), NeedsPerson),
        (Fault(400, "invalid_parameter_error", "unknown field"), ParameterRefused),
        (Fault(404, "", "No endpoints found that can handle the requested parameters."), ParameterRefused),
        (Fault(400, "invalid_parameter_error", "Range of input length should be [1, 991808]"), InvalidAnswer),
        (Fault(400, "data_inspection_failed", ""), InvalidAnswer),
        (Fault(413, "", ""), InvalidAnswer),
        (Fault(429, "Throttling.AllocationQuota", ""), Throttled),
        (Fault(429, "insufficient_quota", ""), Throttled),
        (Fault(503, "", "", after=3), Throttled),
        (Fault(503, "", ""), RetryLater),
        (Fault(408, "", ""), RetryLater),
        (Fault(418, "teapot", ""), NeedsPerson),
    ],
)
def test_each_error_of_the_services_has_its_consequence(fault: Fault, kind: type[PraxisError]) -> None:
    """Codes as Model Studio and OpenRouter document them."""
    assert type(of_fault(fault)) is kind


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"choices": []}, None),
        ({"error": None}, None),
        ([], None),
        ({"error": {"code": 429, "message": "slow down"}}, Fault(429, "", "slow down")),
        ({"error": {"code": "Arrearage", "message": "m"}}, Fault(502, "Arrearage", "m")),
        ({"error": {"code": 7, "message": "m"}}, Fault(502, "", "m")),
        ({"error": "boom"}, Fault(502, "", "boom")),
    ],
)
def test_an_error_in_the_body_of_a_200_is_found(document: object, fault: Fault | None) -> None:
    """OpenRouter answers so when a provider fails after the headers went out."""
    assert in_body(document) == fault


@pytest.mark.parametrize(
    ("header", "after"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("999999", 3600.0),
        ("nan", None),
        ("soon", None),
        ("Sat, 31 Jan 2026 12:00:30 GMT", 30.0),
    ],
)
def test_retry_after_is_read_and_bounded(header: str, after: float | None) -> None:
    """Seconds or a date; nonsense says nothing."""
    request = httpx2.Request("POST", "https://dashscope-intl.aliyuncs.com/v1")
    response = httpx2.Response(429, request=request, headers={"retry-after": header})
    error = openai.RateLimitError("slow down", response=response, body=None)
    consequence = mapped(error, now=datetime(2026, 1, 31, 12, 0, tzinfo=UTC))
    assert isinstance(consequence, RetryLater)
    assert consequence.after == after


def test_a_service_s_words_are_redacted_and_bounded() -> None:
    """What a service echoes into its error does not reach status as it came."""
    error = of_fault(Fault(400, "teapot", "key sk-" + "a" * 32 + " \x1b[31m" + "x" * 2000))
    assert "sk-aaaa" not in str(error)
    assert "\x1b" not in str(error)
    assert len(str(error)) < 700
