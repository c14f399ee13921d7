"""A few of the benchmark's kills and damages, as the script itself does them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.left_out import WHOLE

ROOT = Path(__file__).resolve().parents[2]
KILLS, DAMAGES = (5, 30) if WHOLE else (1, 3)


def test_killed_runs_and_damaged_checkpoints_end_like_an_undisturbed_run(tmp_path: Path) -> None:
    result = tmp_path / "kills.json"
    command = [
        sys.executable,
        "benchmarks/kills.py",
        *("--kills", str(KILLS), "--damages", str(DAMAGES)),
        "--result",
        str(result),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(result.read_text())
    kills, damages = found["kills"], found["damages"]
    assert kills["runs"] == kills["identical"] == KILLS <= kills["kills"]
    assert damages["runs"] == damages["identical"] == damages["recognised_and_the_one_before_used"] == DAMAGES
    assert damages["damaged_checkpoints"] >= DAMAGES
    assert not damages["code_of_a_pickle_ran"]
