"""Verdicts that are kept: only what would be the same again, and only for the very same question."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.fixtures.gates import SUBJECT
from trainer.device.accelerator import Accelerator
from trainer.run.gates import cache
from trainer.run.gates.child import Verdict
from trainer.run.gates.subject import NF4

CARD = Accelerator(device="cuda:0", kind="rocm", name="SIMULATED", arch="gfx1100", memory_bytes=2**34)
HOW = {"deterministic": True, "plain_blas": False}
PASS = Verdict(gate=NF4, status="passed", seconds=0.5)


def key(**more: object) -> dict[str, object]:
    return cache.key_of(NF4, replace(SUBJECT, **more), CARD, HOW)  # type: ignore[arg-type]


def test_verdict_that_lasts_is_found_again_with_its_day(tmp_path: Path) -> None:
    cache.write({NF4: key()}, [PASS], tmp_path / "made")
    found = cache.read(key(), tmp_path / "made")
    assert found is not None
    assert (found.status, found.seconds) == ("passed", 0.5)
    assert len(found.cached) == len("2026-11-23")


@pytest.mark.parametrize(
    ("status", "why", "kept"),
    [
        ("wrong", "w", True),
        ("crash", "the process died of SIGSEGV", True),
        ("crash", "the process ended with status 3", False),
        *((status, "w", False) for status in ("hang", "memory", "absent", "error", "untried")),
    ],
)
def test_verdict_of_a_busy_or_incomplete_machine_is_not_kept(status: str, why: str, kept: bool, tmp_path: Path) -> None:
    cache.write({NF4: key()}, [Verdict(gate=NF4, status=status, why=why)], tmp_path)
    assert bool(list(tmp_path.iterdir())) == kept
    assert (cache.read(key(), tmp_path) is not None) == kept


def test_attention_kernel_that_torch_has_not_is_not_requested_at_each_start(tmp_path: Path) -> None:
    keys = {gate: cache.key_of(gate, SUBJECT, CARD, HOW) for gate in ("attention cudnn", "canary")}
    cache.write(keys, [Verdict(gate=gate, status="absent", why="none") for gate in keys], tmp_path)
    assert cache.read(keys["attention cudnn"], tmp_path) is not None
    assert cache.read(keys["canary"], tmp_path) is None  # its package may be installed later


def test_other_question_has_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROCBLAS_USE_HIPBLASLT", raising=False)
    cache.write({NF4: key()}, [PASS], tmp_path)
    assert cache.read(key(), tmp_path)
    assert cache.read(key(width=65), tmp_path) is None
    assert cache.read(key(precision="fp16"), tmp_path) is None
    assert cache.read(cache.key_of("compile", SUBJECT, CARD, HOW), tmp_path) is None
    for other in ({"arch": "gfx1201"}, {"name": "another"}, {"memory_bytes": 1}):
        assert cache.read(cache.key_of(NF4, SUBJECT, replace(CARD, **other), HOW), tmp_path) is None  # type: ignore[arg-type]
    assert cache.read(cache.key_of(NF4, SUBJECT, CARD, {**HOW, "plain_blas": True}), tmp_path) is None
    monkeypatch.setenv("ROCBLAS_USE_HIPBLASLT", "0")
    assert cache.read(key(), tmp_path) is None
    monkeypatch.delenv("ROCBLAS_USE_HIPBLASLT")
    monkeypatch.setattr(torch, "__version__", "9.9")
    assert cache.read(key(), tmp_path) is None


def test_second_card_of_one_kind_needs_no_trial_of_its_own(tmp_path: Path) -> None:
    cache.write({NF4: key()}, [PASS], tmp_path)
    assert cache.read(key(device="cuda:1"), tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["verdict"].update(gate="compile"),
        lambda content: content["verdict"].update(status=3),
        lambda content: content["verdict"].update(status="hang"),
        lambda content: content["verdict"].update(more=1),
        lambda content: content["verdict"].pop("status"),
        lambda content: content["key"].update(gate="other"),
        lambda content: content.pop("key"),
    ],
)
def test_file_of_another_program_or_version_is_passed_over(change: object, tmp_path: Path) -> None:
    cache.write({NF4: key()}, [PASS], tmp_path)
    (path,) = tmp_path.iterdir()
    content = json.loads(path.read_text())
    change(content)  # type: ignore[operator]
    path.write_text(json.dumps(content))
    assert cache.read(key(), tmp_path) is None
    path.write_text("{")
    assert cache.read(key(), tmp_path) is None


def test_folder_that_cannot_be_written_is_not_missed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache.write({NF4: key()}, [PASS], tmp_path / "file")
    cache.write({NF4: key()}, [PASS], None)
    assert cache.read(key(), tmp_path / "file") is None
    assert cache.read(key(), None) is None


def test_folder_is_on_the_volume_of_caches() -> None:
    assert cache.folder_of({"XDG_CACHE_HOME": "/cache/xdg", "HOME": "/h"}) == Path("/cache/xdg/trainer-gates")
    assert cache.folder_of({"HOME": "/h"}) == Path("/h/.cache/trainer-gates")
    assert cache.folder_of({}) is None


def test_verdict_from_the_cache_is_not_written_again(tmp_path: Path) -> None:
    cache.write({NF4: key()}, [replace(PASS, cached="2026-01-01")], tmp_path)
    assert not list(tmp_path.iterdir())
