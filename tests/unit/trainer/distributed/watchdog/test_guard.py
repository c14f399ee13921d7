"""A watched rank as a process of its own; the watcher is a real process, too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from trainer.distributed.watchdog.guard import Launch

ROOT = Path(__file__).resolve().parents[5]
LEARN = """
import ctypes, os, signal, sys, time
from pathlib import Path
from trainer.distributed.watchdog.guard import guarded
from trainer.distributed.watchdog.timeouts import Limits

def hold_the_gil():
    ctypes.PyDLL(None).sleep(60)

def rank(then):
    with guarded(Path(sys.argv[1]), limits=Limits(floor=0.5, ceiling=30.0)) as beats:
        for step in range(10):
            beats.step(step)
            with beats.section("forward"):
                pass
        with beats.section("forward"):
            then()
    print("done")

"""


def run(tmp_path: Path, then: str, **environment: str) -> tuple[subprocess.CompletedProcess[str], float]:
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", LEARN + then, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done, time.monotonic() - begun


def events(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("then", ["hold_the_gil", "lambda: os.kill(os.getpid(), signal.SIGSTOP)"])
def test_rank_that_hangs_is_found_dumped_and_ended(tmp_path: Path, then: str) -> None:
    done, seconds = run(tmp_path, f"rank({then})")
    assert done.returncode == -signal.SIGKILL
    assert seconds < 25  # the floor is 0.5 s, the ceiling 30 s: the limit was learned
    (error,) = events(done)
    assert (error["event"], error["code"]) == ("error", "RM560")
    assert "rank 0 is in forward at step 9" in error["what"]
    assert "RM560" in done.stderr
    record = json.loads((tmp_path / "attempt0" / "hang.json").read_text())
    assert record["ranks"]["0"]["state"] == ("T" if "SIGSTOP" in then else "S")
    stacks = (tmp_path / "attempt0" / "rank0.stacks.txt").read_text()
    assert "in rank" in stacks
    assert then.startswith("lambda") or "in hold_the_gil" in stacks


def test_rank_with_a_restart_left_is_ended_without_an_error(tmp_path: Path) -> None:
    attempt = {"TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_MAX_RESTARTS": "3"}
    done, _ = run(tmp_path, "rank(hold_the_gil)", **attempt)
    assert done.returncode == -signal.SIGKILL
    (hang,) = events(done)
    assert (hang["event"], hang["restarts_left"]) == ("hang", 2)
    assert (tmp_path / "attempt1" / "hang.json").exists()


def test_healthy_rank_is_left_alone_and_leaves_nothing(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "rank(lambda: time.sleep(0.3))")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert list(tmp_path.rglob("*")) == []


def test_killed_rank_leaves_no_watcher(tmp_path: Path) -> None:
    program = LEARN.replace("[1]", "[-1]") + "rank(lambda: (print('ready', flush=True), time.sleep(60)))"
    mark = f"{tmp_path}"
    child = subprocess.Popen([sys.executable, "-c", program, mark], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    watchers = [path for path in Path("/proc").glob("[0-9]*/cmdline") if is_watcher(path, mark)]
    assert len(watchers) == 1
    assert os.getsid(int(watchers[0].parent.name)) != os.getsid(child.pid), "no terminal's Ctrl-C reaches it"
    child.kill()
    child.wait()
    deadline = time.monotonic() + 10
    while is_watcher(watchers[0], mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_watcher(watchers[0], mark)


def is_watcher(path: Path, mark: str) -> bool:
    try:
        words = path.read_text().split("\0")
    except OSError:
        return False
    return "trainer.distributed.watchdog.watcher" in words and f"{mark}/attempt0" in words


def test_torchruns_variables_give_the_ranks_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "6", "LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT", raising=False)
    launch = Launch.from_environment()
    assert launch.ranks_here == (4, 5, 6, 7)
    assert launch.attempt == 0
    assert Launch().ranks_here == (0,)
