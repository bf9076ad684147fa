"""What a read-only tool looks like to the model and to the tool loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from praxis.api.incident import Incident
from praxis.api.target import RemediationTarget


@dataclass(frozen=True)
class Scope:
    """What an incident may look at: its namespace and the targets declared there."""

    incident: Incident
    targets: tuple[RemediationTarget, ...]

    @property
    def namespace(self) -> str:
        """The incident's namespace."""
        return self.incident.metadata.namespace


@dataclass(frozen=True)
class Observation:
    """What a tool saw: bounded, redacted; `digest` is of the whole redacted result."""

    query: str
    excerpt: str
    truncated: bool
    digest: str


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the chat-completions protocol describes it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class FunctionReader(Protocol):
    """Reads a declared function with that target's own credentials. Synchronous: it is called on a thread."""

    def describe(self, target: RemediationTarget) -> Mapping[str, Any]:
        """What is known of the function, with the service's own field names.

        `state`, `stateReason`, `lastUpdateStatus`, `lastUpdateStatusReason`, `lastModifiedTime` as the service gives
        them; `environmentNames`, without values; `instances`, the active ones, each with `id` and `created`
        (milliseconds since 1970); `allInstancesListed`, false when there were more.

        Raises:
            PraxisError: the service could not be asked, or said no.
        """
        ...


class Toolbox(Protocol):
    """The tools of one operator."""

    def specs(self) -> Sequence[ToolSpec]:
        """The tools that are configured."""
        ...

    async def call(self, scope: Scope, name: str, arguments: str) -> Observation:
        """Call a tool with the JSON that the model wrote.

        Never raises for what the model did or for an outage: an unknown tool, invalid arguments, a name outside the
        scope or an unreachable source is an Observation whose excerpt begins with `error:` and says what is wrong.
        """
        ...
