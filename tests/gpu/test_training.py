"""The trainer on real cards: exact resume, memory that really runs out, precision by its self-test, two ranks."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch
from torch import nn

from tests.fixtures.training import ROWS, gone_on, interrupted, same, training, weights
from trainer.data.loading.placement import TensorPartition
from trainer.device.accelerator import choose, make_reproducible
from trainer.device.memory import report
from trainer.device.precision import choose_precision
from trainer.engine.loop import fit
from trainer.engine.training import Plan, Training, new_training

ROOT = Path(__file__).resolve().parents[2]
SAME = ("model.pt", "model.safetensors", "metrics.jsonl", "batches.jsonl")


@pytest.fixture(autouse=True)
def deterministic() -> Any:
    """Deterministic kernels, as the trainer sets them; skips where no card is."""
    if not torch.cuda.is_available():
        pytest.skip("no accelerator: torch.cuda.is_available() is False")
    make_reproducible(seed=0, threads=1)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["fp32", "fp64", "bf16", "fp16"])
@pytest.mark.parametrize("step", [1, 7, 10])
def test_stopped_run_on_the_card_ends_like_an_undisturbed_one(name: str, step: int) -> None:
    make = partial(training, name, device="cuda")
    assert same(weights(gone_on(make, interrupted(make, step))), weights(make()))


@pytest.mark.gpu
def test_rows_fetched_from_the_host_are_the_same(tmp_path: Path) -> None:
    device_side = weights(training(device="cuda"))
    run = training(device="cuda", loader_workers=2)
    run.train = TensorPartition(inputs=run.train.inputs.cpu(), targets=run.train.targets.cpu())
    assert len(run.train) == ROWS
    assert same(weights(run), device_side)


def large(micro_batch: int | None) -> Training:
    """Activations of about 1 GiB a layer at 65,536 rows, dropout among them; weights of 67 MB."""
    torch.manual_seed(0)
    width, rows = 4096, 65_536
    layers = [nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)]
    model = nn.Sequential(*layers).to("cuda")
    torch.manual_seed(1)
    part = TensorPartition(inputs=torch.randn(rows, 64, device="cuda"), targets=torch.randn(rows, 1, device="cuda"))
    small = TensorPartition(inputs=part.inputs[:100], targets=part.targets[:100])
    torch.manual_seed(2)
    plan = Plan(epochs=3, batch_size=rows, learning_rate=1e-3, seed=0, micro_batch=micro_batch)
    return new_training(model, part, small, plan)


@pytest.mark.gpu
def test_memory_that_really_runs_out_gives_the_weights_of_the_smaller_size(capsys: pytest.CaptureFixture[str]) -> None:
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, 3 * 2**30 / total))
    try:
        run = large(None)
        found = {name: value.cpu() for name, value in weights(run).items()}
        size = run.state.micro_batch.size
        events_ = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        del run
        torch.cuda.empty_cache()
        expected = {name: value.cpu() for name, value in weights(large(size)).items()}
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    assert size < 65_536
    shrunk = [event for event in events_ if event["event"] == "out_of_memory"]
    assert shrunk
    assert shrunk[0]["memory"].keys() == {"reserved", "allocated", "peak", "free", "total", "fragmented"}
    assert same(found, expected)


@pytest.mark.gpu
def test_report_counts_what_is_allocated() -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    before = report(device)
    held = torch.empty(2**26, dtype=torch.uint8, device=device)
    after = report(device)
    assert before is not None
    assert after is not None
    assert after.allocated - before.allocated == held.numel()
    assert after.reserved >= after.allocated
    assert after.total >= after.free


@pytest.mark.gpu
def test_auto_takes_a_format_that_passes_and_reports_why() -> None:
    card = choose("cuda")
    chosen = choose_precision("auto", card)
    assert card.arch in chosen.reason
    assert chosen.name in ("bf16", "fp16", "fp32")
    assert ("self-test passed" in chosen.reason) == (chosen.name != "fp32")
    losses = [epoch.train_loss for epoch in fit(training(chosen.name, device="cuda"))]
    assert losses[-1] < losses[0]


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "auto"])
def test_sigterm_and_resume_through_the_command_line(tmp_path: Path, precision: str) -> None:
    flags = ["--device", "cuda", "--epochs", "60", "--precision", precision]
    for name in ("whole", "stopped"):
        command = [sys.executable, "-m", "trainer", "train", "--output", str(tmp_path), "--run", name, *flags]
        run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert run.stdout is not None
        if name == "stopped":
            while json.loads(run.stdout.readline()).get("epoch") != 5:
                pass
            run.send_signal(signal.SIGTERM)
        _, err = run.communicate(timeout=300)
        assert run.returncode == (75 if name == "stopped" else 0), err
    command = [sys.executable, "-m", "trainer", "train", "--output", str(tmp_path), "--resume", "stopped"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in SAME:
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.two_gpu
def test_two_cards_are_probed_as_two_processes_are(tmp_path: Path) -> None:
    if (here := torch.cuda.device_count()) < 2:
        pytest.skip(f"2 cards needed, {here} here")
    path = tmp_path / "answers.json"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "tests/fixtures/two_ranks.py", "cuda", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(path.read_text())
    assert [answer["device"] for answer in found] == ["cuda:0", "cuda:1"]
    for answer in found:
        assert answer["off_by"] <= 1e-12
        assert answer["resumed_is_identical"]
        assert answer["out_of_memory_on_rank_1_is_identical"]
        assert answer["ranks_agree"]
