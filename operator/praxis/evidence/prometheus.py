"""What Prometheus measured: instant and range queries over its HTTP API, bounded and summarised.

GET only, the base URL from the settings only, no redirects, and no answer is held in memory beyond its bound. Which
series may be seen is for whoever sets the URL: Prometheus itself has no namespaces, a proxy such as prom-label-proxy
gives it some. API: https://prometheus.io/docs/prometheus/latest/querying/api/
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

import aiohttp
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from praxis.clock import Clock
from praxis.errors import Refused, RetryLater
from praxis.evidence.arguments import PrometheusQuery, PrometheusQueryRange
from praxis.evidence.observation import Seen, one_line

ANSWER_BYTES: Final = 4 * 1024 * 1024
"""Largest answer that is read, bytes."""
SERIES: Final = 40
"""Series shown of one answer."""
POINTS: Final = 120
"""Points asked for in a range; the step is made coarser to keep it."""
SHOWN_POINTS: Final = 8
"""Points shown of each series, evenly spaced, first and last among them."""
MINIMAL_STEP_SECONDS: Final = 15
"""Finer than the usual scrape interval tells nothing more."""
CONNECT_SECONDS: Final = 5.0
EVALUATION_SECONDS: Final = 20
"""How long Prometheus itself may evaluate (its own `timeout` parameter)."""

Sample = tuple[float, str]


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    warnings: list[str] = []
    infos: list[str] = []


class _Series(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    metric: dict[str, str] = {}
    value: Sample | None = None
    values: list[Sample] = []
    histogram: tuple[float, dict[str, Any]] | None = None
    histograms: list[tuple[float, dict[str, Any]]] = []


class _VectorOrMatrix(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)

    type: Annotated[Literal["vector", "matrix"], Field(alias="resultType")]
    result: list[_Series]


class _ScalarOrString(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)

    type: Annotated[Literal["scalar", "string"], Field(alias="resultType")]
    result: Sample


class _Success(_Answer):
    status: Literal["success"]
    data: Annotated[_VectorOrMatrix | _ScalarOrString, Field(discriminator="type")]


class _Failure(_Answer):
    status: Literal["error"]
    error_type: Annotated[str, Field(alias="errorType")] = ""
    error: str = ""


_ANSWER: TypeAdapter[_Success | _Failure] = TypeAdapter(Annotated[_Success | _Failure, Field(discriminator="status")])


class Prometheus:
    """Asks one Prometheus."""

    def __init__(self, *, base_url: str, clock: Clock, timeout: float) -> None:
        self._base = base_url.rstrip("/")
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_SECONDS)

    async def query(self, asked: PrometheusQuery) -> Seen:
        """The value of an expression at one moment. Raises RetryLater and Refused."""
        moment = self._clock.now() - timedelta(minutes=asked.minutes_ago)
        answer = await self._get("query", {"query": asked.query, "time": _stamp(moment)})
        return _summarised(answer, f"at {_clock_time(moment.timestamp())}")

    async def query_range(self, asked: PrometheusQueryRange) -> Seen:
        """An expression over a window that ends now. Raises as `query`."""
        now = self._clock.now()
        window = asked.minutes * 60
        step = max(asked.step_seconds or 0, MINIMAL_STEP_SECONDS, math.ceil(window / (POINTS - 1)))
        start = now - timedelta(seconds=window)
        answer = await self._get(
            "query_range",
            {"query": asked.query, "start": _stamp(start), "end": _stamp(now), "step": str(step)},
        )
        span = f"{_clock_time(start.timestamp())} to {_clock_time(now.timestamp())} step {step}s"
        return _summarised(answer, span)

    async def _get(self, endpoint: str, parameters: Mapping[str, str]) -> _Success:
        body, status = await self._read(endpoint, {**parameters, "timeout": f"{EVALUATION_SECONDS}s"})
        if status in range(300, 400):
            raise Refused("Prometheus answers with a redirect, which is not followed", status=status)
        try:
            answer = _ANSWER.validate_json(body)
        except ValidationError as error:
            if status >= 400:
                raise RetryLater(f"Prometheus answers {status}") from error
            raise RetryLater("what answers there does not speak Prometheus' HTTP API") from error
        if isinstance(answer, _Failure):
            raise Refused(f"Prometheus says {answer.error_type}: {one_line(answer.error)}", status=status)
        return answer

    async def _read(self, endpoint: str, parameters: Mapping[str, str]) -> tuple[bytes, int]:
        try:
            async with (
                aiohttp.ClientSession(timeout=self._timeout, headers={"Accept-Encoding": "identity"}) as session,
                session.get(f"{self._base}/api/v1/{endpoint}", params=parameters, allow_redirects=False) as response,
            ):
                body = b""
                while chunk := await response.content.read(64 * 1024):
                    body += chunk
                    if len(body) > ANSWER_BYTES:
                        raise Refused(f"the answer is larger than {ANSWER_BYTES} bytes: aggregate more", status=413)
                return body, response.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # The message may hold the URL, and the URL a password.
            raise RetryLater(f"Prometheus cannot be asked: {type(error).__name__}") from error


def _summarised(answer: _Success, when: str) -> Seen:
    notes = [f"{one_line(each)}" for each in (*answer.warnings, *answer.infos)]
    data = answer.data
    if isinstance(data, _ScalarOrString):
        return Seen("\n".join([f"{data.type} {when}: {data.result[1]}", *notes]))
    lines = sorted(_series(each) for each in data.result)
    beyond = len(lines) - SERIES
    return Seen(
        "\n".join(
            [
                f"{len(lines)} series {when}" if lines else f"no series {when}",
                *lines[:SERIES],
                *([f"({beyond} series not shown)"] if beyond > 0 else []),
                *notes,
            ]
        ),
        partial=beyond > 0,
    )


def _series(series: _Series) -> str:
    labels = _labels(series.metric)
    if series.value is not None:
        return f"{labels} {series.value[1]}"
    if series.histogram is not None:
        return f"{labels} {_histogram(series.histogram[1])}"
    if series.histograms:
        first, last = series.histograms[0], series.histograms[-1]
        return f"{labels} n={len(series.histograms)} first {_histogram(first[1])} last {_histogram(last[1])}"
    return f"{labels} {_range(series.values)}"


def _labels(metric: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{one_line(value)}"' for name, value in sorted(metric.items()) if name != "__name__")
    return f"{metric.get('__name__', '')}{{{pairs}}}"


def _range(values: Sequence[Sample]) -> str:
    """The extremes with their times, and a few points, so that a shape can be seen."""
    numbers = [(float(text), stamp, text) for stamp, text in values]
    finite = [each for each in numbers if not math.isnan(each[0])]
    if not finite:
        return f"n={len(values)}, no numbers"
    low, high = min(finite, key=lambda each: each[:2]), max(finite, key=lambda each: (each[0], -each[1]))
    mean = math.fsum(each[0] for each in finite) / len(finite)
    last = len(values) - 1
    count = min(SHOWN_POINTS, len(values))
    indices = sorted({round(last * each / max(1, count - 1)) for each in range(count)})
    points = " ".join(f"{_clock_time(values[index][0])}={values[index][1]}" for index in indices)
    extremes = f"min={low[2]}@{_clock_time(low[1])} max={high[2]}@{_clock_time(high[1])}"
    return f"n={len(values)} {extremes} mean={mean:.6g}: {points}"


def _histogram(histogram: Mapping[str, Any]) -> str:
    return f"histogram(count={one_line(histogram.get('count'))}, sum={one_line(histogram.get('sum'))})"


def _stamp(moment: datetime) -> str:
    return f"{moment.timestamp():.3f}"


def _clock_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
