"""A whole life by the real operator, exported with the records that it kept, and proved without the cluster."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from praxis.cli import main
from praxis.cli.verification import Report, verify
from praxis.demo.stack import Service, Stack
from praxis.digest import digest
from praxis.machine import Phase
from praxis.recorder.contract import KIND, Record
from tests.e2e.life import PATIENCE_SECONDS, approve, begin, clear, praxis, reached

pytestmark = [pytest.mark.e2e, pytest.mark.controlplane]


@pytest.fixture
def bundle(stack: Stack, service: Callable[[], Service], tmp_path: Path) -> Path:
    """The export of an incident whose first plan was sent back and whose second was carried out."""
    stack.start_operator()
    used = service()
    first = begin(stack, used)
    name = first.metadata.name
    revised = praxis(stack, "revise", name, "--yes", "--correction", "name the owner in the summary", person="bob")
    assert revised.returncode == 0, revised.stderr
    second = stack.wait(
        name,
        lambda each: each.status.plan is not None and each.status.plan.revision == 2,
        timeout=PATIENCE_SECONDS,
    )
    approve(stack, second)
    clear(stack, used, reached(stack, name, Phase.OBSERVING))
    reached(stack, name, Phase.RESOLVED)
    file = tmp_path / "bundle.json"
    recorder = str(stack.directory / "recorder.db")
    exported = praxis(stack, "trail", "export", name, "-o", str(file), "--records", recorder)
    assert (exported.returncode, exported.stderr) == (0, "")
    return file


def parts(items: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]], list[Record]]:
    """The incident, what people said, the records."""
    records = [Record.imported(each) for each in items if each["kind"] == KIND]
    return items[0], [each for each in items[1:] if each["kind"] != KIND], records


def checked(items: list[dict[str, Any]]) -> Report:
    incident, statements, records = parts(items)
    return verify(incident, statements, records)


def test_a_life_is_proved_with_all_its_records(bundle: Path) -> None:
    """Nothing is absent; the plan that was sent back is there as it was; altering it is found; the YAML alone holds."""
    shown = CliRunner().invoke(main, ["trail", "verify", str(bundle), "--require-records"])
    assert shown.exit_code == 0, shown.output
    items = json.loads(bundle.read_text())["items"]
    incident, _, records = parts(items)
    trail = incident["status"]["trail"]
    by_digest = {each.digest: each for each in records}

    bound = [each["digest"] for each in trail if each["digest"]]
    assert [each for each in bound if each not in by_digest] == []
    plans = [by_digest[each["digest"]].document["plan"] for each in trail if each["phase"] == "AwaitingApproval"]
    assert [each["revision"] for each in plans] == [1, 2]
    assert plans[1] == incident["status"]["plan"]
    operations = [
        by_digest[each["run"]].document["operation"] for each in (incident["status"]["classification"], *plans)
    ]
    assert operations == ["classify", "draft", "draft"]
    diagnosis = by_digest[incident["status"]["diagnosis"]["run"]].document
    results = [each["content"] for each in diagnosis["messages"] if each["role"] == "tool"]
    assert len(results) >= 2
    assert by_digest[incident["status"]["evidenceDigest"]].document == incident["status"]["evidence"]
    assert digest(diagnosis) == incident["status"]["diagnosis"]["run"]

    forged = copy.deepcopy(items)
    [former] = [each for each in forged if each["kind"] == KIND and each["digest"] == trail[2]["digest"]]
    former["document"]["plan"]["summary"] = "Nothing was ever proposed."
    assert checked(forged).problems[0].startswith(f"trail entry 2: the record {trail[2]['digest']} was altered")
    alone = checked(items[:1])
    assert (alone.problems, len(alone.missing)) == ([], 6)
