"""A seeded part of the kill matrix, small enough for every change; `make chaos` runs all of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNS = 40
SEED = 20260131


@pytest.mark.controlplane
@pytest.mark.timeout(600)
def test_a_part_of_the_kill_matrix_has_no_violation() -> None:
    """In a process of its own, as it forks: this one has threads."""
    command = [sys.executable, "-m", "tests.chaos", "--runs", str(RUNS), "--seed", str(SEED)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == [f"chaos: {RUNS} runs, 0 violations"], done.stdout + done.stderr
    assert done.returncode == 0
