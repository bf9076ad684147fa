"""Requests that the scripted model refuses, in Model Studio's words and error documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from praxis.demo.scripted.faults import Fault, FaultKind

EMBEDDING_ROWS = 10


@dataclass(frozen=True)
class Refusal:
    """An error answer."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> web.Response:
        """The answer as Model Studio words it."""
        error = {"message": self.message, "type": self.code, "param": None, "code": self.code}
        document = {"error": error, "request_id": "scripted-request"}
        return web.json_response(document, status=self.status, headers=dict(self.headers))


STATUS_FAULTS: Mapping[FaultKind, Refusal] = {
    FaultKind.THROTTLE: Refusal(429, "Throttling.RateQuota", "Requests rate limit exceeded, please try again later."),
    FaultKind.SERVER_ERROR: Refusal(500, "internal_error", "An internal error has occurred."),
    FaultKind.UNAUTHORIZED: Refusal(401, "invalid_api_key", "Incorrect API key provided."),
    FaultKind.ARREARAGE: Refusal(400, "Arrearage", "Access denied, please make sure your account is in good standing."),
    FaultKind.DATA_INSPECTION: Refusal(400, "data_inspection_failed", "Input data may contain inappropriate content."),
    FaultKind.TOO_LONG: Refusal(400, "invalid_parameter_error", "Range of input length should be [1, 991808]"),
}


def refusal_of(fault: Fault) -> Refusal:
    """The error answer of a fault."""
    refusal = STATUS_FAULTS[fault.kind]
    headers = {} if fault.after is None else {"Retry-After": f"{fault.after:g}"}
    return Refusal(refusal.status, refusal.code, refusal.message, headers)


def check_chat(body: Any, authorization: str | None, models: Sequence[str], fault: Fault | None) -> Refusal | None:
    """Why a chat completion is refused, None when it is not."""
    if refusal := _check(body, authorization, models):
        return refusal
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        return _invalid("messages must be a list that is not empty")
    if body.get("stream"):
        return _invalid("stream is not supported by this server")
    form = (body.get("response_format") or {}).get("type")
    if form == "json_object" and "json" not in json.dumps(body["messages"]).lower():
        return _invalid(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of 'json_object'."
        )
    if body.get("enable_thinking") and body.get("tool_choice") not in (None, "auto", "none"):
        return _invalid("tool_choice must be auto or none in thinking mode")
    return _unsupported(form, bool(body.get("enable_thinking")), fault.kind if fault else None)


def check_embeddings(body: Any, authorization: str | None, model: str, dimensions: int) -> Refusal | None:
    """Why an embedding is refused, None when it is not."""
    if refusal := _check(body, authorization, (model,)):
        return refusal
    rows = [body.get("input")] if isinstance(body.get("input"), str) else body.get("input")
    if not isinstance(rows, list) or not all(isinstance(each, str) and each for each in rows):
        return _invalid("input must be text or a list of texts")
    if not 1 <= len(rows) <= EMBEDDING_ROWS:
        return _invalid(f"batch size is invalid, it should not be larger than {EMBEDDING_ROWS}")
    if body.get("dimensions", dimensions) != dimensions:
        return _invalid(f"dimensions must be {dimensions}")
    return None


def _unsupported(form: str | None, thinking: bool, kind: FaultKind | None) -> Refusal | None:
    if kind is FaultKind.NO_JSON_SCHEMA and form == "json_schema":
        return _invalid("'response_format' of type 'json_schema' is not supported by this model")
    if kind is FaultKind.NO_RESPONSE_FORMAT and form is not None:
        return _invalid("'response_format' is not supported by this model")
    if kind is FaultKind.NO_THINKING and thinking:
        return _invalid("parameter.enable_thinking must be set to false for non-streaming calls")
    return None


def _check(body: Any, authorization: str | None, models: Sequence[str]) -> Refusal | None:
    if not (authorization or "").startswith("Bearer "):
        return Refusal(401, "invalid_api_key", "You didn't provide an API key.")
    if not isinstance(body, dict):
        return _invalid("the body must be a JSON object")
    if body.get("model") not in models:
        text = f"The model `{body.get('model')}` does not exist: the scripted model serves {', '.join(models)}."
        return Refusal(404, "model_not_found", text)
    return None


def _invalid(message: str) -> Refusal:
    return Refusal(400, "invalid_parameter_error", message)
