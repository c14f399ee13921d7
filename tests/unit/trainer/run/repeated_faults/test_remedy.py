"""Deaths at one step lead to another BLAS and then to memory without a cache. Cards are SIMULATED throughout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.left_out import long
from trainer.config.train import TrainConfig
from trainer.device.accelerator import Accelerator
from trainer.run.repeated_faults import remedy
from trainer.run.repeated_faults.mark import FAULTS, LAYOUT, MAGIC, MARK, NOTE, UNKNOWN, Fault
from trainer.run.repeated_faults.remedy import (
    LADDER,
    NEAR,
    Treatment,
    after_deaths,
    against_narrow_products,
    killed_from_outside,
)

ADAPTED = {"task": "lm", "data": Path("text.txt"), "adapter": "lora", "model": Path("base")}


def faults(*steps: int, remedies: int = 0, cause: str = "SIGABRT") -> tuple[Fault, ...]:
    return tuple(Fault(step=step, remedies=remedies, cause=cause) for step in steps)


@pytest.mark.parametrize(
    ("died", "remedies"),
    [
        ((), 0),
        (faults(40), 0),
        (faults(40, 40), 1),
        (faults(40, 40 + NEAR), 1),
        (faults(40, 41 + NEAR), 0),
        (faults(40 + NEAR, 40), 1),
        (faults(40, 90, 40), 0),  # not one after the other
        ((*faults(40, 40), *faults(40, remedies=1)), 1),
        ((*faults(40, 40), *faults(40, 41, remedies=1)), 2),
        ((*faults(40, 40), *faults(90, 300, remedies=1)), 1),
        ((*faults(40, 40), *faults(40, 41, remedies=1), *faults(40, 40, remedies=2)), len(LADDER)),
        (faults(40, 40, 40, cause=UNKNOWN), 0),
        ((*faults(40), *faults(40, cause=UNKNOWN)), 0),
        ((*faults(40), *faults(90, cause=UNKNOWN), *faults(40)), 1),  # a kill between two faults hides neither
        ((*faults(40, 40), *faults(40, 40, remedies=1, cause=UNKNOWN)), 1),
        (faults(40, 40, cause="hang"), 1),
    ],
)
def test_second_death_near_the_first_takes_one_remedy_more(died: tuple[Fault, ...], remedies: int) -> None:
    assert remedy.remedies_after(died) == remedies


def died(folder: Path, step: int) -> None:
    (folder / MARK.format(0)).write_bytes(LAYOUT.pack(MAGIC, 1, step))
    (folder / NOTE.format(0)).write_text("Fatal Python error: Aborted\n")


@pytest.mark.parametrize(("kind", "remedies"), [("rocm", 1), ("cuda", 1), ("cpu", 0)])
def test_cpu_has_no_remedy_and_keeps_its_deaths(kind: str, remedies: int, tmp_path: Path) -> None:
    (tmp_path / FAULTS).write_text('[{"step": 12, "remedies": 0, "cause": "SIGABRT"}]')
    died(tmp_path, 13)
    found = after_deaths(tmp_path, kind)  # type: ignore[arg-type]
    assert found.faults == faults(12, 13)
    assert found.remedies == remedies
    assert ("of SIGABRT in step 12, of SIGABRT in step 13" in found.reason) == bool(remedies)
    assert killed_from_outside(found) == ""


def test_kills_from_outside_change_nothing_and_are_reported(tmp_path: Path) -> None:
    (tmp_path / FAULTS).write_text('[{"step": 13, "remedies": 0, "cause": "unknown"}]')
    died(tmp_path, 13)
    (tmp_path / NOTE.format(0)).write_text("")
    found = after_deaths(tmp_path, "rocm")
    assert (found.remedies, found.reason) == (0, "")
    assert found.faults == faults(13, 13, cause=UNKNOWN)
    assert "step 13" in killed_from_outside(found)
    assert killed_from_outside(Treatment()) == ""


def card(arch: str) -> Accelerator:
    return Accelerator(device="cuda:0", kind="rocm", name="SIMULATED", arch=arch, memory_bytes=2**34)


@pytest.mark.parametrize(
    ("arch", "hip", "own", "remedies"),
    [
        ("gfx1200", "7.2.53210", None, 1),
        ("gfx1201", "10.0.0", None, 1),
        ("gfx1201", "7.1.25424", None, 0),
        ("gfx1100", "7.2.53210", None, 0),
        ("gfx1201", None, None, 0),
        ("gfx1201", "7.2.0", "ROCBLAS_USE_HIPBLASLT", 0),
        ("gfx1201", "7.2.0", "TORCH_BLAS_PREFER_HIPBLASLT", 0),
    ],
)
def test_adapters_are_kept_off_the_library_where_it_may_read_past_their_operands(
    arch: str, hip: str | None, own: str | None, remedies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "hip", hip)
    for name in remedy.OWN_CHOICE:
        monkeypatch.delenv(name, raising=False)
    if own:
        monkeypatch.setenv(own, "1")
    found = against_narrow_products(Treatment(), TrainConfig.of(**ADAPTED), card(arch))
    assert (found.remedies, bool(found.reason)) == (remedies, bool(remedies))
    plain = TrainConfig.of(**{**ADAPTED, "adapter": "none"})
    assert against_narrow_products(Treatment(), plain, card(arch)).remedies == 0


def test_remedy_after_deaths_stays_where_adapters_ask_for_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "7.2.0")
    worse = Treatment(faults=faults(3, 3), remedies=2, reason="r")
    assert against_narrow_products(worse, TrainConfig.of(**ADAPTED), card("gfx1201")) is worse


@pytest.mark.parametrize(("remedies", "blas", "cached"), [(0, [], True), (1, ["cublas"], True), (2, ["cublas"], False)])
def test_environment_is_set_for_the_remedies_in_use(
    remedies: int, blas: list[str], cached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[str] = []
    monkeypatch.setattr(remedy, "select_back_end", chosen.append)
    monkeypatch.setattr(os, "environ", {})
    remedy.apply(Treatment(remedies=remedies))
    assert chosen == blas
    assert (os.environ.get("ROCBLAS_USE_HIPBLASLT") == "0") == bool(remedies)
    assert ("PYTORCH_NO_HIP_MEMORY_CACHING" not in os.environ) == cached


PROGRAM = """
import sys
from trainer.run import train
train.kind_of = lambda device: "rocm"  # SIMULATED: this machine computes on its CPU
from trainer.cli import main
raise SystemExit(main(sys.argv[1:]))
"""
KILLER = """
import os, signal
from trainer.engine.callbacks import Callback
class Killer(Callback):
    def on_step_begin(self, run):
        died = os.path.exists({marker!r})
        if run.state.step == 6 and os.environ.get("ROCBLAS_USE_HIPBLASLT") != "0" and not died:
            os.kill(os.getpid(), signal.{signal})
"""


def attempts(folder: Path, signal: str, count: int, marker: str = "absent") -> list[int]:
    """Return the exit statuses of so many attempts at one run, whose step 7 a callback ends. SIMULATED fault."""
    (folder / "killer.py").write_text(KILLER.format(signal=signal, marker=str(folder / marker)))
    environment = {name: value for name, value in os.environ.items() if name not in remedy.OWN_CHOICE}
    flags = "--epochs 3 --data-fraction 0.2 --run r --resume auto --device cpu --checkpoint-every 3 --baselines none"
    argv = [sys.executable, "-c", PROGRAM, "train", *flags.split(), "--output", str(folder)]
    argv += ["--callback", f"{folder}/killer.py:Killer"]
    return [subprocess.run(argv, env=environment, capture_output=True, check=False).returncode for _ in range(count)]


def test_run_that_aborts_twice_at_one_step_ends_with_the_remedy_on_record(tmp_path: Path) -> None:
    """SIMULATED fault: a callback ends the process as a card's runtime does until the BLAS is another."""
    assert attempts(tmp_path, "SIGABRT", 3) == [-6, -6, 0]
    record = json.loads((tmp_path / "r" / "metadata.json").read_text())
    assert record["remedies"]["names"] == [LADDER[0].name]
    assert record["remedies"]["died_at"] == [7, 7]
    assert not [*(tmp_path / "r").glob("*.mark"), *(tmp_path / "r").glob("*.fault")]


@long
def test_run_that_is_killed_twice_at_one_step_from_outside_resumes_unchanged(tmp_path: Path) -> None:
    assert attempts(tmp_path, "SIGKILL", 2) == [-9, -9]
    (tmp_path / "calm").touch()
    assert attempts(tmp_path, "SIGKILL", 1, marker="calm") == [0]
    assert "remedies" not in json.loads((tmp_path / "r" / "metadata.json").read_text())
