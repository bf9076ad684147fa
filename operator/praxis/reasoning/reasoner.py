"""The reasoner that the phases ask: classification, diagnosis and plan, each paid for and bounded."""

from __future__ import annotations

from collections.abc import Sequence

from praxis.api.incident import Classification, Incident, Recalled
from praxis.api.plan import Diagnosis
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.clock import Clock
from praxis.errors import NeedsPerson
from praxis.evidence.contract import Scope, Toolbox
from praxis.reasoning import prompts
from praxis.reasoning.answers import classification_form
from praxis.reasoning.cleaning import line
from praxis.reasoning.client import ModelClient
from praxis.reasoning.contract import Answered, ProposedPlan
from praxis.reasoning.investigation import Investigation
from praxis.reasoning.metering import Ledger, Operation
from praxis.reasoning.plan_form import plan_form
from praxis.reasoning.structured import Session
from praxis.settings import ModelSettings

MODEL_NAME = 256


class QwenReasoner:
    """Asks Qwen: the fast model to classify, the reasoning model to diagnose and to draft."""

    def __init__(self, *, client: ModelClient, toolbox: Toolbox, settings: ModelSettings, clock: Clock) -> None:
        self._client = client
        self._toolbox = toolbox
        self._settings = settings
        self._clock = clock

    async def classify(self, incident: Incident) -> Answered[Classification]:
        """What kind of incident it is. Raises as Reasoner says."""
        session = self._session(incident, self._settings.fast, Operation.CLASSIFY)
        form = classification_form()
        with session.ledger.billed():
            answer, model = await session.fill(form, prompts.classify(incident, form.schema))
        named = line(model, MODEL_NAME)
        return Answered(answer=answer.replace(model=named), usage=session.ledger.spent, model=named)

    async def diagnose(self, scope: Scope, recalled: Sequence[Recalled]) -> Answered[Diagnosis]:
        """What is wrong, and the evidence that was gathered. Raises as Reasoner says."""
        session = self._session(scope.incident, self._settings.reasoning, Operation.DIAGNOSE)
        investigation = Investigation(
            session=session,
            toolbox=self._toolbox,
            clock=self._clock,
            scope=scope,
            turns=self._settings.tool_turns,
            messages=prompts.diagnose(scope.incident, scope.targets, recalled),
        )
        with session.ledger.billed():
            answer, model = await investigation.conclude()
        named = line(model, MODEL_NAME)
        return Answered(
            answer=answer.replace(model=named),
            usage=session.ledger.spent,
            model=named,
            evidence=tuple(investigation.evidence),
        )

    async def draft(self, incident: Incident, targets: Sequence[RemediationTarget]) -> Answered[ProposedPlan]:
        """A plan on these targets. Raises as Reasoner says, and NeedsPerson (NoTarget) without any."""
        if not targets:
            raise NeedsPerson("there is no target that a plan could name; declare one", reason=Reason.NO_TARGET)
        session = self._session(incident, self._settings.reasoning, Operation.DRAFT)
        form = plan_form(targets)
        with session.ledger.billed():
            answer, model = await session.fill(form, prompts.draft(incident, targets, form.schema))
        return Answered(answer=answer, usage=session.ledger.spent, model=line(model, MODEL_NAME))

    def _session(self, incident: Incident, model: str, operation: Operation) -> Session:
        ledger = Ledger.of(incident, self._settings.tokens_per_incident)
        return Session(client=self._client, ledger=ledger, model=model, operation=operation)
