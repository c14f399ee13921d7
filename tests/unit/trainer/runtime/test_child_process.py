from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainer.runtime.child_process import OUTPUT_LIMIT_BYTES, Outcome, run_limited


def python(source: str, *, seconds: float = 20.0) -> Outcome:
    return run_limited([sys.executable, "-c", source], seconds=seconds)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_output_and_status_come_back() -> None:
    outcome = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (outcome.stdout, outcome.stderr, outcome.returncode) == ("out\n", "err\n", 3)
    assert outcome.signal_name is None
    assert not outcome.timed_out


@pytest.mark.parametrize(("source", "name"), [("os.abort()", "SIGABRT"), ("os.kill(os.getpid(), 11)", "SIGSEGV")])
def test_signal_is_named(source: str, name: str) -> None:
    assert python(f"import os; {source}").signal_name == name


def test_limit_ends_a_program_that_ignores_sigterm() -> None:
    outcome = python("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)", seconds=1.0)
    assert outcome.timed_out
    assert outcome.seconds < 10
    assert outcome.signal_name == "SIGKILL"


NOTE_PID = "import os, time; os.setsid(); open({note!r}, 'w').write(str(os.getpid())); time.sleep(60)"
START = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); {then}"
NESTED = (
    "import sys; from trainer.runtime.child_process import run_limited; "
    "run_limited([sys.executable, '-c', {child!r}], seconds=60)"
)


@pytest.mark.parametrize(("then", "timed_out"), [("time.sleep(60)", True), ("time.sleep(1.5)", False)])
def test_descendants_in_sessions_of_their_own_die_with_it(tmp_path: Path, then: str, timed_out: bool) -> None:
    note = tmp_path / "pid"
    source = START.format(child=NOTE_PID.format(note=str(note)), then=then)
    assert python(source, seconds=2.0 if timed_out else 20.0).timed_out == timed_out
    assert not alive(int(note.read_text()))


def test_outer_limit_reaches_the_processes_of_a_nested_run(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    source = NESTED.format(child=NOTE_PID.replace("os.setsid(); ", "").format(note=str(note)))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    assert run_limited([sys.executable, "-c", source], seconds=2.0, env=environment).timed_out
    assert not alive(int(note.read_text()))


def test_other_processes_are_left_alone() -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        python("pass")
        time.sleep(0.1)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_flood_of_output_keeps_its_end_only() -> None:
    outcome = python(f"print('x' * {3 * OUTPUT_LIMIT_BYTES}); print('the end')")
    assert len(outcome.stdout) == OUTPUT_LIMIT_BYTES
    assert outcome.stdout.endswith("the end\n")


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert python("import os; os.write(1, b'\\xff\\xfe')").stdout == "\ufffd\ufffd"


def test_program_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        run_limited(["/nonexistent/program"], seconds=1.0)
