"""Where a job runs follows from what is there; its events arrive one by one, its words pass through."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rocmatrix.jobs import runner
from rocmatrix.runtime.errors import RocmatrixError

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("requested", "cards", "obstacle", "where", "reason"),
    [
        ("auto", (), None, "native", "no AMD GPU"),
        ("auto", ("gfx1100",), None, "container", "gfx1100"),
        ("auto", ("gfx1100",), "the daemon is stopped", "native", "the daemon is stopped"),
        ("native", ("gfx1100",), None, "native", "--in native"),
        ("container", (), "the daemon is stopped", "container", "--in container"),
    ],
)
def test_place_has_a_reason(requested, cards, obstacle, where, reason):
    decision = runner.decide(requested, cards=cards, engine=obstacle)
    assert decision.where == where
    assert reason in decision.why


def test_unknown_runner_is_refused():
    with pytest.raises(RocmatrixError, match="RM404"):
        runner.decide("docker", cards=(), engine=None)


def test_events_arrive_in_order_and_text_passes_through(capfd):
    code = 'print("{\\"event\\": \\"a\\"}"); print("words"); print("[1]"); print("{\\"event\\": \\"b\\", \\"n\\": 2}")'
    seen = []
    done = runner.attached([sys.executable, "-c", code + "; raise SystemExit(7)"], show=seen.append)
    assert done.status == 7
    assert [event["event"] for event in seen] == ["a", "b"]
    assert done.last("b") == {"event": "b", "n": 2}
    assert done.last("c") is None
    assert "words" in capfd.readouterr().err


def test_checkout_comes_first_on_the_module_path(tmp_path):
    environment = runner.native_environment(tmp_path, {"PYTHONPATH": "/elsewhere", "HOME": "/h"})
    assert environment == {"PYTHONPATH": f"{tmp_path}:/elsewhere", "HOME": "/h", "PYTHONSAFEPATH": "1"}


def test_checkout_that_no_module_path_can_name_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(RocmatrixError, match="cannot be imported from here") as refused:
        runner.native_environment(tmp_path / "a:b", {})
    assert (refused.value.code, "--in container" in refused.value.next) == ("RM403", True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_to_the_host_side_alone_ends_the_job_it_started(number, tmp_path):
    mark = tmp_path / "alive"
    loop = f"while True:\n pathlib.Path({str(mark)!r}).touch(); time.sleep(0.05)"
    job = f"import time, pathlib; print('{{}}', flush=True)\n{loop}"
    run = "runner.attached([sys.executable, '-c', sys.argv[1]], show=print)"
    host = f"import sys; from rocmatrix.jobs import runner; {run}"
    with subprocess.Popen([sys.executable, "-c", host, job], cwd=ROOT, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout.readline().strip() == "{}"
        began = time.monotonic()
        started.send_signal(number)
        started.communicate(timeout=30)
    assert number == signal.SIGINT or time.monotonic() - began < runner.SECONDS_IF_SENT_TO_BOTH
    mark.unlink(missing_ok=True)
    time.sleep(0.3)
    assert not mark.exists()


def test_stop_reaches_a_program_of_another_group_by_its_own_way_alone(tmp_path):
    job = "import os, time; print('{}', flush=True); print(os.getpgrp(), flush=True); time.sleep(60)"
    stop = "lambda process, error: (print('stop', process.pid, flush=True), process.kill(), process.wait())"
    run = f"runner.attached([sys.executable, '-c', sys.argv[1]], show=print, own_group_stop={stop})"
    host = f"import sys; from rocmatrix.jobs import runner; sys.stderr = sys.stdout; {run}"
    with subprocess.Popen(
        [sys.executable, "-c", host, job],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as started:
        assert started.stdout.readline().strip() == "{}"
        group = started.stdout.readline().strip()
        os.killpg(started.pid, signal.SIGINT)
        written, _ = started.communicate(timeout=30)
    assert f"stop {group}" in written  # first of its group


def test_program_begins_with_ctrl_c_blocked(capfd):
    blocked = "import json, signal; print(json.dumps({'blocked': signal.SIGINT in signal.pthread_sigmask(0, [])}))"
    done = runner.attached([sys.executable, "-c", blocked], show=lambda _: None)
    assert done.events == ({"blocked": True},)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_missing_client_is_rm201():
    with pytest.raises(RocmatrixError, match="RM201"):
        runner.attached(["no-such-docker"], show=print)


def scheduled(tmp_path):
    path = tmp_path / "runs" / "r.sbatch"
    return runner.Job(argv=["sbatch", str(path)], environment=None, why="w", files={path: "#!/bin/sh\n"})


def test_job_prints_its_files_before_its_command(tmp_path):
    assert scheduled(tmp_path).summary.splitlines() == [
        f"# {tmp_path}/runs/r.sbatch",
        "#!/bin/sh",
        "",
        f"sbatch {tmp_path}/runs/r.sbatch",
    ]


def ended_with(code: str, *before: dict[str, str]) -> runner.Finished:
    return runner.Finished(status=2, events=(*before, {"event": "error", "code": code}))


OWN_INPUT = ("RM513", "RM526", "RM529", "RM563", "RM574", "RM582", "RM700", "RM705", "RM708", "RM714", "RM717", "RM730",
             "RM731", "RM732")  # fmt: skip
OF_THE_CELL = ("RM501", "RM521", "RM522", "RM530", "RM558", "RM566", "RM567", "RM599", "RM716", "RM718", "RM733")


@pytest.mark.parametrize("code", [*OWN_INPUT, *OF_THE_CELL])
def test_refusal_of_a_persons_own_file_or_setting_is_none_of_the_cell(code):
    assert ended_with(code).has_input_error is (code in OWN_INPUT)


def test_input_error_after_the_begin_is_the_runs_own():
    assert not ended_with("RM730", {"event": "start"}).has_input_error


START, END = {"event": "start"}, {"event": "done"}


@pytest.mark.parametrize(
    ("events", "complete"),
    [
        (({"event": "complete"},), True),
        ((START, {"event": "resumed", "from_start": False}, END), True),  # after its last step, before its files
        ((START, {"event": "resumed", "from_start": False}), False),
        ((START, {"event": "resumed", "from_start": True}, END), False),
        ((START, {"event": "resumed", "from_start": False}, {"event": "epoch"}, END), False),
        ((START, END), False),
        ((START, {"event": "complete"}), False),
    ],
)
def test_training_is_complete_where_it_found_no_step_to_take(events, complete):
    assert runner.Finished(status=0, events=events).was_complete is complete
    assert not runner.Finished(status=1, events=events).was_complete


@pytest.mark.parametrize(("status", "shown"), [(-9, 137), (-15, 143), (0, 0), (2, 2), (137, 137)])
def test_exit_status_of_a_job_is_a_shells(status, shown):
    """A container ends with 137 where a native process was ended by signal 9."""
    assert runner.Finished(status=status, events=()).exit_status == shown
