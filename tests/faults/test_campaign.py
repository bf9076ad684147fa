"""A short campaign, as `make faults` runs it; in a process of its own, as kopf takes the signals for itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.controlplane, pytest.mark.e2e]

ROOT = Path(__file__).parents[2]
SECONDS = 280


def test_incidents_live_through_a_storm_on_the_api() -> None:
    """None is lost, none is acted on twice or after its outcome, no success is without proof, every trail verifies."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--runs", "8", "--seed", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    said = done.stdout.splitlines()
    assert (done.returncode, said[-1:]) == (0, ["faults: 8 runs, 0 violations"]), done.stdout + done.stderr
    assert any("write dropped after" in line or "write 500 after" in line for line in said), "there was no storm"
