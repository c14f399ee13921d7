"""Memory that runs out on one of two ranks holding parts of a model: INJECTED, over gloo on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from tests.fixtures.tables import mixed, written
from tests.left_out import long, one_of
from trainer.cli import main

pytestmark = pytest.mark.usefixtures("torch_as_before")

PROGRAM = Path(__file__).with_name("short_memory_program.py")
ROOT = Path(__file__).resolve().parents[5]
COMMON = (
    "--target",
    "z",
    "--ignore",
    "colour,y",
    "--device",
    "cpu",
    "--precision",
    "fp64",
    "--epochs",
    "2",
    "--batch-size",
    "16",
)
MORE = ("--learning-rate", "0.01", "--hidden-layers", "8,8", "--weights", "last", "--run", "one")


def ranks(folder: Path, where: str, *flags: str, restarts: int) -> subprocess.CompletedProcess[str]:
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--max-restarts={restarts}"]
    torchrun += ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"]
    words = ["train", "--data", str(folder / "table.csv"), "--output", str(folder), *COMMON, *MORE, *flags]
    return subprocess.run(
        [sys.executable, *torchrun, "--monitor-interval=0.2", "--", str(PROGRAM), *words],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "SHORT_MEMORY": where},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def events(done: subprocess.CompletedProcess[str], name: str) -> list[dict[str, Any]]:
    read = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [each for each in read if each["event"] == name]


def weights(run: Path) -> dict[str, Any]:
    return safetensors.numpy.load((run / "model.safetensors").read_bytes())


@long
@pytest.mark.parametrize(("parallel", "where"), one_of([("fsdp2", "backward"), ("pipeline", "forward")]))
def test_ranks_begin_again_with_half_the_rows_and_end_like_one_process(
    tmp_path: Path, parallel: str, where: str
) -> None:
    path = written(mixed(100, gaps=False), tmp_path)
    done = ranks(tmp_path, where, "--parallel", parallel, "--checkpoint-every", "2", restarts=2)
    assert done.returncode == 0, done.stderr[-4000:]
    codes = {each["code"] for each in events(done, "error")}
    assert "RM569" in codes <= {"RM569", "RM568"}
    assert [each["most_rows"] for each in events(done, "out_of_memory_before")] == [4]  # of 8
    assert {each["step"] for each in events(done, "resumed")} == {4}
    assert not list((tmp_path / "one").glob("*most_rows*"))
    words = ["train", "--data", str(path), "--output", str(tmp_path / "alone"), *COMMON, *MORE, "--micro-batch", "4"]
    assert main(words) == 0
    found, expected = weights(tmp_path / "one"), weights(tmp_path / "alone" / "one")
    assert all(np.allclose(found[name], value, rtol=1e-10, atol=1e-12) for name, value in expected.items())


@long
def test_end_without_a_restart_states_the_next_step(tmp_path: Path) -> None:
    written(mixed(100, gaps=False), tmp_path)
    done = ranks(tmp_path, "forward", "--parallel", "fsdp2", "--checkpoint-every", "2", restarts=0)
    assert done.returncode != 0
    (error,) = [each for each in events(done, "error") if each["code"] == "RM569"]
    assert error["where"] == "step 6, rank 1, cpu"  # the fifth batch of the epoch is its rest
    assert "--resume auto" in error["next"]
    folder = tmp_path / ".one.partial"
    assert "step-000000000004" in [path.name for path in (folder / "checkpoints").iterdir()]
    assert json.loads((folder / "most_rows.json").read_text()) == {"rows": 4}
