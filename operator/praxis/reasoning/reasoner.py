"""The reasoner that the phases ask: classification, diagnosis and plan, each paid for and bounded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from praxis.api.incident import Classification, Evidence, Incident, Recalled
from praxis.api.plan import Diagnosis
from praxis.api.reasons import Reason
from praxis.api.target import RemediationTarget
from praxis.clock import Clock
from praxis.errors import InvalidAnswer, NeedsPerson, PraxisError
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
from praxis.recorder.contract import Record, Recorder, RecordKind
from praxis.settings import ModelSettings

log = logging.getLogger(__name__)

MODEL_NAME = 256


class QwenReasoner:
    """Asks Qwen: the fast model to classify, the reasoning model to diagnose and to draft.

    Every run is recorded before its answer is given out, which names the record. Nothing is asked while the recorder
    does not work: tokens would be spent on an answer that cannot be used.
    """

    def __init__(
        self, *, client: ModelClient, toolbox: Toolbox, settings: ModelSettings, clock: Clock, recorder: Recorder
    ) -> None:
        self._client = client
        self._toolbox = toolbox
        self._settings = settings
        self._clock = clock
        self._recorder = recorder

    async def classify(self, incident: Incident) -> Answered[Classification]:
        """What kind of incident it is. Raises as Reasoner says."""
        form = classification_form()
        async with self._running(incident, self._settings.fast, Operation.CLASSIFY) as session:
            answer, model = await session.fill(form, prompts.classify(incident, form.schema))
            run = await self._recorded(session, incident)
        named = line(model, MODEL_NAME)
        return Answered(answer=answer.replace(model=named, run=run), usage=session.ledger.spent, model=named, run=run)

    async def diagnose(self, scope: Scope, recalled: Sequence[Recalled]) -> Answered[Diagnosis]:
        """What is wrong, and the evidence that was gathered. Raises as Reasoner says."""
        async with self._running(scope.incident, self._settings.reasoning, Operation.DIAGNOSE) as session:
            investigation = Investigation(
                session=session,
                toolbox=self._toolbox,
                clock=self._clock,
                scope=scope,
                turns=self._settings.tool_turns,
                messages=prompts.diagnose(scope.incident, scope.targets, recalled),
            )
            answer, model = await investigation.conclude()
            run = await self._recorded(session, scope.incident, investigation.evidence)
        named = line(model, MODEL_NAME)
        return Answered(
            answer=answer.replace(model=named, run=run),
            usage=session.ledger.spent,
            model=named,
            evidence=tuple(investigation.evidence),
            run=run,
        )

    async def draft(self, incident: Incident, targets: Sequence[RemediationTarget]) -> Answered[ProposedPlan]:
        """A plan on these targets. Raises as Reasoner says, and NeedsPerson (NoTarget) without any."""
        if not targets:
            raise NeedsPerson("there is no target that a plan could name; declare one", reason=Reason.NO_TARGET)
        form = plan_form(targets)
        async with self._running(incident, self._settings.reasoning, Operation.DRAFT) as session:
            answer, model = await session.fill(form, prompts.draft(incident, targets, form.schema))
            run = await self._recorded(session, incident)
        return Answered(answer=answer, usage=session.ledger.spent, model=line(model, MODEL_NAME), run=run)

    @asynccontextmanager
    async def _running(self, incident: Incident, model: str, operation: Operation) -> AsyncIterator[Session]:
        """A run: refused while it could not be recorded, billed and recorded however it ends."""
        await self._recorder.ready()
        ledger = Ledger.of(incident, self._settings.tokens_per_incident)
        session = Session(client=self._client, ledger=ledger, model=model, operation=operation)
        with ledger.billed():
            try:
                yield session
            except PraxisError:
                await self._recorded_too(session, incident)
                raise

    async def _recorded(self, session: Session, incident: Incident, evidence: Sequence[Evidence] = ()) -> str:
        """Record the run and what it observed; the run's digest.

        Raises:
            RetryLater, NeedsPerson: the recorder does not work.
            InvalidAnswer: what the model wrote cannot be recorded, as it is far too much or no canonical JSON.
        """
        uid = incident.metadata.uid
        try:
            document = session.tape.document(uid, session.operation, prompts.VERSION)
            seen = [each.dump() for each in evidence]
            # On a thread: redacting a long run takes seconds, and the loop also serves the dispatch of others.
            run = await asyncio.to_thread(Record.of, uid, RecordKind.MODEL_RUN, document)
            observed = await asyncio.to_thread(Record.of, uid, RecordKind.EVIDENCE, seen)
        except ValueError as error:
            raise InvalidAnswer(f"the run cannot be recorded: {error}") from error
        await self._recorder.put([observed, run] if seen else [run])
        return run.digest

    async def _recorded_too(self, session: Session, incident: Incident) -> None:
        """Record a run that came to nothing. Nobody waits for it: why it came to nothing matters more."""
        if not session.tape.exchanges:
            return
        try:
            await self._recorded(session, incident)
        except PraxisError as error:
            log.warning("failed run not recorded", extra={"incident": incident.key, "error": str(error)})
