"""BuildKit's command: what is kept, shown and cancelled. The builder is a stand-in."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocmatrix.images import buildkit
from rocmatrix.runtime.errors import CATALOG, RocmatrixError

ROOT = Path(__file__).resolve().parents[4]


def program(code):
    return [sys.executable, "-c", code]


def test_log_is_kept_and_the_steps_are_shown_once(tmp_path, capfd):
    log = tmp_path / "logs" / "b.log"
    lines = "#1 [internal] load\\n#5 [runtime 1/2] RUN x\\n#5 0.1 words\\n#5 [runtime 1/2] RUN x"
    buildkit.run(program(f"import sys; print('{lines}', file=sys.stderr)"), log=log)
    assert log.read_text().count("\n") == 4
    assert capfd.readouterr().err == "  [internal] load\n  [runtime 1/2] RUN x\n"


def test_failed_build_is_rm202_with_its_last_lines(tmp_path):
    log = tmp_path / "b.log"
    with pytest.raises(RocmatrixError, match="RM202") as caught:
        buildkit.run(program("for i in range(99): print('line', i)\nraise SystemExit(7)"), log=log)
    assert "status 7" in caught.value.what
    assert caught.value.why.splitlines() == [f"line {i}" for i in range(99 - buildkit.LINES_SHOWN, 99)]
    assert caught.value.where == str(log)
    assert len(log.read_text().splitlines()) == 99


def test_text_in_the_log_does_not_decide(tmp_path):
    buildkit.run(program("print('ERROR: failed to solve: no space left on device')"), log=tmp_path / "b.log")


def test_full_engine_gets_advice(tmp_path):
    with pytest.raises(RocmatrixError, match="RM202") as caught:
        buildkit.run(program("print('write: no space left on device'); exit(1)"), log=tmp_path / "b.log")
    assert "docker builder prune" in caught.value.next


def test_ctrl_c_cancels_the_builder(tmp_path):
    """SIGINT to this program alone, as `kill -INT` sends it: the builder is told, and waited for."""
    trace, log = tmp_path / "trace", tmp_path / "b.log"
    code = f"""
import signal, time, pathlib
def cancelled(*_):
    time.sleep(0.3)
    pathlib.Path({str(trace)!r}).write_text("cancelled")
    raise SystemExit(1)
signal.signal(signal.SIGINT, cancelled)
print("#1 [runtime 1/1] RUN sleep", flush=True)
time.sleep(60)
pathlib.Path({str(trace)!r}).write_text("tagged")
"""
    ours = f"""
import pathlib
from rocmatrix.images import buildkit
buildkit.run({program(code)!r}, log=pathlib.Path({str(log)!r}))
"""
    process = subprocess.Popen(program(ours), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "RUN sleep" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert trace.read_text() == "cancelled"
    assert "KeyboardInterrupt" in stderr


def test_builder_reads_nothing_from_the_terminal(tmp_path):
    buildkit.run(program("import sys; assert sys.stdin.read() == ''"), log=tmp_path / "b.log")


@pytest.mark.parametrize("line", ["#12 [runtime 1/2] RUN x", "#1 [internal] load"])
def test_step_is_cut_to_the_width_of_a_line(line, tmp_path, capfd):
    long = line + "y" * 300
    buildkit.run(["echo", long], log=tmp_path / "a" / "b" / "log")
    assert capfd.readouterr().err == f"  {long.partition(' ')[2][: buildkit.STEP_WIDTH]}\n"
    assert (tmp_path / "a" / "b" / "log").read_text() == long + "\n"


def test_step_is_shown_without_blanks_at_its_end(tmp_path, capfd):
    buildkit.run(["echo", "#3 [runtime 1/2] RUN x   "], log=tmp_path / "log")
    assert capfd.readouterr().err == "  [runtime 1/2] RUN x\n"


def test_bytes_of_the_builder_that_are_no_text_are_replaced(tmp_path):
    buildkit.run(["printf", r"a\377b\n"], log=tmp_path / "log")
    assert (tmp_path / "log").read_text(encoding="utf-8") == "a\ufffdb\n"


def test_builder_that_is_left_early_is_cancelled_and_waited_for():
    with pytest.raises(OSError, match="full"), buildkit._started(["sleep", "60"]) as process:
        raise OSError("full")
    assert process.returncode == -signal.SIGINT


def test_builder_does_not_read_typed_input(tmp_path):
    kept, (typed, keyboard) = os.dup(0), os.pipe()
    os.write(keyboard, b"typed\n")
    os.close(keyboard)
    os.dup2(typed, 0)
    try:
        buildkit.run(["cat"], log=tmp_path / "log")
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(typed)
    assert (tmp_path / "log").read_text() == ""


def test_free_disk_is_checked_with_every_line(tmp_path):
    looks = []
    watched = SimpleNamespace(measure=lambda: looks.append(1))
    buildkit.run(["printf", "a\\nb\\nc\\n"], log=tmp_path / "log", watched=watched)
    assert len(looks) == 3


def test_builder_ended_by_a_signal_has_a_negative_status(tmp_path):
    with pytest.raises(buildkit.BuildKitError) as caught:
        buildkit.run(["sh", "-c", "kill -9 $$"], log=Path(tmp_path) / "log")
    assert caught.value.status == -9
    assert caught.value.next == CATALOG["RM202"].next
