"""The one model client: the `openai` SDK on one route, nothing retried behind our back, every answer counted.

The SDK's own parsing is not used: it fails in five shapes and loses the usage on some of them. Bodies are read to a
bound and held to `praxis.reasoning.protocol`.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from openai import AsyncAPIResponse, AsyncOpenAI, OpenAIError
from prometheus_client import CollectorRegistry
from pydantic import BaseModel, ValidationError

from praxis.api.bounds import EMBEDDING_DIMENSIONS
from praxis.api.incident import Usage
from praxis.clock import Clock
from praxis.errors import InvalidAnswer, NeedsPerson, PraxisError, RetryLater
from praxis.reasoning.cleaning import line
from praxis.reasoning.failures import ParameterRefused, Throttled, in_body, mapped, of_fault
from praxis.reasoning.family import Provider, Route, route_of, same_family
from praxis.reasoning.features import Features, Shape, body_of
from praxis.reasoning.metering import CallOutcome, ModelMetrics, Operation, Tokens
from praxis.reasoning.prices import cost_micro_usd
from praxis.reasoning.protocol import ChatRequest, Message, Reply, ToolCall, WireCompletion, WireEmbeddings, estimated
from praxis.reasoning.quoting import redacted
from praxis.reasoning.tape import Tape
from praxis.redaction import redact
from praxis.settings import ModelSettings

CONNECT_TIMEOUT_SECONDS = 5.0
ANSWER_BYTES = 8 * 1024 * 1024
"""Largest answer read; 65,536 output tokens are well below a tenth of it."""
THROTTLE_RETRIES = 3
THROTTLE_PATIENCE_SECONDS = 20.0
"""A throttled request cost nothing; the turns of a diagnosis before it did. So it is asked again a few times, after the
time the service names or 2, 4, 8 seconds, unless it names more than this."""
EMBEDDING_ROWS = 10
EMBEDDING_CHARACTERS = 8_000
"""Model Studio: at most 10 rows a request and 8,192 tokens a row; a token is rarely less than a character."""
KEY_VARIABLES = {"aliyuncs.com": "DASHSCOPE_API_KEY", "openrouter.ai": "OPENROUTER_API_KEY"}
"""A key from the environment goes to its own provider only; any other host needs a key file."""

Wire = TypeVar("Wire", bound=BaseModel)


class ForeignModel(InvalidAnswer):
    """A model of another family answered: the answer is discarded."""


class ModelClient:
    """Chat completions and embeddings on the configured route. Close it when done.

    Raises, at construction:
        NeedsPerson: a model id, the base URL or the key is missing or not allowed; says what to set.
    """

    def __init__(
        self,
        *,
        settings: ModelSettings,
        clock: Clock,
        registry: CollectorRegistry,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._environment = environment
        self._route = route_of(settings)
        _key(settings, self._route, environment)
        self._features = Features()
        self.metrics = ModelMetrics(registry)
        self.metrics.prepare(settings.fast, (Operation.CLASSIFY,))
        self.metrics.prepare(settings.reasoning, (Operation.DIAGNOSE, Operation.DRAFT))
        self.metrics.prepare(settings.embedding, (Operation.EMBED,))
        self._openai = AsyncOpenAI(
            api_key="set per request",
            base_url=self._route.base_url,
            max_retries=0,
            timeout=httpx2.Timeout(settings.timeout, connect=CONNECT_TIMEOUT_SECONDS),
            http_client=httpx2.AsyncClient(
                follow_redirects=False,
                trust_env=not self._route.loopback,
                event_hooks={"request": [self._guard]},
            ),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._openai.close()

    async def chat(self, request: ChatRequest, tape: Tape) -> Reply:
        """One answer. A parameter that the model refuses is given up where it can be, and that is remembered.

        Every request goes on the tape as it is sent, with what came of it.

        Raises:
            RetryLater: outage, throttle, time-out, or something that is no answer of a model.
            NeedsPerson: the key, the account, the URL or the model id.
            InvalidAnswer: content filter, an input that is too long, or a foreign model; `usage` says what it cost.
        """
        while True:
            shape = self._features.shape(request)
            try:
                return await self._patiently(request, shape, tape)
            except ParameterRefused as refusal:
                if self._features.shape(request) != shape:
                    continue  # another incident's request has learnt the same meanwhile
                given_up = self._features.give_up(request, shape, str(refusal))
                if given_up is None:
                    raise
                self.metrics.fallbacks.labels(request.model, given_up).inc()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of EMBEDDING_DIMENSIONS floats for each text; what exceeds EMBEDDING_CHARACTERS is left out.

        Raises RetryLater, NeedsPerson, InvalidAnswer.
        """
        rows = [redact(text)[:EMBEDDING_CHARACTERS].strip() or "(empty)" for text in texts]
        vectors: list[list[float]] = []
        for start in range(0, len(rows), EMBEDDING_ROWS):
            vectors += await self._embed_batch(rows[start : start + EMBEDDING_ROWS])
        return vectors

    async def _patiently(self, request: ChatRequest, shape: Shape, tape: Tape) -> Reply:
        for attempt in range(1, THROTTLE_RETRIES + 1):
            try:
                return await self._complete(request, shape, tape)
            except Throttled as throttled:
                pause = 2.0**attempt if throttled.after is None else throttled.after
                if pause > THROTTLE_PATIENCE_SECONDS:
                    raise
            await self._clock.sleep(pause)
        return await self._complete(request, shape, tape)

    async def _complete(self, request: ChatRequest, shape: Shape, tape: Tape) -> Reply:
        body = body_of(request, shape, self._route.provider, self._settings.output_tokens)
        body["messages"] = [_redacted(message) for message in request.messages]
        noted = tape.exchange(body, provider=self._route.provider, host=self._route.host, clock=self._clock)
        with self._counted(request.model, request.operation), noted as exchange:
            raw = await self._read(self._openai.chat.completions.with_streaming_response.create(**body))
            completion = _validated(WireCompletion, raw)
            tokens = (
                completion.usage.tokens()
                if completion.usage
                else estimated(body["messages"], raw.decode(errors="replace"))
            )
            exchange.answered(completion, tokens)
            usage = self._spent(request.model, tokens)
            self._require_family(request.model, completion.model, usage)
            return _reply(completion, usage)

    async def _embed_batch(self, rows: list[str]) -> list[list[float]]:
        model = self._settings.embedding
        body: dict[str, Any] = {
            "model": model, "input": rows, "dimensions": EMBEDDING_DIMENSIONS, "encoding_format": "float",
        }  # fmt: skip
        if self._route.provider is Provider.OPENROUTER:
            body["extra_body"] = {"provider": {"require_parameters": True, "data_collection": "deny"}}
        with self._counted(model, Operation.EMBED):
            raw = await self._read(self._openai.embeddings.with_streaming_response.create(**body))
            answer = _validated(WireEmbeddings, raw)
            usage = self._spent(model, answer.usage.tokens() if answer.usage else estimated(rows, ""))
            self._require_family(model, answer.model, usage)
            return _vectors(answer, len(rows))

    async def _read(self, sending: AbstractAsyncContextManager[AsyncAPIResponse[Any]]) -> bytes:
        """Send, and read the body up to ANSWER_BYTES, all within the configured time-out.

        A read time-out alone would let an answer trickle in for ever.
        """
        body = bytearray()
        async with _as_praxis_errors(), asyncio.timeout(self._settings.timeout), sending as response:
            async for chunk in response.iter_bytes():
                body += chunk
                if len(body) > ANSWER_BYTES:
                    raise RetryLater(f"the model's answer exceeds {ANSWER_BYTES} bytes")
        return bytes(body)

    async def _guard(self, request: httpx2.Request) -> None:
        """Runs before every request: it stays on the route, with this route's key and nobody's ambient headers."""
        url = request.url
        if not self._route.covers(url.scheme, url.host, url.port, url.path):
            raise NeedsPerson(f"a request to {url.host} would leave the configured route {self._route.host}")
        for header in ("OpenAI-Organization", "OpenAI-Project"):
            request.headers.pop(header, None)
        request.headers["Authorization"] = f"Bearer {_key(self._settings, self._route, self._environment)}"

    def _spent(self, model: str, tokens: Tokens) -> Usage:
        cost = cost_micro_usd(
            model, input_tokens=tokens.input, cached_tokens=tokens.cached, output_tokens=tokens.output
        )
        self.metrics.spent(model, tokens, cost)
        return Usage(model_calls=1, input_tokens=tokens.input, output_tokens=tokens.output, cost_micro_usd=cost or 0)

    def _require_family(self, asked: str, answered: str, usage: Usage) -> None:
        if not same_family(asked, answered):
            error = ForeignModel(
                f"{asked} was asked and {line(answered, 64) or 'a nameless model'} answered: discarded"
            )
            error.usage = usage
            raise error

    @contextmanager
    def _counted(self, model: str, operation: Operation) -> Iterator[None]:
        outcome = CallOutcome.CANCELLED
        try:
            with self.metrics.duration.labels(model, operation).time():
                yield
            outcome = CallOutcome.ANSWERED
        except PraxisError as error:
            outcome = _outcome(error)
            raise
        finally:
            self.metrics.calls.labels(model, operation, outcome).inc()


@asynccontextmanager
async def _as_praxis_errors() -> AsyncIterator[None]:
    try:
        yield
    except (OpenAIError, httpx2.HTTPError, httpx2.StreamError, OSError, TimeoutError) as error:
        raise mapped(error) from error


def _outcome(error: PraxisError) -> CallOutcome:
    match error:
        case ForeignModel():
            return CallOutcome.FOREIGN_MODEL
        case ParameterRefused():
            return CallOutcome.PARAMETER_REFUSED
        case InvalidAnswer():
            return CallOutcome.INVALID_ANSWER
        case NeedsPerson():
            return CallOutcome.NEEDS_PERSON
        case _:
            return CallOutcome.RETRY_LATER


def _validated(model: type[Wire], raw: bytes) -> Wire:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RetryLater(f"the model service answered with no JSON: {line(_start(raw), 120)!r}") from error
    if fault := in_body(document):
        raise of_fault(fault)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        missing = ", ".join(".".join(map(str, each["loc"])) or "it" for each in error.errors()[:3])
        raise RetryLater(f"the model service's answer does not hold the protocol: {missing}") from error


def _start(raw: bytes) -> str:
    return raw[:512].decode(errors="replace")


def _reply(completion: WireCompletion, usage: Usage) -> Reply:
    choice = completion.choices[0]
    if choice.finish_reason == "error":
        failure = RetryLater("the model service broke off its answer")
        failure.usage = usage
        raise failure
    if choice.finish_reason == "content_filter" or choice.message.refusal:
        why = line(choice.message.refusal or "content filter", 256)
        refusal = InvalidAnswer(f"the model did not answer: {why}")
        refusal.usage = usage
        raise refusal
    return Reply(
        content=choice.message.content or "",
        tool_calls=tuple(
            ToolCall(id=call.id or f"call-{index}", name=call.function.name, arguments=call.function.arguments)
            for index, call in enumerate(choice.message.tool_calls or [])
        ),
        finish_reason=choice.finish_reason or "",
        model=completion.model,
        usage=usage,
    )


def _vectors(answer: WireEmbeddings, rows: int) -> list[list[float]]:
    vectors = {each.index: each.embedding for each in answer.data}
    if sorted(vectors) != list(range(rows)) or len(answer.data) != rows:
        raise InvalidAnswer(f"{rows} embeddings were asked for, {len(answer.data)} came")
    for vector in vectors.values():
        if len(vector) != EMBEDDING_DIMENSIONS:
            raise InvalidAnswer(f"an embedding has {len(vector)} dimensions, not {EMBEDDING_DIMENSIONS}")
        if not all(map(math.isfinite, vector)) or not any(vector):
            raise InvalidAnswer("an embedding is all zero or holds a number that is not finite")
    return [vectors[index] for index in range(rows)]


def _redacted(message: Message) -> Message:
    """The last look before anything leaves, whoever put it together."""
    clean = {**message, "content": redacted(message["content"])}
    if "tool_calls" in message:
        clean["tool_calls"] = [
            {**call, "function": {name: redact(text) for name, text in call["function"].items()}}
            for call in message["tool_calls"]
        ]
    return clean


def _key(settings: ModelSettings, route: Route, environment: Mapping[str, str]) -> str:
    fix = "put the key into a file and set PRAXIS_MODELS__API_KEY_FILE to its path"
    if settings.api_key_file is not None:
        key = _from_file(settings.api_key_file, fix)
    elif route.loopback:
        return "loopback"
    else:
        host = "." + route.host
        variable = next((name for domain, name in KEY_VARIABLES.items() if host.endswith("." + domain)), None)
        key = environment.get(variable or "", "").strip()
        if not key:
            also = f", or set {variable}" if variable else ""
            raise NeedsPerson(f"there is no API key for {route.host}; {fix}{also}")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise NeedsPerson(f"the API key for {route.host} holds characters that no key has; {fix}")
    return key


def _from_file(path: Path, fix: str) -> str:
    try:
        key = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NeedsPerson(f"the API key file {path} cannot be read ({type(error).__name__}); {fix}") from error
    if not key:
        raise NeedsPerson(f"the API key file {path} is empty; {fix}")
    return key
