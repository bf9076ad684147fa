"""The bounded tool loop of a diagnosis: the model looks through read-only tools, then it must conclude."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from praxis.api import bounds
from praxis.api.incident import Evidence
from praxis.api.plan import Diagnosis
from praxis.clock import Clock, rfc3339
from praxis.evidence.contract import Observation, Scope, Toolbox
from praxis.reasoning.answers import diagnosis_form
from praxis.reasoning.cleaning import bounded, line
from praxis.reasoning.prompts import answer_now, observation, refused_call
from praxis.reasoning.protocol import Message, Reply, ToolCall
from praxis.reasoning.structured import Session, Unacceptable
from praxis.redaction import redact

CALLS_PER_TURN = 8
TOOL_NAME = 64
QUERY = 1024


@dataclass
class Investigation:
    """One diagnosis in the making.

    `turns` is how often the model may call tools; at most EVIDENCE observations are made, CALLS_PER_TURN at once.
    """

    session: Session
    toolbox: Toolbox
    clock: Clock
    scope: Scope
    turns: int
    messages: list[Message]
    evidence: list[Evidence] = field(default_factory=list)
    asked: dict[tuple[str, str], str] = field(default_factory=dict)
    """Which observation answered a call: the same call again is answered from here, so a loop gathers nothing."""

    async def conclude(self) -> tuple[Diagnosis, str]:
        """Look, then the diagnosis and the model that gave it. Raises RetryLater, NeedsPerson, InvalidAnswer."""
        for _ in range(self.turns):
            reply = await self.session.ask(self.messages, tools=self.toolbox.specs(), thinking=True)
            self.messages.append(reply.echoed())
            if not reply.tool_calls:
                if (accepted := self._accepted(reply)) is not None:
                    return accepted, reply.model
                break
            before = len(self.evidence)
            self.messages += await self._observe(reply.tool_calls)
            # A turn that showed nothing new is a loop; another one would only cost.
            if len(self.evidence) in (before, bounds.EVIDENCE):
                break
        form = diagnosis_form([each.id for each in self.evidence])
        return await self.session.fill(form, [*self.messages, answer_now(form.schema)])

    def _accepted(self, reply: Reply) -> Diagnosis | None:
        """A model that is done may answer in the form already; if not, it is asked for it."""
        try:
            return diagnosis_form([each.id for each in self.evidence]).accept(reply)
        except Unacceptable:
            return None

    async def _observe(self, calls: Sequence[ToolCall]) -> list[Message]:
        """The results of one turn's calls, in their order; each call of the protocol needs a result."""
        room = min(bounds.EVIDENCE - len(self.evidence), CALLS_PER_TURN)
        fresh = list(dict.fromkeys((call.name, call.arguments) for call in calls))
        made = [each for each in fresh if each not in self.asked][:room]
        seen = await asyncio.gather(*(self.toolbox.call(self.scope, *each) for each in made))
        now = self.clock.now()
        results = {}
        for each, what in zip(made, seen, strict=True):
            results[each] = self._record(each, what, now)
        return [self._result(call, results) for call in calls]

    def _record(self, call: tuple[str, str], seen: Observation, now: datetime) -> str:
        # Bounded again: the excerpt goes to status, whose bound the API server holds.
        excerpt = redact(seen.excerpt)
        observed = Observation(
            query=line(seen.query, QUERY),
            excerpt=bounded(excerpt, bounds.EXCERPT),
            truncated=seen.truncated or len(excerpt) > bounds.EXCERPT,
            digest=seen.digest,
        )
        evidence_id, tool = f"e{len(self.evidence) + 1}", line(call[0], TOOL_NAME)
        self.asked[call] = evidence_id
        self.evidence.append(
            Evidence(
                id=evidence_id,
                tool=tool,
                query=observed.query,
                excerpt=observed.excerpt,
                truncated=observed.truncated,
                digest=observed.digest,
                time=rfc3339(now),
            )
        )
        return observation(evidence_id, tool, observed)

    def _result(self, call: ToolCall, results: dict[tuple[str, str], str]) -> Message:
        key = (call.name, call.arguments)
        if key in results:
            content = results.pop(key)
        elif key in self.asked:
            content = refused_call(f"the same call was answered already, see {self.asked[key]}")
        elif len(self.evidence) >= bounds.EVIDENCE:
            content = refused_call(f"{bounds.EVIDENCE} observations are the limit; conclude with what you have")
        else:
            content = refused_call(f"at most {CALLS_PER_TURN} calls a turn; call again if it is still needed")
        return {"role": "tool", "tool_call_id": call.id, "content": content}
