from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from trainer.distributed.watchdog import process_state


def test_stopped_process_is_distinguished_from_a_sleeping_one_and_a_dead_one() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert process_state.state(child.pid) in "RSD"
        assert process_state.alive(child.pid)
        os.kill(child.pid, signal.SIGSTOP)
        deadline = time.monotonic() + 5
        while process_state.state(child.pid) != "T" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process_state.state(child.pid) == "T"
    finally:
        child.kill()
    deadline = time.monotonic() + 5
    while process_state.alive(child.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not process_state.alive(child.pid)  # a zombie: nobody waited for it yet
    child.wait()
    assert process_state.state(child.pid) == process_state.GONE


def test_name_with_brackets_does_not_confuse(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (a ) b) D 1 2 3\n")
    (tmp_path / "7" / "wchan").write_text("amdgpu_fence_wait")
    assert process_state.state(7, tmp_path) == "D"
    assert process_state.kernel_function(7, tmp_path) == "amdgpu_fence_wait"
    assert process_state.kernel_function(8, tmp_path) == ""


def test_cards_report_load_and_power(tmp_path: Path) -> None:
    for index, power in ((0, "power1_average"), (1, "power1_input")):
        device = tmp_path / f"card{index}" / "device"
        (device / "hwmon" / "hwmon3").mkdir(parents=True)
        (device / "gpu_busy_percent").write_text("100\n")
        (device / "hwmon" / "hwmon3" / power).write_text(f"{17 + index}000000\n")
    (tmp_path / "card0-HDMI-A-1").mkdir()
    (tmp_path / "card2" / "device").mkdir(parents=True)  # another vendor's
    found = process_state.cards(tmp_path)
    assert [(card["card"], card["busy_percent"], card["power_w"]) for card in found] == [
        ("card0", 100, 17),
        ("card1", 100, 18),
    ]


def test_cards_without_a_folder_are_an_empty_list(tmp_path: Path) -> None:
    assert process_state.cards(tmp_path / "absent") == []
