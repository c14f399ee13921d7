"""Two ranks under torchrun on the CPU, one of them put to sleep: found, ended, started again, and the same weights."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.left_out import long
from trainer.distributed import torchrun as launch_module
from trainer.distributed.torchrun import command
from trainer.distributed.watchdog.heartbeat import read_beat
from trainer.distributed.watchdog.process_state import alive
from trainer.runtime.errors import TrainerError

ROOT = Path(__file__).resolve().parents[4]
FLOOR_S = 2.0
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return what starts a run; what still runs at the end of the test is ended, ranks and all."""
    with ExitStack() as ends:

        def begin(output: Path, name: str, *more: str, **environment: str) -> subprocess.Popen[str]:
            process = started(output, name, *more, **environment)
            ends.callback(end, process)
            return process

        yield begin


def end(process: subprocess.Popen[str]) -> None:
    for pid in [*descendants(process.pid), process.pid]:  # torchrun gives each rank a session of its own
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.communicate()


def started(output: Path, name: str, *more: str, **environment: str) -> subprocess.Popen[str]:
    settings = ["--epochs", "25", "--batch-size", "32", "--device", "cpu", "--checkpoint-every", "30", "--seed", "3"]
    run = ["--output", str(output), "--run", name, "--ranks", "2", *more]
    inherited = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    return subprocess.Popen(
        [sys.executable, "-m", "trainer", "train", *settings, *run],
        cwd=ROOT,
        env=inherited | environment,
        stdout=subprocess.PIPE,
        stderr=(output / f"{name}.stderr").open("w"),  # a pipe that nobody reads would fill and stop the run
        start_new_session=True,
        text=True,
    )


def events_until(process: subprocess.Popen[str], event: str) -> list[dict[str, Any]]:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        if line.startswith("{"):
            seen.append(json.loads(line))
            if seen[-1]["event"] == event:
                return seen
    raise AssertionError(f"no event {event} before the end")


def put_to_sleep(folder: Path, rank: int) -> float:
    beat = read_beat(folder / f"rank{rank}.beat")
    assert beat is not None
    os.kill(beat.pid, signal.SIGSTOP)
    return time.monotonic()


def without_torchrun() -> list[dict[str, str]]:
    """What torchrun would set for two ranks; the same run without its launcher costs one process less."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    common = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [common | {"RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"} for rank in range(2)]


def digests(folder: Path) -> dict[str, str]:
    names = ("model.safetensors", "model.pt", "batches.jsonl", "metrics.jsonl")
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


@long
def test_sleeping_rank_is_found_and_the_weights_are_those_of_the_undisturbed_run(tmp_path: Path, start: Start) -> None:
    undisturbed = [start(tmp_path, "calm", **rank) for rank in without_torchrun()]
    disturbed = start(tmp_path, "disturbed", "--hang-timeout", "60", "--hang-floor", str(FLOOR_S))
    events_until(disturbed, "checkpoint")
    slept = put_to_sleep(tmp_path / ".disturbed.partial" / "watchdog" / "attempt0", rank=1)
    (*_, hang) = events_until(disturbed, "hang")
    found_after = time.monotonic() - slept
    (*after, _) = events_until(disturbed, "done")
    assert disturbed.wait(60) == 0
    for process in undisturbed:
        process.communicate(timeout=60)
        assert process.returncode == 0, (tmp_path / "calm.stderr").read_text()[-3000:]

    assert hang["blamed"] == [1]
    assert "rank 1 (stopped by a signal)" in hang["what"]
    assert FLOOR_S * 0.5 < found_after < 60  # never the ceiling: the limit was learned
    (resumed,) = [event for event in after if event["event"] == "resumed"]
    assert resumed["step"] >= 30
    assert not resumed["from_start"]
    assert digests(tmp_path / "disturbed") == digests(tmp_path / "calm")
    evidence = tmp_path / "disturbed" / "watchdog" / "attempt0"
    stacks = [evidence / f"rank{rank}.stacks.txt" for rank in range(2)]
    assert all("trainer/engine/loop.py" in path.read_text() for path in stacks)
    assert not (tmp_path / "calm" / "watchdog").exists()


def descendants(pid: int) -> list[int]:
    """Return the processes that `pid` started, and those that they started."""
    own = children(pid)
    return own + [below for each in own for below in descendants(each)]


def children(pid: int) -> list[int]:
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if parent_of(path) == pid]


def parent_of(stat: Path) -> int | None:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:  # it ended while we looked
        return None


def alive_after(pids: list[int], *, seconds: float) -> list[int]:
    """Return which of the processes are still there; those that end sooner are not waited for."""
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


@long
def test_killed_launcher_leaves_no_process_and_the_run_resumes(tmp_path: Path, start: Start) -> None:
    killed = start(tmp_path, "one", "--epochs", "100000")
    events_until(killed, "checkpoint")
    below = descendants(killed.pid)
    assert len(below) >= 4, "torchrun, two ranks and the watcher"
    os.kill(killed.pid, signal.SIGKILL)
    left = alive_after(below, seconds=40)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []

    checkpoints = [path.name for path in (tmp_path / ".one.partial" / "checkpoints").iterdir()]
    assert checkpoints
    again = start(tmp_path, "one", "--epochs", "100000", "--resume", "auto")
    (*_, resumed) = events_until(again, "resumed")
    assert not resumed["from_start"]
    again.send_signal(signal.SIGTERM)
    again.communicate(timeout=60)
    assert again.returncode == 75


def test_ranks_do_not_outlive_a_killed_torchrun_and_keep_where_they_are(tmp_path: Path, start: Start) -> None:
    launcher = start(tmp_path, "one", "--epochs", "100000", "--checkpoint-every", "100000", "--max-restarts", "0")
    events_until(launcher, "epoch")
    below = descendants(launcher.pid)
    (torchrun,) = children(launcher.pid)
    os.kill(torchrun, signal.SIGKILL)
    left = alive_after(below, seconds=40)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
    assert list((tmp_path / ".one.partial" / "checkpoints").glob("step-*")), "each rank was asked to end, not killed"
    launcher.communicate(timeout=60)
    assert launcher.returncode == 2
    words = (tmp_path / "one.stderr").read_text()
    assert "RM588" in words
    assert "torchrun was ended by SIGKILL" in words
    assert "RM564" not in words


def test_child_whose_parent_is_gone_already_ends_before_it_becomes_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    tie = launch_module.ended_with_this_process()
    assert tie is not None
    monkeypatch.setattr(os, "getppid", lambda: 1)  # as after the parent's end
    assert subprocess.run(["/bin/true"], preexec_fn=tie, check=False).returncode == -signal.SIGTERM
    monkeypatch.undo()
    assert subprocess.run(["/bin/true"], preexec_fn=tie, check=False).returncode == 0


def ended_by(monkeypatch: pytest.MonkeyPatch, program: str) -> int:
    monkeypatch.setattr(launch_module, "command", lambda words, **_: [sys.executable, "-c", program])
    return launch_module.launch([], ranks=2, max_restarts=1)


def test_failure_after_the_last_restart_is_reported_with_ranks_and_status(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainerError, match="RM564") as caught:
        ended_by(monkeypatch, "import sys; sys.exit(1)")
    assert caught.value.what == "2 ranks failed in 2 attempt(s); torchrun's status is 1"
    assert ended_by(monkeypatch, "pass") == 0


def test_refusal_of_a_rank_ends_all_at_once_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
import os, time
from trainer.distributed import refusal
from trainer.runtime.errors import TrainerError
refusal.leave(TrainerError("RM563", what="2 ranks, 0 card(s) on this machine"), {**os.environ, "RANK": "0"})
time.sleep(600)
"""
    with pytest.raises(TrainerError, match="RM563") as caught:
        ended_by(monkeypatch, program)
    assert caught.value.what == "2 ranks, 0 card(s) on this machine"


def test_sigterm_is_passed_on_and_the_run_can_be_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""
    before = signal.getsignal(signal.SIGTERM)
    assert ended_by(monkeypatch, program) == 75
    assert signal.getsignal(signal.SIGTERM) == before


def test_command_is_torchrun_with_its_own_options() -> None:
    found = command(["train", "--ranks", "2", "--run", "x"], ranks=2, max_restarts=1)
    assert found[:3] == [sys.executable, "-m", "trainer.distributed.agent"]
    assert {"--nproc-per-node=2", "--max-restarts=1", "--nnodes=1"} <= set(found)
    assert found[found.index("--") - 1 :] == ["-m", "--", "trainer", "train", "--ranks", "2", "--run", "x"]


@pytest.mark.parametrize(
    "options", [["--ranks", "0"], ["--parallel", "tp"], ["--comms", "hccl"], ["--hang-timeout", "-1"]]
)
def test_impossible_value_is_a_users_mistake(options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trainer", "train", *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("RM500")


@pytest.mark.parametrize(("sent", "status"), [("SIGINT", 130), ("SIGHUP", 75), ("SIGTERM", 75)])
def test_first_signal_alone_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sent: str, status: int
) -> None:
    kept = tmp_path / "signals"
    program = f"""
import os, signal, sys, time
def came(number, _):
    with open({str(kept)!r}, "a") as file:
        print(signal.Signals(number).name, os.getpgrp() == os.getpid(), file=file)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, came)
for number in (signal.{sent}, signal.SIGTERM, signal.SIGINT):
    os.kill(os.getppid(), number)
    time.sleep(0.1)
sys.exit(9)
"""
    assert ended_by(monkeypatch, program) == status
    assert kept.read_text().split() == ["SIGINT" if sent == "SIGINT" else "SIGTERM", "True"]
