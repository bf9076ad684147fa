"""A trail that a real API server stored is exported by a person and proved without it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from praxis.api.approval import IncidentApproval, IncidentReconciliation
from praxis.api.incident import Incident
from praxis.api.reasons import Reason
from praxis.cli import main
from praxis.controller.status import applied
from praxis.machine import Phase
from praxis.phases.contract import Transition
from praxis.phases.decisions import decided
from tests.builders import OPERATOR, bound
from tests.cli.shop import Shop

pytestmark = pytest.mark.controlplane


def executing(shop: Shop) -> None:
    """Alice approves on the API server, and the operator goes by what is stored of it."""
    waiting = shop.incident()
    shop.run("approve", "checkout-latency-1", "--yes", "--timeout", "0")
    given = IncidentApproval.model_validate(shop.stored(IncidentApproval)[0])
    # A server that has just learnt of a CRD answers its first list with 429; kubectl waits for that.
    assert shop.stored(IncidentReconciliation) == []
    entering = Transition(
        to=Phase.EXECUTING,
        reason=Reason.APPROVED,
        message="approved by alice",
        changes={"approvals": [bound(given)], "waiting_since": None},
        records=[decided(given, Reason.APPROVED)],
    )
    shop.write(waiting.replace(status=applied(waiting, entering, actor=OPERATOR, now=datetime.now(UTC))))


def verified(file: Path) -> tuple[int, list[str]]:
    result = CliRunner().invoke(main, ["trail", "verify", str(file)], env={"COLUMNS": "300", "KUBECONFIG": "/none"})
    return result.exit_code, result.stdout.splitlines()


def test_what_the_api_server_stored_verifies_offline(shop: Shop, tmp_path: Path) -> None:
    """The export with alice's approval matches; kubectl's YAML alone holds, naming her approval as absent."""
    executing(shop)
    export, alone = tmp_path / "export.yaml", tmp_path / "incident.yaml"
    result = shop.run("trail", "export", "checkout-latency-1", "-o", str(export))
    assert result.exit_code == 0, result.output
    [approval] = shop.stored(IncidentApproval)
    code, lines = verified(export)
    assert code == 0, lines
    assert lines[4].endswith(f"alice  ok, matches: IncidentApproval {approval['metadata']['name']}")
    assert "5 entries, 5 records match, 0 are absent" in lines[-1]
    alone.write_text(
        shop.plane.kubectl("get", "incident", "checkout-latency-1", "-n", shop.namespace, "-o", "yaml").stdout
    )
    code, lines = verified(alone)
    assert code == 0, lines
    assert lines[4].endswith("alice  ok, absent: IncidentApproval of alice")
    assert "5 entries, 4 records match, 1 are absent" in lines[-1]
    alone.write_text(alone.read_text().replace("Resident memory doubled", "Resident memory halved"))
    code, lines = verified(alone)
    assert code == 1
    assert lines[-1].startswith(f"BROKEN  {shop.namespace}/checkout-latency-1: trail entry 1: ")


def test_who_may_not_read_approvals_exports_the_incident(shop: Shop, tmp_path: Path) -> None:
    """What is left out is said, and the export holds all the same."""
    executing(shop)
    shop.plane.kubectl(
        "create", "role", "incidents-only", "-n", shop.namespace, "--verb=get,list",
        f"--resource={Incident.plural}.praxis.kopachelli.dev",
    )  # fmt: skip
    shop.plane.kubectl("create", "rolebinding", "erin", "-n", shop.namespace, "--role=incidents-only", "--user=erin")
    file = tmp_path / "export.json"
    result = shop.run("trail", "export", "checkout-latency-1", "-o", str(file), as_=shop.person("erin", "nobody"))
    assert result.exit_code == 0, result.output
    assert [each.split(":")[1] for each in result.stderr.splitlines()] == [
        " incidentapprovals are left out",
        " incidentreconciliations are left out",
        " the full records are left out",
    ]
    assert [each["kind"] for each in json.loads(file.read_text())["items"]] == ["Incident"]
    assert verified(file)[0] == 0
