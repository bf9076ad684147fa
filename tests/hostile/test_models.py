"""Whatever comes back from the model service, in every task: an answer that holds its form, or PRAXIS' own error."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Any

from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from praxis.api.incident import Classification
from praxis.api.plan import TIERS, Diagnosis
from praxis.demo.scripted.faults import Fault
from praxis.demo.scripted.reading import Shown
from praxis.demo.scripted.server import ScriptedModel
from praxis.errors import PraxisError
from praxis.reasoning.contract import ProposedPlan
from tests import builders
from tests.hostile.strategies import VALUES, clear, damaged
from tests.reasoning.parts import House, house, incident, investigated, scope

TASKS = ("classify", "diagnose", "draft")


class Hostile(ScriptedModel):
    """Damages its answers, or the documents that they are wrapped in, by what hypothesis draws."""

    def __init__(self, data: st.DataObject, *, wrapped: bool) -> None:
        super().__init__()
        self._data = data
        self._wrapped = wrapped
        self.armed = False

    def _answer(self, shown: Shown) -> dict[str, Any]:
        answer = super()._answer(shown)
        if not self.armed or self._wrapped:
            return answer
        spoilt: Any = self._data.draw(damaged(answer, most=4) | VALUES)
        return spoilt  # type: ignore[no-any-return]

    def _completion(self, body: dict[str, Any], message: dict[str, Any], fault: Fault | None) -> web.StreamResponse:
        answered = super()._completion(body, message, fault)
        if not self.armed or not self._wrapped:
            return answered
        assert isinstance(answered, web.Response)
        document = json.loads(answered.text or "")
        return web.json_response(self._data.draw(damaged(document, most=4) | VALUES))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TASKS), st.booleans(), st.data())
async def test_any_answer(task: str, wrapped: bool, data: st.DataObject) -> None:
    """A plan, where one comes of it, is one of catalogue actions on the declared target."""
    async with house(model=Hostile(data, wrapped=wrapped)) as built:
        at = incident() if task != "draft" else await investigated(built, incident())
        assert isinstance(built.model, Hostile)
        built.model.armed = True
        try:
            answered = await asked(built, task, at)
        except PraxisError as error:
            clear(error)
            return
        if isinstance(answered, ProposedPlan):
            assert {each.target for each in answered.actions} == {"checkout-fn"}
            assert all(each.tier is TIERS[each.type] for each in answered.actions)
        elif isinstance(answered, Classification):
            assert Classification.model_validate(answered.dump()) == answered
        else:
            assert isinstance(answered, Diagnosis)
            assert Diagnosis.model_validate(answered.dump()) == answered


async def asked(built: House, task: str, at: Any) -> Any:
    """Ask for a task's answer."""
    reasoner = built.reasoner
    answers: dict[str, Any] = {
        "classify": lambda: reasoner.classify(at),
        "diagnose": lambda: reasoner.diagnose(scope(at), ()),
        "draft": lambda: reasoner.draft(at, [builders.target()]),
    }
    answering: Awaitable[Any] = answers[task]()
    return (await answering).answer
