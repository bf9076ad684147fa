"""The scripted model as an HTTP server on loopback: chat completions, embeddings, models, and an admin surface.

It answers as Model Studio's OpenAI-compatible mode does, errors included, but under ids of its own: `scripted-fast`,
`scripted-reasoning`, `scripted-embedding`. It is no Qwen and refuses to be asked as one.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Self

from aiohttp import web

from praxis.demo.scripted.embedding import DIMENSIONS, embedding
from praxis.demo.scripted.faults import ANSWERS, Fault, FaultKind, FaultQueue, spoiled
from praxis.demo.scripted.looking import next_calls
from praxis.demo.scripted.planning import plan
from praxis.demo.scripted.reading import Shown, Task, read
from praxis.demo.scripted.refusals import STATUS_FAULTS, Refusal, check_chat, check_embeddings, refusal_of
from praxis.demo.scripted.rules import classification, diagnosis, said

FAST, REASONING, EMBEDDING = "scripted-fast", "scripted-reasoning", "scripted-embedding"
FOREIGN = "gpt-5-mini"
REMEMBERED = 1_000
BODY_LIMIT = 8 * 1024 * 1024
CHARACTERS_PER_TOKEN = 4
HUGE_BYTES = 9 * 1024 * 1024


@dataclass(frozen=True)
class Recorded:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def text(self) -> str:
        """Everything that arrived in it, for a search."""
        return json.dumps([dict(self.headers), self.body], ensure_ascii=False)


class ScriptedModel:
    """The server. `url` is the OpenAI-compatible base URL; `faults` makes it misbehave; `requests` is what it was sent.

    Use as an asynchronous context manager. It listens on 127.0.0.1 only.
    """

    def __init__(self, *, port: int = 0) -> None:
        self.faults = FaultQueue()
        self.requests: deque[Recorded] = deque(maxlen=REMEMBERED)
        self.hanging = asyncio.Event()
        self._released = asyncio.Event()
        self._port = port
        self._numbers = count(1)
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        app = web.Application(client_max_size=BODY_LIMIT)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self._chat),
                web.post("/v1/embeddings", self._embeddings),
                web.get("/v1/models", self._models),
                web.get("/healthz", self._healthz),
                web.get("/admin/faults", self._list_faults),
                web.post("/admin/faults", self._add_fault),
                web.delete("/admin/faults", self._clear_faults),
                web.get("/admin/requests", self._list_requests),
                web.post("/admin/release", self._release),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening; whatever hangs is let go."""
        self._released.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._port}/v1"

    def release(self) -> None:
        """Let go of every request that hangs."""
        self._released.set()
        self._released = asyncio.Event()
        self.hanging.clear()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await self._received(request)
        shown = read(body) if isinstance(body, dict) else read({})
        tools = self._wants_tools(shown)
        fault = self.faults.take(shown.task, answering=not tools)
        if fault and (early := await self._early(fault, request)):
            return early
        if refusal := check_chat(body, request.headers.get("Authorization"), (FAST, REASONING), fault):
            return refusal.response()
        return self._completion(body, self._message(shown, tools, fault), fault)

    def _wants_tools(self, shown: Shown) -> list[tuple[str, str]]:
        return next_calls(shown) if shown.task is Task.DIAGNOSE and shown.tools else []

    def _message(self, shown: Shown, tools: list[tuple[str, str]], fault: Fault | None) -> dict[str, Any]:
        kind = fault.kind if fault else None
        if kind is FaultKind.ENDLESS_TOOLS:
            name = next(iter(shown.tools), "look")
            tools = [(name, json.dumps({"again": next(self._numbers)}))]
        elif kind is FaultKind.UNKNOWN_TOOL:
            tools = [("shell", json.dumps({"command": "kubectl delete namespace shop"}))]
        if tools:
            return {"role": "assistant", "content": None, "tool_calls": [self._call(*each) for each in tools]}
        if kind is FaultKind.REFUSAL:
            return {"role": "assistant", "content": None, "refusal": said("I will not answer that.")}
        document = self._answer(shown)
        text = spoiled(kind, document, shown) if kind in ANSWERS else json.dumps(document, ensure_ascii=False)
        return {"role": "assistant", "content": text}

    def _answer(self, shown: Shown) -> dict[str, Any]:
        match shown.task:
            case Task.CLASSIFY:
                return classification(shown)
            case Task.DIAGNOSE:
                return diagnosis(shown)
            case Task.DRAFT:
                return plan(shown)
            case _:
                return {"text": said("This model answers the tasks of PRAXIS only.")}

    def _call(self, name: str, arguments: str) -> dict[str, Any]:
        number = next(self._numbers)
        return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}

    def _completion(self, body: dict[str, Any], message: dict[str, Any], fault: Fault | None) -> web.StreamResponse:
        kind = fault.kind if fault else None
        content = message.get("content") or ""
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        limit = int(body.get("max_tokens") or 1_000_000) * CHARACTERS_PER_TOKEN
        if kind is FaultKind.CUT or len(content) > limit:
            message = {**message, "content": content[: min(len(content) // 2, limit)]}
            reason = "length"
        if kind is FaultKind.CONTENT_FILTER:
            message, reason = {**message, "content": ""}, "content_filter"
        model = FOREIGN if kind is FaultKind.FOREIGN_MODEL else body["model"]
        document: dict[str, Any] = {
            "id": f"chatcmpl-scripted-{next(self._numbers)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [{"index": 0, "finish_reason": reason, "message": message}],
            "usage": _usage(json.dumps(body["messages"]), json.dumps(message)),
        }
        for broken, key in (
            (FaultKind.NO_USAGE, "usage"), (FaultKind.NO_MODEL, "model"), (FaultKind.NO_CHOICES, "choices"),
        ):  # fmt: skip
            if kind is broken:
                del document[key]
        return web.json_response(document)

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        body = await self._received(request)
        fault = self.faults.take("embed", answering=True)
        if fault and (early := await self._early(fault, request)):
            return early
        if refusal := check_embeddings(body, request.headers.get("Authorization"), EMBEDDING, DIMENSIONS):
            return refusal.response()
        rows = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = [embedding(each) for each in rows]
        if fault and fault.kind is FaultKind.SHORT_VECTOR:
            vectors = [each[:512] for each in vectors]
        if fault and fault.kind is FaultKind.MISSING_VECTOR:
            vectors = vectors[1:]
        packed = body.get("encoding_format") == "base64"
        return web.json_response(
            {
                "object": "list",
                "data": [
                    {"object": "embedding", "index": index, "embedding": _packed(each) if packed else each}
                    for index, each in enumerate(vectors)
                ],
                "model": FOREIGN if fault and fault.kind is FaultKind.FOREIGN_MODEL else EMBEDDING,
                "usage": _usage("".join(rows), ""),
            }
        )

    async def _early(self, fault: Fault, request: web.Request) -> web.StreamResponse | None:
        """What goes wrong before anything is answered; None when the fault shows later."""
        match fault.kind:
            case FaultKind.DROP:
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            case FaultKind.HANG:
                released = self._released
                self.hanging.set()
                await released.wait()
                return None
            case FaultKind.HTML:
                return web.Response(text="<html><body>502 Bad Gateway</body></html>", content_type="text/html")
            case FaultKind.HUGE:
                return web.Response(body=b" " * HUGE_BYTES, content_type="application/json")
            case FaultKind.ERROR_IN_BODY:
                return web.json_response({"error": {"message": "Provider returned error", "code": 502}})
            case FaultKind.REDIRECT:
                return web.Response(status=307, headers={"Location": "/elsewhere/chat/completions"})
            case kind if kind in STATUS_FAULTS:
                return refusal_of(fault).response()
            case _:
                return None

    async def _received(self, request: web.Request) -> Any:
        try:
            body = await request.json()
        except ValueError:
            body = None
        self.requests.append(Recorded(request.path, dict(request.headers), body))
        return body

    async def _models(self, request: web.Request) -> web.Response:
        del request
        data = [{"id": each, "object": "model", "owned_by": "scripted"} for each in (FAST, REASONING, EMBEDDING)]
        return web.json_response({"object": "list", "data": data})

    async def _healthz(self, request: web.Request) -> web.Response:
        del request
        return web.Response(text="ok\n")

    async def _list_faults(self, request: web.Request) -> web.Response:
        del request
        return web.json_response(
            [
                {"kind": each.kind, "times": each.times, "task": each.task, "after": each.after}
                for each in self.faults.waiting
            ]
        )

    async def _add_fault(self, request: web.Request) -> web.Response:
        try:
            wanted = await request.json()
            self.faults.add(wanted["kind"], **{key: wanted[key] for key in ("times", "task", "after") if key in wanted})
        except (ValueError, KeyError, TypeError) as error:
            text = f"{error}; kinds: {', '.join(FaultKind)}"
            return Refusal(400, "invalid_parameter_error", text).response()
        return web.json_response({"waiting": len(self.faults.waiting)}, status=201)

    async def _clear_faults(self, request: web.Request) -> web.Response:
        del request
        self.faults.clear()
        return web.json_response({"waiting": 0})

    async def _list_requests(self, request: web.Request) -> web.Response:
        del request
        return web.json_response([{"path": each.path, "body": each.body} for each in self.requests])

    async def _release(self, request: web.Request) -> web.Response:
        del request
        self.release()
        return web.json_response({})


def _usage(asked: str, answered: str) -> dict[str, Any]:
    sent, received = len(asked) // CHARACTERS_PER_TOKEN + 1, len(answered) // CHARACTERS_PER_TOKEN + 1
    return {
        "prompt_tokens": sent,
        "completion_tokens": received,
        "total_tokens": sent + received,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
