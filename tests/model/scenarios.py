"""Where the model starts, and what can happen there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from praxis.api.approval import Decision
from praxis.api.incident import Incident, Result
from praxis.api.plan import ActionType
from praxis.api.reasons import ConditionType
from praxis.machine import TERMINAL, Phase
from tests import builders
from tests.model.explorer import Behaviour, Budget, Event, Scenario
from tests.model.situation import ModelWorld
from tests.phases.world import GUARD, Answer, renamed

PAST_WINDOW, PAST_SETTLING, PAST_EXPIRY = 16.0, 26.0, 4000.0
JUMPS = (PAST_WINDOW, PAST_SETTLING, PAST_EXPIRY)
FIRST, SECOND = "inc-1", "inc-2"
BEHAVIOURS = (
    *(Behaviour(answer) for answer in Answer),
    Behaviour(rotates=False),
    Behaviour(dark=True),
)


def waiting(
    *names: str, people: Sequence[str] = ("alice",), approving: Sequence[str] | None = None, dry: bool = False
) -> Callable[[], ModelWorld]:
    """Incidents in AwaitingApproval with their approvals present; each plan is one restart, after a dry run maybe."""

    def made() -> ModelWorld:
        world = ModelWorld()
        world.declare(builders.target())
        restart, config = builders.action(), builders.action(ActionType.UPDATE_CONFIG)
        actions = [config, restart] if dry else [restart]
        for name in names:
            world.keep(
                builders.incident(
                    Phase.AWAITING_APPROVAL,
                    name=name,
                    uid=f"uid-{name}",
                    approvers=people,
                    draft=lambda **given: builders.plan(actions=actions, **given),
                )
            )
            for by in people if approving is None else approving:
                say(world, name, by, Decision.APPROVE)
        return world

    return made


def approved(*names: str) -> Callable[[], ModelWorld]:
    """Incidents that have just entered Executing."""

    def made() -> ModelWorld:
        world = ModelWorld()
        world.declare(builders.target())
        for name in names:
            states = builders.history(Phase.EXECUTING, name=name, uid=f"uid-{name}")
            world.say(builders.approval(of=states[-2], created=builders.NOW + timedelta(seconds=4)))
            world.keep(states[-1])
        return world

    return made


def say(world: ModelWorld, name: str, by: str, decision: Decision) -> bool:
    """Somebody decides on the plan of an incident; only once."""
    incident = world.incident(name)
    uid = f"{by}-{name}-{decision}".lower()
    if incident is None or incident.status.plan is None or uid in world.approvals:
        return False
    now = world.time.wall
    world.say(
        builders.approval(
            by, of=incident, decision=decision, name=uid, uid=uid, created=now, expires=now + timedelta(hours=1)
        )
    )
    return True


def no(name: str = FIRST, by: str = "carol", decision: Decision = Decision.REJECT) -> Event:
    """Somebody says no."""

    def do(world: ModelWorld) -> bool:
        incident = world.incident(name)
        open_ = incident is not None and incident.status.phase not in TERMINAL
        return open_ and say(world, name, by, decision)

    return Event(f"{by}: {decision} on {name}", do)


def yes(name: str = FIRST, by: str = "bob") -> Event:
    """Somebody approves."""
    return Event(f"{by} approves {name}", lambda world: say(world, name, by, Decision.APPROVE))


def withdrawn(name: str = FIRST, by: str = "alice") -> Event:
    """Somebody deletes an approval."""

    def do(world: ModelWorld) -> bool:
        found = [
            uid
            for uid, each in world.approvals.items()
            if (each.spec.incident_ref.name, each.spec.approver.username) == (name, by)
        ]
        for uid in found:
            del world.approvals[uid]
        return bool(found)

    return Event(f"{by}'s approval of {name} is deleted", do)


def clears(name: str = FIRST) -> Event:
    """The gateway merges a notification that everything has cleared."""

    def do(world: ModelWorld) -> bool:
        incident = world.incident(name)
        if incident is None or incident.status.phase in TERMINAL or not incident.spec.firing:
            return False
        alerts = [builders.alert(firing=False)]
        generation = incident.metadata.generation + 1
        world.keep(
            incident.replace(
                spec=incident.spec.replace(alerts=alerts), metadata=incident.metadata.replace(generation=generation)
            )
        )
        return True

    return Event(f"the alert of {name} clears", do)


def drift(world: ModelWorld) -> bool:
    """Another deployer changes the function."""
    world.function.config += "."
    return True


def declared_anew(world: ModelWorld) -> bool:
    """An admin replaces the target, which the policy lets nobody do while it is held."""
    (target,) = world.targets.values()
    if target.status.holder is not None or target.metadata.uid != builders.TARGET_UID:
        return False
    world.targets.clear()
    world.declare(renamed(builders.target(), uid="uid-target-2"))
    return True


def policies(world: ModelWorld) -> bool:
    """A policy is replaced by one that says the same."""
    world.guards = [GUARD.replace(generation=2)]
    return True


def dark(world: ModelWorld) -> bool:
    """The service stops answering."""
    world.function.dark = True
    return True


def reconciled(name: str = FIRST) -> Event:
    """A person says what became of an unknown outcome."""

    def do(world: ModelWorld) -> bool:
        incident = world.incident(name) or next((each for each in world.gone if each.metadata.name == name), None)
        intent = unknown_intent(incident)
        if incident is None or intent is None or world.reconciliations:
            return False
        world.find(builders.reconciliation("alice", of=incident, name="finding", intent_id=intent))
        return True

    return Event(f"a person reconciles {name}", do)


def unknown_intent(incident: Incident | None) -> str | None:
    """Of which nobody knows the outcome."""
    if incident is None or incident.status.phase is not Phase.RECONCILIATION_REQUIRED:
        return None
    condition = incident.status.condition(ConditionType.RECONCILED)
    if condition is not None and condition.status == "True":
        return None
    return next(
        (
            step.intent.id
            for step in incident.status.steps
            if step.intent and step.outcome and step.outcome.result is Result.UNKNOWN
        ),
        None,
    )


def deleted(name: str = FIRST) -> Event:
    """Somebody deletes an incident, which the policy lets nobody do while an intent is open."""

    def do(world: ModelWorld) -> bool:
        incident = world.incident(name)
        if incident is None or incident.status.open_step is not None:
            return False
        del world.incidents[(builders.NAMESPACE, name)]
        world.gone = (*world.gone, incident)
        return True

    return Event(f"{name} is deleted", do)


OTHERS = (
    Event("another deployer changes the function", drift),
    Event("the target is declared anew", declared_anew),
    Event("a policy is replaced", policies),
    Event("the service goes dark", dark),
)
EVENTS = (clears(), no(), no(decision=Decision.DISMISS), withdrawn(), *OTHERS)

KILLED = Scenario(
    "one operator, killed and replaced, answers lost",
    waiting(FIRST),
    processes=1,
    behaviours=BEHAVIOURS,
    jumps=(PAST_WINDOW, PAST_SETTLING),
    budget=Budget(faults=2, kills=2, fates=1, events=0, jumps=1),
)
TWO = Scenario("two operators", waiting(FIRST), behaviours=BEHAVIOURS, budget=Budget(faults=0))
PAUSED = Scenario(
    "two operators, one stopped for longer than a window",
    approved(FIRST),
    behaviours=(Behaviour(), Behaviour(Answer.LATE)),
    jumps=(PAST_SETTLING,),
    budget=Budget(faults=1, kills=0, fates=0, events=0),
)
LOST = Scenario(
    "two operators, an answer lost or late",
    waiting(FIRST),
    budget=Budget(faults=1, kills=0, events=0, jumps=0),
)
CHANGED = Scenario(
    "one operator, and people and others who change something while time passes",
    waiting(FIRST),
    processes=1,
    events=EVENTS,
    jumps=JUMPS,
    budget=Budget(faults=2, kills=0, fates=0),
)
DISTURBED = Scenario(
    "two operators, and people and others who change something",
    approved(FIRST),
    events=EVENTS,
    budget=Budget(faults=1, kills=0, fates=0, jumps=0),
)
QUORUM = Scenario(
    "two people needed, one has approved, a dry run before the real action",
    waiting(FIRST, people=("alice", "bob"), approving=("alice",), dry=True),
    processes=1,
    events=(yes(), *EVENTS, withdrawn(by="bob")),
    jumps=(PAST_SETTLING, PAST_EXPIRY),
    budget=Budget(faults=2, kills=0, fates=0, events=2),
)
PAIR = Scenario("two incidents on one function, two operators", approved(FIRST, SECOND), budget=Budget(faults=0))
UNKNOWN = Scenario(
    "two incidents on one function, an unknown outcome, and a person who looks",
    approved(FIRST, SECOND),
    processes=1,
    behaviours=(Behaviour(Answer.LATE),),
    events=(reconciled(), deleted()),
    budget=Budget(faults=2, kills=0, fates=0, events=2, jumps=0),
)
SCENARIOS = (KILLED, TWO, PAUSED, LOST, CHANGED, DISTURBED, QUORUM, PAIR, UNKNOWN)
