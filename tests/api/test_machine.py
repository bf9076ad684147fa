"""The table of transitions, literally, and what is rendered from it."""

from __future__ import annotations

import itertools

import pytest

from praxis.machine import TERMINAL, TRANSITIONS, Phase, allows, mermaid, transition_rule

TABLE = {
    "New": {"Triaged", "Closed", "Failed"},
    "Triaged": {"Investigated", "Closed", "Failed"},
    "Investigated": {"AwaitingApproval", "Closed", "Failed"},
    "AwaitingApproval": {"Executing", "Investigated", "Closed", "Failed"},
    "Executing": {"Observing", "Investigated", "Closed", "ReconciliationRequired"},
    "Observing": {"Resolved", "Investigated"},
    "Resolved": set(),
    "Closed": set(),
    "Failed": set(),
    "ReconciliationRequired": set(),
}


def test_table() -> None:
    """The table is the design's, edge by edge."""
    assert {str(source): set(map(str, following)) for source, following in TRANSITIONS.items()} == TABLE


@pytest.mark.parametrize(("source", "destination"), list(itertools.product(Phase, Phase)), ids=str)
def test_allows(source: Phase, destination: Phase) -> None:
    """Staying is allowed, and so is what the table has; nothing else."""
    assert allows(source, destination) == (source == destination or destination in TABLE[source])


def test_terminal() -> None:
    """Four phases are ends."""
    assert {"Resolved", "Closed", "Failed", "ReconciliationRequired"} == TERMINAL


def test_one_door() -> None:
    """Executing is entered only from AwaitingApproval."""
    assert [source for source, following in TABLE.items() if "Executing" in following] == ["AwaitingApproval"]


def test_the_end_is_reachable() -> None:
    """From every phase that is no end, some end can be reached, and every phase can be reached from New."""
    reached = {"New"}
    for _ in TABLE:
        reached |= {each for source in reached for each in TABLE[source]}
    assert reached == set(TABLE)
    assert all(TABLE[phase] for phase in TABLE if phase not in TERMINAL)


def test_table_cannot_be_changed() -> None:
    """The table is read-only at run time."""
    with pytest.raises(TypeError):
        TRANSITIONS[Phase.NEW] = (Phase.EXECUTING,)  # type: ignore[index]


def test_transition_rule() -> None:
    """The CEL rule names each edge once."""
    assert transition_rule() == (
        "self.phase == oldSelf.phase"
        " || (oldSelf.phase == 'New' && self.phase in ['Triaged', 'Closed', 'Failed'])"
        " || (oldSelf.phase == 'Triaged' && self.phase in ['Investigated', 'Closed', 'Failed'])"
        " || (oldSelf.phase == 'Investigated' && self.phase in ['AwaitingApproval', 'Closed', 'Failed'])"
        " || (oldSelf.phase == 'AwaitingApproval' && self.phase in ['Executing', 'Investigated', 'Closed', 'Failed'])"
        " || (oldSelf.phase == 'Executing' && self.phase in"
        " ['Observing', 'Investigated', 'Closed', 'ReconciliationRequired'])"
        " || (oldSelf.phase == 'Observing' && self.phase in ['Resolved', 'Investigated'])"
    )


def test_diagram() -> None:
    """The diagram has the beginning, every edge and every end."""
    lines = mermaid().splitlines()
    assert lines[:3] == ["stateDiagram-v2", "    [*] --> New", "    New --> Triaged"]
    edges = {tuple(line.strip().split(" --> ")) for line in lines[2:] if not line.endswith("[*]")}
    assert edges == {(source, each) for source, following in TABLE.items() for each in following}
    assert lines[-4:] == [
        "    Resolved --> [*]",
        "    Closed --> [*]",
        "    Failed --> [*]",
        "    ReconciliationRequired --> [*]",
    ]
    assert len(lines) == 2 + 19 + 4
