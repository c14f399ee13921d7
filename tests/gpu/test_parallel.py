"""Two cards: every way between them, shards, a pipeline, a rank put to sleep; one card: attention and compiling."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import safetensors.torch
import torch
from torch import Tensor, nn

from tests.fixtures.transports import faulty
from trainer.device.accelerator import make_reproducible
from trainer.distributed.watchdog.heartbeat import read_beat
from trainer.engine.steps.attention_selection import LIMITS, Shape, choose_attention
from trainer.engine.steps.compile import decide

ROOT = Path(__file__).resolve().parents[2]
JOB = ["--epochs", "6", "--hidden-layers", "256,256", "--batch-size", "64", "--precision", "fp64", "--device", "cuda"]


def command(output: Path, name: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "trainer", "train", *JOB, "--output", str(output), "--run", name, *more]


def train(output: Path, name: str, *more: str, **environment: str) -> list[dict[str, Any]]:
    """The events of a finished run."""
    done = subprocess.run(
        command(output, name, *more),
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:] + done.stdout[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def weights(folder: Path) -> Tensor:
    return torch.cat([value.reshape(-1).double() for _, value in sorted(safetensors.torch.load_file(folder).items())])


@pytest.fixture(scope="module")
def one_card(tmp_path_factory: pytest.TempPathFactory) -> Tensor:
    if torch.cuda.device_count() < 2:
        pytest.skip(f"2 cards needed, {torch.cuda.device_count()} here")
    output = tmp_path_factory.mktemp("one")
    train(output, "one")
    return weights(output / "one" / "model.safetensors")


@pytest.mark.two_gpu
@pytest.mark.parametrize(
    ("flags", "transport"),
    [
        (["--comms", "auto"], "nccl"),
        (["--comms", "nccl-no-p2p"], "nccl-no-p2p"),
        (["--comms", "gloo"], "gloo"),
        (["--comms", "host"], "host"),
        (["--parallel", "fsdp2"], "nccl"),
        (["--parallel", "pipeline", "--micro-batch", "16"], "nccl"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_two_cards_train_like_one(tmp_path: Path, one_card: Tensor, flags: list[str], transport: str) -> None:
    events = train(tmp_path, "two", "--ranks", "2", "--max-restarts", "0", *flags)
    (passed,) = [event for event in events if event["event"] == "comms" and event["passed"]]
    print(json.dumps(passed))
    assert passed["route"] == transport
    found = weights(tmp_path / "two" / "model.safetensors")
    assert ((found - one_card).norm() / one_card.norm()).item() < 1e-10


@pytest.mark.two_gpu
def test_transport_that_fails_its_probe_leads_to_the_next(tmp_path: Path, one_card: Tensor) -> None:
    faults = faulty("nccl:abort,nccl-no-p2p:wrong-sum,gloo:abort")
    events = train(tmp_path, "two", "--ranks", "2", "--max-restarts", "0", **faults)
    transports = [(event["route"], event["passed"]) for event in events if event["event"] == "comms"]
    assert transports == [("nccl", False), ("nccl-no-p2p", False), ("gloo", False), ("host", True)]
    found = weights(tmp_path / "two" / "model.safetensors")
    assert ((found - one_card).norm() / one_card.norm()).item() < 1e-10


@pytest.mark.two_gpu
def test_rank_put_to_sleep_costs_a_restart_and_no_bit(tmp_path: Path, one_card: Tensor) -> None:
    job = ["--ranks", "2", "--epochs", "60", "--checkpoint-every", "100", "--comms", "nccl"]
    train(tmp_path, "calm", *job)
    limits = ["--hang-floor", "3", "--hang-timeout", "120"]
    process = subprocess.Popen(
        command(tmp_path, "disturbed", *job, *limits),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    events: list[dict[str, Any]] = []
    asleep = False
    for line in process.stdout:
        if line.startswith("{"):
            events.append(json.loads(line))
        if not asleep and events and events[-1]["event"] == "checkpoint":
            beat = read_beat(tmp_path / ".disturbed.partial" / "watchdog" / "attempt0" / "rank1.beat")
            assert beat is not None
            os.kill(beat.pid, signal.SIGSTOP)
            asleep = True
    assert process.wait(60) == 0
    assert [event["blamed"] for event in events if event["event"] == "hang"] == [[1]]
    digests = [
        hashlib.sha256((tmp_path / run / "model.safetensors").read_bytes()).hexdigest() for run in ("calm", "disturbed")
    ]
    assert digests[0] == digests[1]


@pytest.fixture
def a_card() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no accelerator: torch.cuda.is_available() is False")


@pytest.mark.gpu
@pytest.mark.usefixtures("a_card")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_attention_kernel_that_is_right_is_found(dtype: torch.dtype) -> None:
    torch.use_deterministic_algorithms(False)
    chosen = choose_attention("auto", device="cuda", dtype=dtype, shape=Shape(batch=4, heads=8, length=1024, width=64))
    print(chosen.reason)
    best = next(finding for finding in chosen.findings if finding.kernel == chosen.kernel)
    assert best.error <= LIMITS[dtype]


@pytest.mark.gpu
@pytest.mark.usefixtures("a_card")
def test_compiling_is_decided_by_numbers() -> None:
    make_reproducible(seed=0, threads=1)
    model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.GELU())]).cuda()
    rows = torch.randn(256, 512, device="cuda")
    decision = decide("auto", model, lambda of: of(rows).square().mean(), dtype=torch.float32)
    torch.use_deterministic_algorithms(False)
    print(decision.reason)
    if decision.trial is None:
        pytest.skip(decision.reason)
    agrees = max(decision.trial.loss_difference, decision.trial.weight_difference) <= 1e-3
    assert not decision.use or (agrees and decision.trial.compiled_s < decision.trial.eager_s)
