"""Answers held to a form: parsed strictly, validated, repaired once, then refused.

A session binds the client to one incident's ledger, so that every answer is paid for, also one that does not hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from praxis.errors import InvalidAnswer, PraxisError
from praxis.evidence.contract import ToolSpec
from praxis.reasoning.cleaning import bounded
from praxis.reasoning.client import ModelClient
from praxis.reasoning.contract import spent_on
from praxis.reasoning.metering import Ledger, Operation
from praxis.reasoning.prompts import repair
from praxis.reasoning.protocol import ChatRequest, Message, Reply, Schema
from praxis.reasoning.tape import Tape

Answer = TypeVar("Answer")

ANSWER_CHARACTERS = 256 * 1024
"""Longest answer that is parsed; a plan has some thousand characters."""
PROBLEM_CHARACTERS = 1024
PROBLEMS = 8
INVALID_CHARACTERS = 700
"""A condition's message has 1,024 characters for this and what is said around it."""
FENCED = re.compile(r"\s*```(?:json|JSON)?[ \t]*\n(?P<inside>.*?)\n?[ \t]*```\s*", re.DOTALL)


class Unacceptable(ValueError):
    """An answer does not hold; the message is what the model is told, literally."""


@dataclass(frozen=True)
class Form(Generic[Answer]):
    """What an answer must be: its schema for the model, and the reader that has the last word.

    `read` raises Unacceptable or pydantic.ValidationError.
    """

    schema: Schema
    read: Callable[[Any], Answer]

    def accept(self, reply: Reply) -> Answer:
        """The answer in a reply.

        Raises:
            Unacceptable: it does not hold.
        """
        if reply.finish_reason == "length":
            raise Unacceptable("the answer was cut off at the output limit; answer more briefly")
        try:
            return self.read(parsed(reply.content))
        except ValidationError as error:
            raise Unacceptable(described(error)) from error


@dataclass(frozen=True)
class Session:
    """Asks one model about one incident, within its budget."""

    client: ModelClient
    ledger: Ledger
    model: str
    operation: Operation
    tape: Tape = field(default_factory=Tape)

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Schema | None = None,
        thinking: bool = False,
    ) -> Reply:
        """One turn. Raises RetryLater (also BudgetSpent), NeedsPerson, InvalidAnswer."""
        self.ledger.require()
        request = ChatRequest(
            model=self.model,
            operation=self.operation,
            messages=messages,
            tools=tools,
            schema=schema,
            thinking=thinking,
        )
        try:
            reply = await self.client.chat(request, self.tape)
        except PraxisError as error:
            self.ledger.add(spent_on(error))
            raise
        self.ledger.add(reply.usage)
        return reply

    async def fill(self, form: Form[Answer], messages: Sequence[Message]) -> tuple[Answer, str]:
        """A form filled in, and the model that did; one repair turn quotes what was wrong.

        The JSON modes are listed for non-thinking calls only, so it is asked without thinking.

        Raises:
            InvalidAnswer: neither the answer nor its repair holds.
        """
        reply = await self.ask(messages, schema=form.schema)
        try:
            return form.accept(reply), reply.model
        except Unacceptable as problem:
            self.client.metrics.repairs.labels(self.model, self.operation).inc()
            turn: list[Message] = [{"role": "assistant", "content": reply.content or "(empty)"}, repair(str(problem))]
        reply = await self.ask([*messages, *turn], schema=form.schema)
        try:
            return form.accept(reply), reply.model
        except Unacceptable as problem:
            what = bounded(str(problem), INVALID_CHARACTERS)
            raise InvalidAnswer(f"the model's {form.schema.name} does not hold, also repaired: {what}") from problem


def parsed(content: str) -> Any:
    """The one JSON document that an answer is, bare or in a Markdown fence.

    Raises:
        Unacceptable: it is none, or an ambiguous one: a key twice, NaN, Infinity.
    """
    if len(content) > ANSWER_CHARACTERS:
        raise Unacceptable(f"the answer exceeds {ANSWER_CHARACTERS} characters")
    fenced = FENCED.fullmatch(content)
    text = fenced["inside"] if fenced else content
    if not text.strip():
        raise Unacceptable("the answer is empty; answer with one JSON object")
    try:
        return json.loads(text, object_pairs_hook=_unambiguous, parse_constant=_no_constant)
    except Unacceptable:
        raise
    except (ValueError, RecursionError) as error:
        raise Unacceptable(f"the answer is not one JSON document: {bounded(str(error), 200)}") from error


def described(error: ValidationError) -> str:
    """What is wrong, where; the first few problems."""
    problems = [
        f"{'.'.join(map(str, each['loc'])) or 'the answer'}: {each['msg']}"
        for each in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    return bounded("; ".join(problems[:PROBLEMS]), PROBLEM_CHARACTERS)


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise Unacceptable("a key stands twice in one object")
    return document


def _no_constant(name: str) -> Any:
    raise Unacceptable(f"{name} is not JSON")
