"""Investigated: from a model's proposal to a plan that is pinned to what it was drafted on."""

from __future__ import annotations

from typing import Any

import pytest

from praxis.api.incident import Guard, Incident, Usage
from praxis.api.plan import ActionTarget, Plan, Tier
from praxis.api.reasons import Reason
from praxis.errors import InvalidAnswer, NeedsPerson, RetryLater
from praxis.machine import Phase
from praxis.phases import investigated
from praxis.phases.contract import Transition
from praxis.settings import OperatorSettings, Quorum
from tests import builders
from tests.phases.world import COST, Function, World, drafted, proposed, renamed

SCALE = {"id": "scale", "type": "scale_service", "tier": "caution", "parameters": {"replicas": "3"}}
ROLLBACK = {"id": "back", "type": "rollback_deploy", "tier": "dangerous", "parameters": {"revision": "7"}}


def world() -> World:
    made = World()
    made.declare(builders.target())
    return made


async def decided(made: World, incident: Incident | None = None, **settings: Any) -> Transition:
    tools = made.tools(settings=OperatorSettings(**settings))
    decision = await investigated.reconcile(incident or builders.incident(Phase.INVESTIGATED), tools)
    assert isinstance(decision, Transition)
    return decision


async def test_a_plan_is_pinned_to_targets_guards_and_evidence_and_waits_for_a_person() -> None:
    """The write into AwaitingApproval carries plan, guards, quorum and cost, which its trail entry binds."""
    decision = await decided(world())
    plan: Plan = decision.changes["plan"]
    assert decision == Transition(
        to=Phase.AWAITING_APPROVAL,
        reason=Reason.PLAN_PROPOSED,
        message=f"plan {plan.digest[7:19]}: Restart the checkout function.",
        changes={
            "plan": plan,
            "guards": [Guard(kind="ValidatingAdmissionPolicy", name="praxis-approvals", uid="g1", generation=1)],
            "approvals_required": 1,
            "usage": Usage(model_calls=3, input_tokens=300, output_tokens=40, cost_micro_usd=500),
        },
    )
    assert (plan.revision, plan.tier, plan.model) == (1, Tier.SAFE, "qwen3.7-max-2026-01-01")
    assert plan.evidence_digest == builders.incident(Phase.INVESTIGATED).status.evidence_digest
    assert plan.recomputed(builders.INCIDENT_UID) == plan.digest
    assert plan.proposed_at == "2026-01-31T12:01:00.000000Z"


async def test_each_action_is_pinned_to_the_target_as_it_is_now() -> None:
    """uid and generation of the declared object, and the digest of its function's configuration."""
    made = World()
    made.declare(renamed(builders.target(), uid="uid-7", generation=7))
    made.function.config = "v2"
    plan: Plan = (await decided(made)).changes["plan"]
    (action,) = plan.actions
    assert action.target == ActionTarget(name="checkout-fn", uid="uid-7", generation=7, state=made.function.state)
    assert action.target.state != builders.STATE
    assert action.real


@pytest.mark.parametrize(
    ("actions", "tier", "required"),
    [
        ([{}], Tier.SAFE, 1),
        ([{}, SCALE], Tier.CAUTION, 2),
        ([SCALE, ROLLBACK], Tier.DANGEROUS, 3),
    ],
    ids=["safe", "caution", "dangerous"],
)
async def test_the_quorum_follows_the_highest_tier(actions: list[dict[str, Any]], tier: Tier, required: int) -> None:
    """One dangerous action makes the whole plan dangerous."""
    made = world()
    made.reasoner.queued["draft"].append(drafted("", *(proposed(**each) for each in actions)))
    decision = await decided(made, quorum=Quorum(safe=1, caution=2, dangerous=3))
    assert decision.changes["plan"].tier is tier
    assert decision.changes["approvals_required"] == required


@pytest.mark.parametrize(("revision", "following"), [(1, 2), (2, 3), (3, 4)])
async def test_a_further_plan_has_the_next_revision(revision: int, following: int) -> None:
    """Below the bound of four plans another one is drafted."""
    incident = builders.incident(Phase.INVESTIGATED, plan=builders.plan(revision=revision))
    decision = await decided(world(), incident)
    assert decision.to is Phase.AWAITING_APPROVAL
    assert decision.changes["plan"].revision == following


async def test_four_plans_that_did_not_help_are_enough() -> None:
    """At the bound the incident fails, where people see it, and no model is asked."""
    made = world()
    incident = builders.incident(Phase.INVESTIGATED, plan=builders.plan(revision=4))
    assert await decided(made, incident) == Transition(
        to=Phase.FAILED,
        reason=Reason.PLANS_EXHAUSTED,
        message="4 plans were drafted and none helped; this needs a person from here on",
    )
    assert made.reasoner.asked == []


async def test_without_a_target_a_person_is_needed() -> None:
    """Nothing may be acted on that nobody declared; the message says what to do."""
    made = World()
    with pytest.raises(NeedsPerson, match=r"no RemediationTarget in namespace shop.*declare one") as raised:
        await decided(made)
    assert raised.value.reason == "NoTarget"
    assert made.reasoner.asked == []


async def test_a_target_of_another_namespace_does_not_count() -> None:
    """An incident acts in its own namespace only."""
    made = World()
    made.declare(builders.target(namespace="payments"))
    with pytest.raises(NeedsPerson, match="no RemediationTarget"):
        await decided(made)


async def test_an_installation_that_differs_costs_no_tokens() -> None:
    """Without the guards nobody could be asked, so no plan is drafted."""
    made = world()
    made.cluster.fail("guards", NeedsPerson("a policy is missing", reason="InstallationDiffers"))
    with pytest.raises(NeedsPerson, match="a policy is missing"):
        await decided(made)
    assert made.reasoner.asked == []


async def test_a_function_that_cannot_be_reached_costs_no_tokens() -> None:
    """The functions are looked at before the model is asked."""
    made = world()
    made.function.dark = True
    with pytest.raises(RetryLater, match="the service does not answer"):
        await decided(made)
    assert made.reasoner.asked == []


async def test_a_real_action_on_a_function_that_does_not_run_is_no_plan() -> None:
    """Nobody is asked to approve what would surely do nothing; the attempt counts with its cost."""
    made = world()
    made.function.instances = ()
    with pytest.raises(InvalidAnswer, match="restart_function cannot be carried out on checkout-fn") as raised:
        await decided(made)
    assert raised.value.usage == COST


async def test_a_dry_run_on_a_function_that_does_not_run_is_a_plan() -> None:
    """What sends nothing needs nothing running."""
    made = world()
    made.function.instances = ()
    made.reasoner.queued["draft"].append(drafted("", proposed(**SCALE)))
    plan: Plan = (await decided(made)).changes["plan"]
    assert plan.actions[0].target.state == ""
    assert not plan.actions[0].real


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"target": "payments-fn"}, "names target 'payments-fn'; declared are: checkout-fn"),
        ({"tier": "caution"}, "is of tier safe, not caution"),
        ({"parameters": {"force": "yes"}}, "force"),
    ],
    ids=["a target that is not declared", "another tier", "a parameter that the catalogue does not have"],
)
async def test_a_proposal_that_does_not_hold_is_an_invalid_answer(action: dict[str, Any], words: str) -> None:
    """It counts as a failed attempt, with what it had cost."""
    made = world()
    made.reasoner.queued["draft"].append(drafted("", proposed(**action)))
    with pytest.raises(InvalidAnswer, match=words) as raised:
        await decided(made)
    assert raised.value.usage == COST


@pytest.mark.parametrize(
    "actions",
    [[{}, {"id": "again"}], [SCALE, SCALE]],
    ids=["two real actions", "one id twice"],
)
async def test_a_proposal_that_is_no_plan_is_an_invalid_answer(actions: list[dict[str, Any]]) -> None:
    """What the plan itself refuses is the model's failure too, not a crash that asks it again without end."""
    made = world()
    made.reasoner.queued["draft"].append(drafted("", *(proposed(**each) for each in actions)))
    with pytest.raises(InvalidAnswer) as raised:
        await decided(made)
    assert raised.value.usage == COST


async def test_a_plan_may_span_several_targets() -> None:
    """Each action carries the state of its own target's function."""
    made = world()
    made.functions["cart"] = Function(config="v9")
    second = builders.target("cart-fn")
    function = second.spec.function_compute.replace(function="cart")
    made.declare(renamed(second.replace(spec=second.spec.replace(function_compute=function)), uid="uid-cart"))
    made.reasoner.queued["draft"].append(drafted("", proposed(), proposed(**{**SCALE, "target": "cart-fn"})))
    plan: Plan = (await decided(made)).changes["plan"]
    assert [(each.target.name, each.target.state) for each in plan.actions] == [
        ("checkout-fn", builders.STATE),
        ("cart-fn", made.functions["cart"].state),
    ]
