"""A job's log holds all it said; a place that cannot be written costs the log and nothing else."""

import os
import sys

import pytest

from rocmatrix.jobs import log as job_log
from rocmatrix.jobs import runner
from rocmatrix.jobs.log import JobLog

TALK = """
import sys
print('{"event": "start"}', flush=True)
sys.stderr.write('half')
print('plain')
"""


def run(code, log):
    return runner.attached([sys.executable, "-c", code], show=lambda _: None, log=log)


def test_streams_are_both_kept_whole(tmp_path, capfd):
    log = tmp_path / "logs" / "train-cell.log"
    done = run(TALK + "sys.stderr.write('y' * 600_000)", log)
    assert done.log == log
    text = log.read_text()
    assert {'{"event": "start"}', "plain"} <= set(text.splitlines())
    assert text.count("y") == 600_000
    assert len(done.stderr_tail) < 300_000


def test_line_never_ends_a_half_written_one(tmp_path):
    with job_log.opened(tmp_path / "train-x.log") as log:
        log.write(b"epoch 3")
        log.line('{"event": "epoch"}\n')
        log.write(b" of 4\n")
    assert (tmp_path / "train-x.log").read_text() == 'epoch 3\n{"event": "epoch"}\n of 4\n'


def test_log_that_cannot_be_opened_stops_nothing(tmp_path, capfd):
    (tmp_path / "file").write_text("")
    done = run(TALK, tmp_path / "file" / "train.log")
    assert (done.status, done.log) == (0, None)
    assert done.stderr_tail


def test_full_disk_ends_the_log_and_not_the_job():
    full = JobLog(descriptor=os.open("/dev/full", os.O_WRONLY))
    full.write(b"first\n")
    assert full.descriptor is None
    full.line("second\n")


def test_log_that_broke_off_is_not_taken_for_the_whole(tmp_path, capfd):
    (tmp_path / "train.log").symlink_to("/dev/full")
    done = run(TALK, tmp_path / "train.log")
    assert (done.status, done.log) == (0, None)
    assert done.last("start")
    assert done.stderr_tail == b"half"


def test_oldest_logs_of_a_program_go_and_those_of_others_stay(tmp_path):
    (tmp_path / "build-x.log").write_text("")
    for number in range(job_log.KEPT + 3):
        path = tmp_path / f"train-{number}.log"
        path.write_text("")
        os.utime(path, (number, number))
    with job_log.opened(tmp_path / "train-new.log"):
        pass
    left = {path.name for path in tmp_path.iterdir()}
    assert len(left) == job_log.KEPT + 1
    assert {"build-x.log", "train-new.log", f"train-{job_log.KEPT + 2}.log"} <= left
    assert "train-0.log" not in left


@pytest.mark.parametrize("program", ["train", "smoke", "bench"])
def test_two_jobs_of_one_second_do_not_share_a_log(tmp_path, program, monkeypatch):
    first = job_log.place(tmp_path, program, "cell")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert job_log.place(tmp_path, program, "cell") != first
    assert first.name.startswith(f"{program}-cell-")
