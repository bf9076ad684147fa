"""The scripted model, made to leak: it plants secrets in its answers, and repeats requests with their key in errors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

from aiohttp import web

from praxis.demo.scripted.reading import Shown, Task
from praxis.demo.scripted.server import ScriptedModel
from tests.secrets.corpus import Planted, corpus

PLACE = "answers of the model"
TOOLS = "tool calls of the model"
ERRORS = "errors of the model"
LOGS = 3
"""Logs that a diagnosis looks at."""
PARTS = 4
"""Secrets that one text of an answer holds."""


class LeakingModel(ScriptedModel):
    """Every prose field of an answer holds secrets; every request is refused once with an answer that repeats it."""

    def __init__(self) -> None:
        super().__init__()
        self.planted = corpus(PLACE)
        self.called = corpus(TOOLS)
        self.erring = corpus(ERRORS)
        self.used: list[Planted] = []
        self.pods: Iterator[str] = iter(())
        self.hostile = False
        self._next = cycle(self.planted)
        self._next_call = cycle(self.called)
        self._errors = cycle(self.erring)
        self.failing = 0

    def told(self, text: str) -> str:
        """A text with secrets in it."""
        return "\n".join([text, *(self._use(self._next) for _ in range(PARTS))])

    def _use(self, source: Iterator[Planted]) -> str:
        planted = next(source)
        self.used.append(planted)
        return planted.text

    def _answer(self, shown: Shown) -> dict[str, Any]:
        document = super()._answer(shown)
        match shown.task:
            case Task.CLASSIFY:
                return {**document, "summary": self.told(document["summary"]), "service": self.told("checkout")}
            case Task.DIAGNOSE:
                claims = [{**each, "text": self.told(each["text"])} for each in document["claims"]]
                return {**document, "summary": self.told(document["summary"]), "claims": claims}
            case Task.DRAFT:
                restart = {"id": "restart-1", "type": "restart_function", "tier": "safe", "parameters": {}}
                target = str(shown.targets[0]["name"])
                actions = [{**restart, "target": target, "rollback": self.told("Nothing to undo.")}]
                if self.hostile:
                    actions = [self._hostile(each) for each in actions]
                told = {name: self.told(document[name]) for name in ("summary", "rationale")}
                return {**document, **told, "actions": actions}
        return document

    def _hostile(self, action: dict[str, Any]) -> dict[str, Any]:
        return {**action, "target": self._use(self._next), "parameters": {"value": self._use(self._next)}}

    def _wants_tools(self, shown: Shown) -> list[tuple[str, str]]:
        wanted = super()._wants_tools(shown)
        if not wanted or "pod_logs" in shown.called:
            return wanted
        logs = [("pod_logs", f'{{"pod": "{next(self.pods)}"}}') for _ in range(LOGS)]
        return [*[each for each in wanted if each[0] != "pod_logs"][:4], *logs, self._odd_call()]

    def _odd_call(self) -> tuple[str, str]:
        return self._use(self._next_call), '{"selector": "' + self._use(self._next_call).replace('"', "'")[:200] + '"}'

    async def _received(self, request: web.Request) -> Any:
        body = await super()._received(request)
        if self.failing > 0:
            self.failing -= 1
            said = f"cannot handle this request: authorization={request.headers.get('Authorization')} " + " ; ".join(
                self._use(self._errors) for _ in range(PARTS)
            )
            raise web.HTTPInternalServerError(text=said, content_type="text/plain")
        return body
