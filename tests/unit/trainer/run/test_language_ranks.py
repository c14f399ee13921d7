"""Language models over several ranks of gloo on the CPU, from the command line to a Hugging Face folder."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from tests.left_out import long, one_of
from trainer.cli import main
from trainer.distributed.watchdog.process_state import alive
from trainer.models.pretrained.folder import read
from trainer.runtime.memory_limit import descendants

pytestmark = pytest.mark.usefixtures("torch_as_before")
ROOT = Path(__file__).parents[4]
TINY = ("--task", "lm", "--sequence", "32", "--decoder-layers", "2", "--decoder-width", "32", "--device", "cpu")
QUICK = (*TINY, "--batch-size", "5", "--max-steps", "60", "--eval-every", "20", "--clip-norm", "0.5")
TEXT = "In the beginning was the word, and the word was short.\n" * 60
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
Folders = dict[str, Path]


def command(folder: Path, name: str, *more: str) -> list[str]:
    return ["train", "--output", str(folder), "--run", name, "--data", str(folder / "text.txt"), *QUICK, *more]


def over_ranks(words: list[str]) -> None:
    argv = [sys.executable, "-m", "trainer", *words]
    done = subprocess.run(argv, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def measured(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def assert_like(folder: Path, other: Path) -> None:
    """Losses of training and validation equal to rounding, and the very same batches."""
    found, reference = measured(folder), measured(other)
    assert [line["batches"] for line in found] == [line["batches"] for line in reference]
    assert len(found) == 3
    for name in ("train_loss", "validation_loss"):
        assert [line[name] for line in found] == pytest.approx([line[name] for line in reference], rel=2e-5)


def assert_weights_like(folder: Path, other: Path) -> None:
    """Weights of a Hugging Face folder that can be read, equal but for rounding in 60 steps of AdamW."""
    found, reference = (load_file(each / "model.safetensors") for each in (folder, other))
    assert found.keys() == reference.keys()
    assert max((found[name] - reference[name]).abs().max().item() for name in found) < 2e-4
    read(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ranks")
    (made / "text.txt").write_text(TEXT)
    assert main(command(made, "alone")) == 0
    return made


@pytest.mark.parametrize("parallel", one_of(["pipeline", "sequence"]))
def test_two_ranks_leave_the_folder_that_one_leaves(folder: Path, parallel: str) -> None:
    over_ranks(command(folder, parallel, "--ranks", "2", "--parallel", parallel))
    assert_like(folder / parallel, folder / "alone")
    assert_weights_like(folder / parallel, folder / "alone")


@long
def test_adapter_of_two_ranks_is_that_of_one(folder: Path) -> None:
    adapter = ("--model", str(folder / "alone"), "--adapter", "lora", "--lora-rank", "2")
    assert main(command(folder, "lora", *adapter)) == 0
    over_ranks(command(folder, "lora-ddp", *adapter, "--ranks", "2", "--parallel", "ddp"))
    assert_like(folder / "lora-ddp", folder / "lora")


def killed_after_a_checkpoint(folder: Path, name: str, *more: str) -> Path:
    """Start a run, kill it where its newest checkpoint is within the run, and return its unfinished folder."""
    words = command(folder, name, "--checkpoint-every", "1", "--keep", "last=1", *more)
    begun = subprocess.Popen(
        [sys.executable, "-m", "trainer", *words], env=ENVIRONMENT, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 200
    while not [path for path in folder.glob(f".{name}.partial/checkpoints/step-*") if int(path.name[5:]) > 9]:
        assert time.monotonic() < deadline
        assert begun.poll() is None
        time.sleep(0.02)
    kill_all(begun)
    return folder / f".{name}.partial"


def kill_all(begun: subprocess.Popen[bytes]) -> None:
    """Kill a run with its ranks, which torchrun starts in sessions of their own, and wait until none writes."""
    below = list(descendants(begun.pid))
    for pid in (begun.pid, *below):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    begun.wait()
    deadline = time.monotonic() + 60
    while left := [pid for pid in below if alive(pid)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


@long
def test_run_of_two_ranks_killed_is_resumed_by_one_and_by_three(folder: Path) -> None:
    partial = killed_after_a_checkpoint(folder, "two", "--ranks", "2", "--parallel", "fsdp2")
    assert list(partial.glob("checkpoints/*/shard-00001.safetensors"))
    for name in ("one", "three"):
        shutil.copytree(partial, folder / f".{name}.partial")
    assert main(resumed(folder, "one")) == 0
    over_ranks(resumed(folder, "three", "--ranks", "3", "--parallel", "fsdp2"))
    for name in ("one", "three"):
        assert_like(folder / name, folder / "alone")


@long
def test_run_of_one_rank_killed_is_resumed_by_two(folder: Path) -> None:
    killed_after_a_checkpoint(folder, "single")
    over_ranks(resumed(folder, "single", "--ranks", "2", "--parallel", "fsdp2"))
    assert_like(folder / "single", folder / "alone")
    assert_weights_like(folder / "single", folder / "alone")


def resumed(folder: Path, name: str, *more: str) -> list[str]:
    return ["train", "--output", str(folder), "--resume", name, "--data", str(folder / "text.txt"), *QUICK, *more]
