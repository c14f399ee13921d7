"""A probe that fills a container's memory faster than anybody looks: the kernel takes it, and nothing else.

The container has a limit of its own, so this machine's memory is left alone.
"""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
LIMIT = 192 * MIB
RUNNER = """
import sys
from trainer.diagnostics.probes import registry, runner
from trainer.runtime import memory_limit as watched
watched.LOOK_EVERY_SECONDS = 60.0  # so that the kernel is the first to see it
made = [registry.Probe(name=n, module=n, summary="", timeout_seconds=60) for n in ("filling", "honest")]
registry.PROBES = tuple(made)
sys.exit(runner.main(["--expect", "cpu"]))
"""
PROBES = {
    "filling": "held = []\nwhile True: held.append(bytearray(b'x') * (1 << 24))\n",
    "honest": """
import sys
from trainer.diagnostics.probes import entry
from trainer.diagnostics.probes.verdict import Device, at_most, conclude
here = Device(kind="cpu", name="a CPU", arch="any")
measure = lambda request: conclude(probe="honest", summary="fine", checks=[at_most("x", 0, 1, "s")], device=here)
sys.exit(entry.main("honest", measure))
""",
}


@pytest.mark.container
def test_kernel_takes_the_probe_that_fills_memory_and_no_other(debian: str, tmp_path: Path) -> None:
    for name, source in PROBES.items():
        (tmp_path / f"{name}.py").write_text(source)
    limits = ["--network", "none", "--memory", str(LIMIT), "--memory-swap", str(LIMIT)]
    mounts = ["-v", f"{ROOT}/trainer:/src/trainer:ro", "-v", f"{tmp_path}:/probes:ro"]
    inside = ["-e", "PYTHONPATH=/src:/probes", "-e", "PYTHONDONTWRITEBYTECODE=1", debian, "python3", "-c", RUNNER]
    argv = ["docker", "run", "--rm", *limits, *mounts, *inside]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    *verdicts, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1, done.stderr
    assert [(each["probe"], each["status"]) for each in verdicts] == [("filling", "crash"), ("honest", "pass")]
    assert "SIGKILL (sent from outside, often by the kernel when memory ran out)" in verdicts[0]["summary"]
    assert (last["passed"], last["failed"]) == (1, 1)
