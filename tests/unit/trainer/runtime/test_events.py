from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from trainer.runtime.events import WIDE, emit, progress, progress_shape, say

ROOT = Path(__file__).resolve().parents[4]


def test_event_is_one_json_line_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    emit("epoch", loss=0.5, text="two\nlines")
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    assert json.loads(captured.out) == {"event": "epoch", "loss": 0.5, "text": "two\nlines"}
    assert captured.err == ""


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_value_that_json_cannot_hold_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        emit("epoch", loss=value)


def test_messages_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    say("hello")
    assert capsys.readouterr() == ("", "hello\n")


def test_progress_in_a_log_file_is_modest(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(1000) as bar:
        for _ in range(1000):
            bar.update()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "\r" not in captured.err
    lines = captured.err.splitlines()
    assert 1 <= len(lines) <= 3
    assert captured.err.endswith("\n")
    assert "epoch 1000/1000" in lines[-1]
    assert "ETA" in lines[-1]


def test_event_in_a_log_with_the_progress_has_a_line_of_its_own(tmp_path: Path) -> None:
    """Standard output and standard error in one file, as with `>log 2>&1`."""
    code = "from trainer.runtime.events import *\nwith progress(3) as bar:\n"
    code += "  for n in range(3): bar.update(); emit('epoch', n=n); say('words')"
    with (tmp_path / "log").open("w") as log:
        subprocess.run([sys.executable, "-c", code], stdout=log, stderr=log, check=True)
    lines = (tmp_path / "log").read_text().splitlines()
    assert sum(line == '{"event": "epoch", "n": 2}' for line in lines) == 1
    assert lines.count("words") == 3
    assert all(line.startswith(("train ", "{", "words")) for line in lines)


def test_line_on_a_terminal_is_written_where_the_progress_line_was() -> None:
    """What is left on each row of the screen, after its carriage returns, is one whole text."""
    controller, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 100))  # of a terminal without a width tqdm draws nothing
    code = "from trainer.runtime.events import *\nwith progress(3) as bar:\n"
    code += "  for n in range(3): bar.update(); bar.refresh(); emit('epoch', n=n); say('words')"
    with os.fdopen(terminal, "w") as there:
        subprocess.run([sys.executable, "-c", code], stdout=there, stderr=there, check=True)
        written = os.read(controller, 1 << 16).decode()
    os.close(controller)
    rows = [shown(row) for row in written.replace("\r\n", "\n").split("\n")]
    assert rows.count("words") == 3
    assert [row for row in rows if row.startswith("{")] == [f'{{"event": "epoch", "n": {n}}}' for n in range(3)]
    assert not any("words" in row and row != "words" for row in rows)
    assert "epoch 3/3" in written


def shown(row: str) -> str:
    """Return what a row of a terminal shows: text after a carriage return overwrites what was there."""
    cells: list[str] = []
    for part in row.split("\r"):
        cells[: len(part)] = part
    return "".join(cells).replace("\x1b[A", "").strip()


@pytest.mark.parametrize(("columns", "bar"), [(None, True), (WIDE, True), (WIDE - 1, False), (40, False)])
def test_bar_is_drawn_where_there_is_room_for_the_figures(columns: int | None, bar: bool) -> None:
    assert ("{bar" in progress_shape(columns)) is bar


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_narrow_terminal_shows_epoch_and_end_whole(columns: int) -> None:
    controller, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, columns))
    code = "from trainer.runtime.events import *\nwith progress(300) as bar:\n"
    code += "  bar.set_postfix_str('loss 1.125 train 1.736 validation, 230,174 rows/s'); bar.update(300); bar.refresh()"
    with os.fdopen(terminal, "w") as there:
        subprocess.run([sys.executable, "-c", code], stdout=there, stderr=there, check=True)
        written = os.read(controller, 1 << 16).decode()
    os.close(controller)
    last = [part for part in written.replace("\n", "\r").split("\r") if part.strip()][-1]
    assert last.startswith("train 100% epoch 300/300, ETA 00:00, ")
    assert "epoch 300/300, ETA 00:00" in last and len(last) <= columns


def test_full_standard_error_loses_lines_alone() -> None:
    code = "from trainer.runtime.events import emit, say; say('a'); emit('b')"
    with Path("/dev/full").open("wb") as full:
        argv = [sys.executable, "-c", code]
        done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=full, check=False)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"event": "b"})
