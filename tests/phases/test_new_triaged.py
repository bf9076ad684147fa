"""New and Triaged: what models are asked, and what of their answers is kept."""

from __future__ import annotations

import pytest

from praxis.api.incident import Usage
from praxis.api.reasons import Reason
from praxis.digest import digest
from praxis.errors import InvalidAnswer, NeedsPerson, RetryLater
from praxis.machine import Phase
from praxis.phases import investigated, new, triaged
from praxis.phases.contract import Transition
from tests import builders
from tests.phases.world import CLASSIFICATION, COST, DIAGNOSIS, EVIDENCE, RECALLED, World, renamed

CLEAR = {"alerts": [builders.alert(firing=False)]}
SELF_RESOLVED = Transition(
    to=Phase.CLOSED, reason=Reason.SELF_RESOLVED, message="all 1 alerts cleared before anything was done"
)


async def test_a_new_incident_is_classified_and_the_cost_is_kept() -> None:
    """New asks the fast model once, and keeps its answer and what it cost."""
    world = World()
    decision = await new.reconcile(builders.incident(Phase.NEW), world.tools())
    assert decision == Transition(
        to=Phase.TRIAGED,
        reason=Reason.CLASSIFIED,
        message="MemoryLeak (critical): Checkout is slow.",
        changes={
            "classification": CLASSIFICATION,
            "usage": Usage(model_calls=2, input_tokens=300, output_tokens=40, cost_micro_usd=500),
        },
    )
    assert world.reasoner.asked == ["classify"]


async def test_costs_add_up() -> None:
    """What an answer cost is added to what was spent before."""
    before = Usage(model_calls=1, input_tokens=10, output_tokens=5, cost_micro_usd=7)
    decision = await new.reconcile(builders.incident(Phase.NEW, usage=before), World().tools())
    assert isinstance(decision, Transition)
    assert decision.changes["usage"] == Usage(model_calls=3, input_tokens=310, output_tokens=45, cost_micro_usd=507)


@pytest.mark.parametrize("phase", [Phase.NEW, Phase.TRIAGED, Phase.INVESTIGATED])
async def test_what_has_cleared_is_closed_without_asking_a_model(phase: Phase) -> None:
    """An incident whose alerts all cleared before a plan costs nothing more."""
    from praxis.controller.reconciler import PHASES  # noqa: PLC0415  # the table says which module a phase has

    world = World()
    decision = await PHASES[phase](builders.incident(phase, spec=CLEAR), world.tools())
    assert decision == SELF_RESOLVED
    assert world.reasoner.asked == []


async def test_truncated_alerts_never_count_as_cleared() -> None:
    """Alerts that nobody sent us may fire on."""
    incident = builders.incident(Phase.NEW, spec={**CLEAR, "truncated_alerts": 1})
    decision = await new.reconcile(incident, World().tools())
    assert isinstance(decision, Transition)
    assert decision.to is Phase.TRIAGED


@pytest.mark.parametrize("error", [RetryLater("out"), NeedsPerson("no key"), InvalidAnswer("no JSON")])
@pytest.mark.parametrize(("phase", "asks"), [(Phase.NEW, "classify"), (Phase.TRIAGED, "diagnose")])
async def test_a_model_that_fails_decides_nothing(phase: Phase, asks: str, error: Exception) -> None:
    """An error of the reasoning is the phase's error: no transition comes of it."""
    world = World()
    world.reasoner.queued[asks].append(error)
    reconcile = {Phase.NEW: new.reconcile, Phase.TRIAGED: triaged.reconcile}[phase]
    with pytest.raises(type(error)) as raised:
        await reconcile(builders.incident(phase), world.tools())
    assert raised.value is error


async def test_a_triaged_incident_recalls_reads_and_is_diagnosed() -> None:
    """Triaged keeps memories, evidence with the digest that a plan will be bound to, diagnosis, target and cost."""
    world = World()
    target = world.declare(builders.target())
    decision = await triaged.reconcile(builders.incident(Phase.TRIAGED), world.tools())
    assert decision == Transition(
        to=Phase.INVESTIGATED,
        reason=Reason.DIAGNOSED,
        message="The checkout function leaks memory.",
        changes={
            "target": "checkout-fn",
            "recalled": [RECALLED],
            "evidence": EVIDENCE,
            "evidence_digest": digest([each.dump() for each in EVIDENCE]),
            "diagnosis": DIAGNOSIS,
            "usage": Usage(model_calls=3, input_tokens=300, output_tokens=40, cost_micro_usd=500),
        },
    )
    assert world.reasoner.scopes[0].targets == (target,)
    ((text, namespace, limit),) = world.memory.recalls
    assert text.startswith("MemoryLeak (critical) of checkout")
    assert (namespace, limit) == ("shop", 5)


async def test_without_a_target_the_diagnosis_is_made_all_the_same() -> None:
    """Evidence of the namespace is worth reading even where nothing can be acted on."""
    decision = await triaged.reconcile(builders.incident(Phase.TRIAGED), World().tools())
    assert isinstance(decision, Transition)
    assert decision.to is Phase.INVESTIGATED
    assert decision.changes["target"] is None


async def test_a_memory_that_fails_decides_nothing() -> None:
    """A store that is away keeps the incident where it is; no model is asked."""
    world = World()
    world.memory.errors.append(RetryLater("database is locked"))
    with pytest.raises(RetryLater, match="database is locked"):
        await triaged.reconcile(builders.incident(Phase.TRIAGED), world.tools())
    assert world.reasoner.asked == []


def named(name: str, **spec: object) -> object:
    return renamed(builders.target(name, **spec), uid=f"uid-{name}")


@pytest.mark.parametrize(
    ("target_ref", "expected"),
    [
        (None, ["a-fn", "b-fn"]),
        ({"name": "b-fn"}, ["b-fn"]),
        ({"name": "c-fn"}, ["c-fn"]),
        ({"name": "nowhere"}, []),
    ],
    ids=[
        "by labels, by name",
        "the one that is named",
        "also where labels do not match",
        "a name that nobody declared",
    ],
)
def test_which_targets_an_incident_may_act_on(target_ref: dict[str, str] | None, expected: list[str]) -> None:
    """All whose selector matches an alert, in a stable order; a named one stands alone."""
    from praxis.api.target import LabelSelector  # noqa: PLC0415

    other = LabelSelector(match_labels={"service": "payments"})
    targets = [named("b-fn"), named("c-fn", alert_selector=other), named("a-fn")]
    incident = builders.incident(Phase.TRIAGED, spec={"target_ref": target_ref})
    assert [each.metadata.name for each in triaged.matching(incident, targets)] == expected  # type: ignore[arg-type]


def test_the_evidence_digest_covers_every_observation() -> None:
    """Another excerpt, another digest."""
    changed = [EVIDENCE[0], EVIDENCE[1].replace(excerpt="state Inactive")]
    assert triaged.evidence_digest(EVIDENCE) != triaged.evidence_digest(changed)
    assert triaged.evidence_digest(EVIDENCE) != triaged.evidence_digest(EVIDENCE[:1])
    assert COST.model_calls == 2


async def test_what_cleared_after_an_earlier_plan_was_applied_does_not_say_that_nothing_was_done() -> None:
    """A remediation that was called not effective was still carried out."""
    applied = builders.incident(Phase.OBSERVING).status.steps
    decision = await investigated.reconcile(
        builders.incident(Phase.INVESTIGATED, spec=CLEAR, steps=applied), World().tools()
    )
    assert decision == Transition(
        to=Phase.CLOSED,
        reason=Reason.SELF_RESOLVED,
        message="all 1 alerts cleared before another action was taken; an earlier plan's was applied",
    )
