from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainer.runtime import memory_limit
from trainer.runtime.child_process import run_limited

MIB = 1 << 20


def test_process_below_its_share_is_left_alone() -> None:
    source = "import time; held = bytearray(b'x') * (32 << 20); time.sleep(0.6)"
    outcome = run_limited(["python3", "-c", source], seconds=30, memory_bytes=256 * MIB)
    assert (outcome.returncode, outcome.filled_bytes) == (0, None)


def test_kernel_takes_a_probe_before_anything_else() -> None:
    source = "import time; time.sleep(0.3); print(open('/proc/self/oom_score_adj').read().strip())"
    assert run_limited(["python3", "-c", source], seconds=30, memory_bytes=256 * MIB).stdout == "1000\n"


def test_memory_of_this_process_is_counted() -> None:
    before = memory_limit.held_bytes(os.getpid())
    held = bytearray(b"x") * (64 * MIB)
    assert memory_limit.held_bytes(os.getpid()) - before > 60 * MIB
    assert len(held) == 64 * MIB
    assert memory_limit.held_bytes(1 << 30) == 0  # no such process


def test_control_group_that_allows_less_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text(f"{10 * MIB}\n")
    (tmp_path / "memory.current").write_text(f"{4 * MIB}\n")
    assert memory_limit.available_bytes() == 6 * MIB
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_limit.available_bytes() > 10 * MIB
