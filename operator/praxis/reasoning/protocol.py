"""The chat-completions protocol as PRAXIS reads it: only what is used, everything else ignored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import BaseModel, Field

from praxis.api.incident import Usage
from praxis.evidence.contract import ToolSpec
from praxis.reasoning.metering import Operation, Tokens

Message: TypeAlias = dict[str, Any]
CHARACTERS_PER_TOKEN = 3
"""For a server that reports no usage; English has about four, and a budget should err on the dear side."""


@dataclass(frozen=True)
class Schema:
    """A JSON Schema that an answer must hold, by the name the protocol gives it."""

    name: str
    document: Mapping[str, Any]


@dataclass(frozen=True)
class ChatRequest:
    """One turn of a conversation."""

    model: str
    operation: Operation
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    schema: Schema | None = None
    thinking: bool = False


@dataclass(frozen=True)
class ToolCall:
    """A tool that the model wants called; `arguments` is the JSON it wrote, unchecked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """One answer of a model of the family that was asked, and what it cost."""

    content: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    model: str
    usage: Usage

    def echoed(self) -> Message:
        """The answer as the next request repeats it; what the model thought is not part of it."""
        message: Message = {"role": "assistant", "content": self.content}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        return message


class WireFunction(BaseModel):
    """The function of a tool call."""

    name: str = ""
    arguments: str = ""


class WireToolCall(BaseModel):
    """A tool call."""

    id: str = ""
    function: WireFunction


class WireMessage(BaseModel):
    """What the model says."""

    content: str | None = None
    tool_calls: list[WireToolCall] | None = None
    refusal: str | None = None


class WireChoice(BaseModel):
    """One of the choices; PRAXIS asks for one."""

    finish_reason: str | None = None
    message: WireMessage


class WireUsage(BaseModel):
    """Tokens as OpenAI, Model Studio and OpenRouter report them."""

    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    prompt_tokens_details: dict[str, Any] | None = None
    completion_tokens_details: dict[str, Any] | None = None

    def tokens(self) -> Tokens:
        """The counts that are priced and measured."""
        return Tokens(
            input=self.prompt_tokens,
            output=self.completion_tokens,
            cached=_count(self.prompt_tokens_details, "cached_tokens", self.prompt_tokens),
            reasoning=_count(self.completion_tokens_details, "reasoning_tokens", self.completion_tokens),
        )


class WireCompletion(BaseModel):
    """A chat completion."""

    model: str
    choices: list[WireChoice] = Field(min_length=1)
    usage: WireUsage | None = None


class WireVector(BaseModel):
    """One embedding."""

    index: int
    embedding: list[float]


class WireEmbeddings(BaseModel):
    """An answer to an embedding request."""

    model: str
    data: list[WireVector]
    usage: WireUsage | None = None


def estimated(sent: Any, received: str) -> Tokens:
    """Tokens of a call whose answer names none, so that the budget bounds such a server too."""
    asked = len(json.dumps(sent, ensure_ascii=False, default=str))
    return Tokens(input=asked // CHARACTERS_PER_TOKEN + 1, output=len(received) // CHARACTERS_PER_TOKEN + 1)


def _count(details: Mapping[str, Any] | None, name: str, most: int) -> int:
    value = (details or {}).get(name)
    return min(max(value, 0), most) if isinstance(value, int) else 0
