"""The demo, as a user runs it, and the report that it writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.controlplane]

UUID = r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}"


@pytest.mark.timeout(600)
def test_the_whole_life_of_an_incident(report: Path) -> None:
    """It exits with 0, tells everything, and its report is read back from the API server and the emulator."""
    before = {process.pid for process in psutil.process_iter()}
    done = subprocess.run(
        [sys.executable, "-m", "praxis", "demo", "--yes", "--json", str(report)],
        capture_output=True,
        text=True,
        check=False,
        timeout=590,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    told = json.loads(report.read_text())
    assert told["ok"] is True
    assert set(told) == {"ok", "incidents", "refusals"}
    first, second, third = told["incidents"]
    assert first["phases"] == [
        "New", "Triaged", "Investigated", "AwaitingApproval", "Executing", "Observing", "Resolved",
    ]  # fmt: skip
    assert (first["reason"], first["approver"], first["dispatches"]) == ("AlertCleared", "alice", 1)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", first["planDigest"])
    assert re.fullmatch(r"praxis-[0-9a-f]{32}", first["intentId"])
    assert len(first["instancesBefore"]) == len(first["instancesAfter"]) == 2
    assert not set(first["instancesBefore"]) & set(first["instancesAfter"])
    assert first["recalled"] == []
    assert second["phases"][-2:] == ["Executing", "ReconciliationRequired"]
    assert (second["reason"], second["dispatches"]) == ("OutcomeUnknown", 1)
    assert third["phases"][-1] == "AwaitingApproval"
    best = third["recalled"][0]
    assert re.fullmatch(UUID, best["id"])
    assert best["score"] > 0.5
    assert [each["by"] for each in told["refusals"]] == [
        "system:serviceaccount:praxis-system:praxis-operator",
        "system:serviceaccount:shop:robot",
        "admin",
    ]
    assert "cannot create resource" in told["refusals"][0]["message"]
    assert "only people" in told["refusals"][1]["message"]
    assert "Executing needs approvals" in told["refusals"][2]["message"]
    for shown in ("simulated", "REAL", "→ AwaitingApproval", "→ ReconciliationRequired", "Where to look next"):
        assert shown in done.stdout
    left = [process for process in psutil.process_iter(["pid", "cmdline"]) if process.pid not in before]
    assert not [each for each in left if any("praxis-demo-" in part for part in each.info["cmdline"] or [])]
