"""A training job of two nodes through sbatch, as `./invokew submit` sends it, ended and queued again in its middle."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training takes torch, which this Python has not")

from safetensors.torch import load_file  # noqa: E402 -- it needs torch

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).resolve().parents[2]
EPOCHS = 24
SETTINGS = ["--epochs", str(EPOCHS), "--batch-size", "32", "--learning-rate", "0.001", "--seed", "7", "--device", "cpu"]
# Two ranks add 16 rows each and then the sums, one process adds 32 in a row: float32 rounds differently, and no more.
# Seen: 4.5e-8 at weights around 0.1.
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}


def python(*words, **environment):
    return subprocess.run(
        [sys.executable, "-P", *words], env={**os.environ, **environment}, cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip


def submit(slurm, output, name):
    choice = ["--engine", "slurm", "--nodes", "2", "--cell", "cpu-torch2.13.0"]
    words = ["-m", "invoke", "--search-root", str(ROOT), "submit", *choice]
    environment = {"SLURM_CONF": slurm.environment["SLURM_CONF"]}
    done = python(*words, "--output", str(output), "--run", name, *SETTINGS, **environment)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def events(log, name):
    lines = log.read_text().splitlines() if log.exists() else []
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return [event for event in found if event["event"] == name]


def until_epoch(log, epoch, seconds=120):
    end = time.monotonic() + seconds
    while not any(event["epoch"] >= epoch for event in events(log, "epoch")):
        assert time.monotonic() < end, f"no epoch {epoch}: {log.read_text() if log.exists() else 'no log'}"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Train in one process on the whole batch, and return the weights."""
    output = tmp_path_factory.mktemp("alone")
    done = python("-m", "trainer", "train", "--output", str(output), "--run", "r", *SETTINGS, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    return load_file(output / "r" / "model.safetensors")


def test_two_nodes_queued_again_in_the_middle_end_with_the_weights_of_one_process(slurm, tmp_path, alone):
    number = submit(slurm, tmp_path, "r")
    log = tmp_path / f"r-{number}.log"
    until_epoch(log, 3)
    slurm.call("scontrol", "requeue", str(number))
    slurm.start_again(number)
    assert slurm.wait(number, "COMPLETED", seconds=240)["Restarts"] == "1"
    # A run keeps a checkpoint a minute unless it is told to end: this one is from Slurm's SIGTERM.
    (resumed,) = events(log, "resumed")
    assert resumed["step"] > 0
    assert not resumed["from_start"]
    epochs = [event["epoch"] for event in events(log, "epoch")]
    assert epochs.count(1) == 1, f"begun anew: {epochs}"
    assert sorted(set(epochs)) == list(range(1, EPOCHS + 1))
    weights = load_file(tmp_path / "r" / "model.safetensors")
    assert weights.keys() == alone.keys()
    for name, value in alone.items():
        torch.testing.assert_close(weights[name], value, **TOLERANCE)
