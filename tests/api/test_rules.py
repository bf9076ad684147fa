"""The rules of the CRDs on a real kube-apiserver, tried as cluster-admin with no policy bound.

What the rules refuse here, nobody can do: neither a bug of the operator nor an admin.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Callable, Iterator

import pytest

from praxis.api import crds
from praxis.api.incident import Incident
from praxis.api.rules import Rule
from praxis.controlplane import ControlPlane
from praxis.errors import Refused
from praxis.machine import TRANSITIONS, Phase
from tests import builders
from tests.api.cases import ALLOWED, REFUSED, Allowed, Case
from tests.api.lab import Document, Lab

pytestmark = pytest.mark.controlplane

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PAIRS = [pair for pair in itertools.product(map(str, Phase), map(str, Phase)) if pair[0] != pair[1]]
EDGES = {(str(source), str(each)) for source, following in TRANSITIONS.items() for each in following}
ACTIVE_SECONDS = 20.0
"""For a changed CRD to be in force; it takes a few tenths of a second."""


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
async def test_refused(lab: Lab, case: Case) -> None:
    """The API server refuses the attempt to cluster-admin, and says which rule it breaks."""
    with pytest.raises(Refused) as refusal:
        await case.attempt(lab)
    assert case.says in str(refusal.value)


@pytest.mark.parametrize("case", ALLOWED, ids=lambda case: case.name)
async def test_allowed(lab: Lab, case: Allowed) -> None:
    """The API server lets the attempt pass."""
    await case.attempt(lab)


@pytest.mark.parametrize(("source", "destination"), sorted(EDGES), ids="-".join)
async def test_edge(lab: Lab, source: str, destination: str) -> None:
    """The API server lets an incident along every edge of the table."""
    stored = await legal(lab, source, destination)
    assert stored["status"]["phase"] == destination


@pytest.mark.parametrize(("source", "destination"), sorted(set(PAIRS) - EDGES), ids="-".join)
async def test_no_other_edge(lab: Lab, source: str, destination: str) -> None:
    """The API server refuses every other pair of phases to cluster-admin."""
    stored = await lab.at(source)
    with pytest.raises(Refused, match=f"no transition from {source} to {destination}") as refusal:
        await lab.go(stored, destination)
    assert refusal.value.status == 422


def test_pairs() -> None:
    """There are ten phases, and nineteen edges among their ninety pairs."""
    assert (len(PAIRS), len(EDGES)) == (90, 19)


async def test_status_on_creation_is_dropped(lab: Lab) -> None:
    """Whatever status a creator sends, an incident begins as New with an empty trail."""
    document = builders.manifest(builders.history(Phase.NEW)[0])
    document["status"] = {"phase": "Resolved", "trail": [], "approvals": []}
    stored = await lab.create(document, Incident)
    assert stored["status"] == {
        "phase": "New",
        "phaseTimes": {},
        "conditions": [],
        "recalled": [],
        "evidence": [],
        "corrections": [],
        "guards": [],
        "approvals": [],
        "steps": [],
        "trail": [],
    }


async def test_whole_lives_of_the_models(lab: Lab) -> None:
    """The API server stores a life that the models describe, write by write, and gives back exactly what was sent."""
    for phase in Phase:
        states = builders.history(phase)
        stored = await lab.create(builders.manifest(states[0]), Incident)
        for before, after in itertools.pairwise(states):
            if after.spec != before.spec:
                await lab.merge(stored, **after.dump()["spec"])
            stored = await lab.write_status(stored, after.dump()["status"])
            assert stored["status"] == after.dump()["status"]
            assert Incident.parse(stored).status == after.status


# ---- a rule that nothing needs is a rule that nothing tests ----

EVERY_RULE = [(definition, rule) for definition in crds.DEFINITIONS for rule in definition.rules]


def test_rule_names() -> None:
    """Each kind's rules have names and messages of their own: a refusal names one rule."""
    for definition in crds.DEFINITIONS:
        assert len({rule.name for rule in definition.rules}) == len(definition.rules)
        assert len({rule.message for rule in definition.rules}) == len(definition.rules)


def test_cases_name_rules() -> None:
    """Every case names a rule of its kind, and what it expects to be told is what that rule says."""
    by_name = {(definition.resource, rule.name): rule for definition, rule in EVERY_RULE}
    for case in REFUSED:
        if case.rule is not None and case.rule not in {"transition", "approval-expires"}:
            assert case.says in by_name[case.kind, case.rule].message, case.name


@pytest.fixture(scope="module")
def whole_again(bare: ControlPlane) -> Iterator[None]:
    """Puts the rules back that the tests below drop."""
    yield
    for definition in crds.DEFINITIONS:
        bare.request("PUT", f"{CRDS}/{definition.name}", replacement(bare, definition))


@pytest.mark.usefixtures("whole_again")
@pytest.mark.parametrize(
    ("definition", "rule"), EVERY_RULE, ids=lambda each: each.name if isinstance(each, Rule) else each.resource.kind
)
async def test_nothing_else_refuses(
    bare: ControlPlane,
    lab: Lab,
    definition: crds.Definition,
    rule: Rule,
    record_property: Callable[[str, object], None],
) -> None:
    """Without the rule, one of its cases passes: the rule is needed, and its case tests it and nothing else."""
    kept = tuple(each for each in definition.rules if each is not rule)
    mutant = dataclasses.replace(definition, rules=kept)
    bare.request("PUT", f"{CRDS}/{definition.name}", replacement(bare, mutant))
    for case in REFUSED:
        if case.rule == rule.name and case.kind is definition.resource and await passes(lab, case):
            record_property("guard", f"{definition.resource.kind}: {rule.message}")
            record_property("caught_by", f"tests/api/test_rules.py::test_refused[{case.name}]")
            return
    pytest.fail(f"no case needs {rule.name}: every one is refused without it too")


async def passes(lab: Lab, case: Case) -> bool:
    """Whether the attempt passes once the dropped rule is no longer in force."""
    async with asyncio.timeout(ACTIVE_SECONDS):
        while True:
            try:
                await case.attempt(lab)
            except Refused as refusal:
                if case.says not in str(refusal):
                    return False
                await asyncio.sleep(0.05)
            else:
                return True


def replacement(bare: ControlPlane, definition: crds.Definition) -> Document:
    """The CRD as it is installed, with the spec of this definition."""
    installed = bare.request("GET", f"{CRDS}/{definition.name}")
    return {**installed, "spec": crds.document(definition)["spec"]}


async def legal(lab: Lab, source: str, destination: str) -> Document:
    """Take an edge of the table with all that it needs."""
    match (source, destination):
        case ("Executing", "Observing"):
            stored = await lab.outcome("Applied")
        case ("Executing", "ReconciliationRequired"):
            stored = await lab.outcome("Unknown")
        case ("Observing", "Resolved"):
            stored = await lab.cleared()
        case _:
            stored = await lab.at(source)
    return await lab.go(stored, destination)
