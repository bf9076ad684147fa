"""The guards of invariants 1 to 5 in the Python code, each with the text that removes it, and where that shows.

A cut replaces a piece of one function's source, which must be there exactly once, and puts the new code into the very
function that everybody has imported. Where two guards stand behind each other, either one alone holds: `Guard.why` says
so, and both are cut. The rules that the API server holds beside them are not asked in the model, except for the one on
intents when nothing fires, which looks at the whole object; it is cut where it would hide what the operator did.
"""

from __future__ import annotations
import __future__

import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import CodeType, FunctionType
from typing import Any

from praxis.api.approval import Decision
from praxis.api.plan import ActionType
from praxis.approval import gate as approval_gate
from praxis.approval import judgement, validity
from praxis.controller import reconciler, status
from praxis.controller.sightings import Intents
from praxis.controller.writer import StatusWriter
from praxis.machine import Phase
from praxis.phases import executing, gate, holding, investigated, outcome
from praxis.phases.send import Send
from tests import builders
from tests.model.explorer import Behaviour, Budget, Event, Scenario
from tests.model.scenarios import (
    FIRST,
    PAST_EXPIRY,
    PAST_SETTLING,
    SECOND,
    clears,
    declared_anew,
    deleted,
    drift,
    no,
    policies,
    say,
    waiting,
    withdrawn,
)
from tests.model.situation import ModelWorld
from tests.phases.processes import Api
from tests.phases.world import Answer, FunctionAdapter, World


@dataclass(frozen=True)
class Cut:
    """A piece of a function, and what stands there without the guard."""

    function: Callable[..., Any]
    old: str
    new: str


@dataclass(frozen=True)
class Guard:
    """A guard, the invariant that it belongs to, what happens without it, and the smallest scenario that shows it."""

    name: str
    invariant: int
    cuts: tuple[Cut, ...]
    scenario: Scenario
    shows: str
    why: str = ""


@contextmanager
def without(guard: Guard) -> Iterator[None]:
    """The program without a guard."""
    before = {cut.function: cut.function.__code__ for cut in guard.cuts}  # type: ignore[attr-defined]
    try:
        for function in before:
            function.__code__ = mutated(function, [cut for cut in guard.cuts if cut.function is function])  # type: ignore[attr-defined]
        yield
    finally:
        for function, code in before.items():
            function.__code__ = code  # type: ignore[attr-defined]


def mutated(function: Callable[..., Any], cuts: Sequence[Cut]) -> CodeType:
    """The code of a function with pieces of its text replaced."""
    assert isinstance(function, FunctionType)
    source = textwrap.dedent(inspect.getsource(function))
    for cut in cuts:
        times = source.count(cut.old)
        assert times == 1, f"{function.__qualname__} says {cut.old!r} {times} times"
        source = source.replace(cut.old, cut.new)
    flags = __future__.annotations.compiler_flag
    names: dict[str, Any] = {}
    exec(compile(source, inspect.getfile(function), "exec", flags, dont_inherit=True), function.__globals__, names)
    code = names[function.__name__].__code__
    assert isinstance(code, CodeType)
    return code


def scenario(
    *events: Event,
    jumps: tuple[float, ...] = (),
    fates: int = 0,
    processes: int = 1,
    behaviour: Behaviour | None = None,
    start: Callable[[], ModelWorld] | None = None,
) -> Scenario:
    """One fault of each kind that is given; no look at what ends well, as only what goes wrong is wanted."""
    budget = Budget(faults=len(events) + len(jumps) + fates, kills=0, fates=fates, events=len(events), jumps=len(jumps))
    return Scenario(
        "a guard is missing",
        start or waiting(FIRST),
        processes=processes,
        behaviours=(behaviour or Behaviour(),),
        events=events,
        jumps=jumps,
        budget=budget,
        live=False,
    )


def twice(by: str = "alice") -> Event:
    """Somebody approves a second time."""

    def do(world: ModelWorld) -> bool:
        incident = world.incident(FIRST)
        uid = f"{by}-again"
        if incident is None or incident.status.plan is None or uid in world.approvals:
            return False
        now = world.time.wall
        world.say(builders.approval(by, of=incident, name=uid, uid=uid, created=now, expires=now + timedelta(hours=1)))
        return True

    return Event(f"{by} approves again", do)


def altered(world: ModelWorld) -> bool:
    """Somebody who can write to etcd changes what the plan would do, and leaves its digest."""
    incident = world.incident(FIRST)
    if incident is None or incident.status.plan is None or incident.status.steps:
        return False
    (action,) = incident.status.plan.actions
    plan = incident.status.plan.replace(actions=[action.replace(effect="Deletes the function.")])
    world.keep(incident.replace(status=incident.status.replace(plan=plan)))
    return True


def running(world: ModelWorld) -> bool:
    """Whether the plan is being carried out."""
    incident = world.incident(FIRST)
    return incident is not None and incident.status.phase is Phase.EXECUTING


def stale() -> ModelWorld:
    """Somebody has approved another plan."""
    world = waiting(FIRST, approving=())()
    incident = world.incident(FIRST)
    assert incident is not None
    now = world.time.wall
    given = builders.approval(of=incident, created=now, uid="stale", plan_digest="sha256:" + "0" * 64)
    world.say(given)
    return world


def damaged() -> ModelWorld:
    """What was proposed was altered before anybody approved."""
    world = waiting(FIRST)()
    altered(world)
    return world


def refused() -> ModelWorld:
    """Somebody has said no before anybody looks."""
    world = waiting(FIRST)()
    say(world, FIRST, "carol", Decision.REJECT)
    return world


def drafting() -> ModelWorld:
    """Nothing is proposed yet."""
    world = ModelWorld()
    world.declare(builders.target())
    world.keep(builders.incident(Phase.INVESTIGATED, name=FIRST, uid=f"uid-{FIRST}"))
    return world


def only_dry() -> ModelWorld:
    """A plan that changes nothing."""
    config = builders.action(ActionType.UPDATE_CONFIG)
    world = ModelWorld()
    world.declare(builders.target())
    world.keep(
        builders.incident(
            Phase.AWAITING_APPROVAL,
            name=FIRST,
            uid=f"uid-{FIRST}",
            draft=lambda **given: builders.plan(actions=[config], **given),
        )
    )
    say(world, FIRST, "alice", Decision.APPROVE)
    return world


UNPROVEN = Behaviour(rotates=False)
LANDED = Behaviour(Answer.LOST_AFTER)
DRIFT = Event("another deployer changes the function", drift)
ANEW = Event("the target is declared anew", declared_anew)
POLICIES = Event("a policy is replaced", policies)
ALTERED = Event("the plan is altered", lambda world: running(world) and altered(world))
FIRING_RULE = Cut(
    Api._rules,
    "if len(after.status.steps) > len(before.status.steps) and not after.spec.firing and after.status.open_step:",
    "if False:",
)
OBJECTION = Cut(approval_gate.still_valid, "if objection is not None:", "if False:")
HELD = Cut(Send._refusal, "if not held:", "if False:")
LATE = Cut(Send._refusal, "if late > 0:", "if False:")
RECORDED = Cut(reconciler.decide, "integrity.permit(incident, decision)", "pass")
PEOPLE = ("alice", "bob")

GUARDS = (
    # 1: one door
    Guard(
        "a transition is one of the table",
        1,
        (
            Cut(status.applied, "assert allows(before.phase, transition.to)", "assert True"),
            Cut(investigated.reconcile, "to=Phase.AWAITING_APPROVAL,", "to=Phase.EXECUTING,"),
        ),
        scenario(start=drafting),
        "Investigated to Executing",
        "the check of the table stands behind each phase's own words, so a phase that says otherwise is cut too",
    ),
    Guard(
        "as many people as are needed",
        1,
        (Cut(judgement.judge, "len(counted) >= needed", "len(counted) >= 1"),),
        scenario(start=waiting(FIRST, people=PEOPLE, approving=("alice",))),
        "too few people",
    ),
    Guard(
        "each person counts once",
        1,
        (Cut(judgement._one_each, "if same_person(bind(each), bind(other), look.signatures)", "if False"),),
        scenario(twice(), start=waiting(FIRST, people=PEOPLE, approving=("alice",))),
        "somebody counted twice",
    ),
    Guard(
        "a no goes before any yes",
        1,
        (Cut(judgement.judge, "leading = _leading(standing, look)", "leading = None"), OBJECTION),
        scenario(start=refused),
        "somebody had said no",
        "acceptance and gate both look; the other holds",
    ),
    # 2: the approved plan is the plan that runs
    Guard(
        "an approval is of this very plan",
        2,
        (
            Cut(
                validity._another_plan,
                "if plan is None or not same(approval.spec.plan_digest, plan.digest):",
                "if False:",
            ),
        ),
        scenario(start=stale),
        "another plan was approved",
    ),
    Guard(
        "a damaged plan cannot be approved",
        2,
        (Cut(validity._another_plan, "not intact(incident, plan)", "False"), RECORDED),
        scenario(start=damaged),
        "another plan was approved",
        "whatever leads on from a status that is not what its trail records stands still as well",
    ),
    Guard(
        "the gate recomputes the plan's digest",
        2,
        (
            Cut(approval_gate.still_valid, "if plan is None or not intact(incident, plan):", "if False:"),
            RECORDED,
        ),
        scenario(ALTERED),
        "the plan is not what was approved",
        "whatever leads on from a status that is not what its trail records stands still as well",
    ),
    Guard(
        "the gate looks for a no that came since",
        2,
        (OBJECTION,),
        scenario(no()),
        "somebody had said no",
    ),
    Guard(
        "the gate looks whether approvals still stand",
        2,
        (
            Cut(
                approval_gate._lapsed,
                "if found is None or found.metadata.deletion_timestamp is not None:",
                "if found is None:\n        return None\n    if False:",
            ),
        ),
        scenario(withdrawn()),
        "an approval had been withdrawn",
    ),
    Guard(
        "the gate looks whether approvals have expired",
        2,
        (Cut(approval_gate._lapsed, "if standing is not Standing.CURRENT:", "if False:"),),
        scenario(jumps=(PAST_EXPIRY,)),
        "an approval had expired",
    ),
    Guard(
        "what the gate saw is not too old",
        2,
        (Cut(executing.intend, "if window_opened - looked > tools.settings.actions.dispatch_window:", "if False:"),),
        scenario(jumps=(PAST_EXPIRY,)),
        "the gate's look was too old",
    ),
    Guard(
        "the gate compares policies",
        2,
        (Cut(gate.installation_differs, "if changed or len(guards) != len(before):", "if False:"),),
        scenario(POLICIES),
        "the policies had changed",
    ),
    Guard(
        "the target is the approved one, by uid",
        2,
        (
            Cut(
                gate.target_differs,
                "each.metadata.uid == action.target.uid",
                "each.metadata.name == action.target.name",
            ),
            Cut(
                executing.declared, "each.metadata.uid == action.target.uid", "each.metadata.name == action.target.name"
            ),
        ),
        scenario(ANEW),
        "another target than was approved",
        "gate and claim both look; the other holds",
    ),
    Guard(
        "the function is as it was approved",
        2,
        (Cut(executing.intend, "if not same(baseline.state, action.target.state):", "if False:"),),
        scenario(DRIFT),
        "another state than was approved",
    ),
    Guard(
        "the function is as it was observed, right before the send",
        2,
        (Cut(FunctionAdapter.changed, "if function.dark or function.state != baseline.state:", "if False:"),),
        scenario(DRIFT),
        "another state than was approved",
        "the world's adapter stands in here; tests/actions hold the real one to the same",
    ),
    Guard(
        "the gate looks whether an alert fires",
        4,
        (Cut(gate.shut, "if not incident.spec.firing:", "if False:"), FIRING_RULE),
        scenario(clears()),
        "an intent when nothing fires",
        "a rule of the API server says the same of the whole object",
    ),
    Guard(
        "the intent rests on the very object that was read",
        4,
        (Cut(status.fence, "if versioned:", "if False:"), FIRING_RULE),
        scenario(clears()),
        "an intent when nothing fires",
        "a rule of the API server says the same of the whole object",
    ),
    # 4: intent before dispatch
    Guard(
        "a write is fenced by the trail's head",
        4,
        (
            Cut(
                status.fence,
                'tests.append({"op": "test", "path": "/status/head", "value": status.head})',
                "pass",
            ),
            Cut(status.fence, "if versioned:", "if False:"),
        ),
        scenario(processes=2),
        "a step changed",
        "the intent tests the resourceVersion too",
    ),
    Guard(
        "only its own 2xx lets a process send",
        4,
        (Cut(StatusWriter.carry_out, "if committed.acknowledged:", "if True:"),),
        scenario(fates=1),
        "a send without the intent's 2xx",
    ),
    Guard(
        "nothing is sent past the window",
        4,
        (LATE,),
        scenario(jumps=(PAST_SETTLING,)),
        "a send past its window",
    ),
    Guard(
        "others wait until the writer can no longer send",
        4,
        (Cut(executing.settle, "if remaining > 0:", "if False:"),),
        scenario(processes=2),
        "a send after its outcome",
    ),
    Guard(
        "who finds an intent never acts on it",
        4,
        (
            Cut(
                executing.reconcile,
                "return await settle(incident, incident.status.open_step, tools)",
                "return await intend(incident, plan.actions[0], tools, looked=tools.clock.boottime())",
            ),
        ),
        scenario(processes=2),
        "two open intents",
    ),
    Guard(
        "a target that another incident holds is left alone",
        4,
        (
            Cut(
                holding.claim,
                "holder.incident_uid != incident.metadata.uid and await stands(target, holder, tools)",
                "False",
            ),
        ),
        scenario(start=waiting(FIRST, SECOND), processes=2),
        "two incidents act on one function",
    ),
    Guard(
        "a claim is a compare-and-swap",
        4,
        (Cut(World.swap, "stored.metadata.resource_version != target.metadata.resource_version", "False"),),
        scenario(start=waiting(FIRST, SECOND), processes=2),
        "two incidents act on one function",
        "the world stands in for the API server here; tests/controller hold the real patch to the same",
    ),
    Guard(
        "an unknown outcome holds the target",
        4,
        (Cut(holding.stands, 'return reconciled is None or reconciled.status != "True"', "return False"),),
        scenario(start=waiting(FIRST, SECOND), behaviour=Behaviour(Answer.LATE)),
        "a send while an outcome is unknown",
    ),
    Guard(
        "an unknown outcome holds the target when its incident is gone",
        4,
        (Cut(holding.stands, "return releases(holder, found) is None", "return False"),),
        scenario(deleted(), start=waiting(FIRST, SECOND), behaviour=Behaviour(Answer.LATE)),
        "a send while an outcome is unknown",
    ),
    # 5: three outcomes
    Guard(
        "Applied only by proof",
        5,
        (Cut(outcome.believed, "Result.APPLIED if applied else Result.UNKNOWN", "Result.APPLIED"),),
        scenario(behaviour=Behaviour(Answer.LOST_BEFORE)),
        "Applied, and nothing landed",
    ),
    Guard(
        "an ambiguous send is not called NotApplied",
        5,
        (Cut(Send._outcome, "{Sent.NEVER_SENT, Sent.REJECTED}", "{Sent.NEVER_SENT, Sent.REJECTED, Sent.AMBIGUOUS}"),),
        scenario(behaviour=LANDED),
        "NotApplied, and it landed",
    ),
    Guard(
        "only the writer concludes NotApplied, of what it never sent",
        5,
        (Cut(Intents.never_sent, "return intent_id in self._given_up", "return True"),),
        scenario(processes=2),
        "NotApplied by another process",
    ),
    Guard(
        "whoever settles concludes Applied or Unknown",
        5,
        (
            Cut(
                executing.settle,
                "outcome = believed(tools, verdict)",
                "outcome = concluded(tools, Result.NOT_APPLIED, Reason.NEVER_SENT, verdict.message)",
            ),
        ),
        scenario(jumps=(PAST_SETTLING,), processes=2),
        "NotApplied by another process",
    ),
    Guard(
        "an unknown outcome stops the plan",
        5,
        (Cut(executing.stopped, "if Result.UNKNOWN in results:", "if False:"),),
        scenario(behaviour=UNPROVEN),
        "walked back",
    ),
    Guard(
        "a dry run is no success",
        5,
        (
            Cut(
                executing.done,
                "if Result.APPLIED in results:\n        return Transition(\n            to=Phase.OBSERVING,",
                "if True:\n        return Transition(\n            to=Phase.OBSERVING,",
            ),
            Cut(executing.done, "message_of(steps, Result.APPLIED)", "len(steps)"),
        ),
        scenario(start=only_dry),
        "success without an applied action",
    ),
)
