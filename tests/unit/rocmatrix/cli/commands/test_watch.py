"""What a person types: a look as table and JSON, no card, a run, a redrawn table on a terminal, and its end."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from rocmatrix.cli.commands import watch
from rocmatrix.cli.commands.watch import Watch
from tests.fixtures import machines, sysfs


def run(capsys, **options):
    status = 0
    try:
        watch.watch(Watch(**options))
    except SystemExit as end:
        status = end.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_recorded_tree_is_printed_as_a_table_or_a_json_line(tmp_path, capsys):
    machines.two_rx_7900_xt(tmp_path)
    status, out, _ = run(capsys, once=True, sysfs=str(tmp_path))
    assert status == 0
    assert "recorded tree, 2 card(s)" in out
    assert "1 gfx1100  0" in out
    status, out, _ = run(capsys, once=True, json=True, sysfs=str(tmp_path))
    (line,) = out.splitlines()
    assert (json.loads(line)["event"], len(json.loads(line)["cards"])) == ("cards", 2)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (sysfs.no_driver, "the amdgpu driver is not loaded"),
        (sysfs.wsl2, "this is WSL2"),
        (machines.unserved, "1 AMD card(s) are there and cannot be used (0000:03:00.0, PCI device 0x744c, gfx1100)"),
    ],
)
def test_machine_without_a_usable_card_is_named_so(tmp_path, capsys, make, text):
    make(tmp_path)
    status, out, err = run(capsys, once=True, sysfs=str(tmp_path))
    assert (status, out) == (2, "")
    assert "RM301" in err
    assert text in err


def test_cards_of_other_makers_are_named(tmp_path, capsys):
    machine = sysfs.no_driver(tmp_path)
    ids = {"vendor": "0x10de", "class": "0x030000", "device": "0x2204"}
    machines.pci(machine, "0000:00:01.0/0000:01:00.0", "0000:01:00.0", **ids)
    assert "of other makers: NVIDIA 10de:2204 at 0000:01:00.0" in run(capsys, sysfs=str(tmp_path))[2]


def test_run_is_followed_without_a_card(tmp_path, capsys):
    sysfs.no_driver(tmp_path)
    folder = tmp_path / ".bars.partial"
    folder.mkdir()
    (folder / "telemetry.jsonl").write_text('{"event": "window", "step": 40}\n')
    status, out, err = run(capsys, once=True, json=True, sysfs=str(tmp_path), run=str(tmp_path / "bars"))
    assert (status, "no card is watched: the amdgpu driver is not loaded" in err) == (0, True)
    assert json.loads(out.splitlines()[1]) == {
        "event": "run",
        "run": "bars",
        "state": "unfinished",
        "record": {"event": "window", "step": 40},
    }
    assert "window: step 40" in run(capsys, once=True, sysfs=str(tmp_path), run=str(folder))[1]


@pytest.mark.parametrize("options", [{"run": "/nowhere/x"}, {"every": 0.0}, {"every": -1.0}, {"every": float("nan")}])
def test_wrong_usage_is_coded(tmp_path, capsys, options):
    machines.two_rx_7900_xt(tmp_path)
    status, _, err = run(capsys, once=True, sysfs=str(tmp_path), **options)
    assert status == 2
    assert ("RM427" if "run" in options else "RM404") in err


def started(tmp_path, *flags, **environment):
    machines.two_rx_7900_xt(tmp_path)
    command = [sys.executable, "-m", "rocmatrix", "watch", "--every", "0.2", "--sysfs", str(tmp_path), *flags]
    return command, {**os.environ, "COLUMNS": "80", "LINES": "40", "PYTHONUNBUFFERED": "1", **environment}


def on_terminal(command, environment, *, end, until):
    """Run on a terminal until a text was printed often enough, then send a signal; return the status and all text."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        command, env=environment, stdin=other, stdout=other, stderr=other, start_new_session=True
    )
    os.close(other)
    text, ends, sent = "", time.monotonic() + 60, False
    while time.monotonic() < ends:
        if select.select([main], [], [], 0.2)[0]:
            try:
                text += os.read(main, 65536).decode(errors="replace")
            except OSError:
                break
        if until(text) and not sent:
            process.send_signal(end)
            sent = True
    os.close(main)
    return process.wait(timeout=30), text


@pytest.mark.parametrize(("end", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_table_is_redrawn_in_place_and_the_cursor_comes_back(tmp_path, end, status):
    command, environment = started(tmp_path, TERM="xterm", NO_COLOR="1")
    found, text = on_terminal(command, environment, end=end, until=lambda text: text.count("0 gfx1100") >= 3)
    assert found == status
    assert "\x1b[1A" in text  # the cursor goes up over the frame before
    assert "\x1b[3" not in text  # no colour
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert "Traceback" not in text


def test_terminal_that_cannot_move_its_cursor_gets_frame_after_frame(tmp_path):
    command, environment = started(tmp_path, TERM="dumb")
    found, text = on_terminal(command, environment, end=signal.SIGINT, until=lambda text: text.count("0 gfx1100") >= 2)
    assert found == 0
    assert "\x1b" not in text


def test_pipe_gets_json_lines_and_a_reader_that_leaves_ends_them(tmp_path):
    command, environment = started(tmp_path)
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdout.close()
        assert process.wait(timeout=60) == 141
        assert "Traceback" not in process.stderr.read()
    assert [line["source"] for line in lines] == ["recorded tree"] * 2
    assert lines[0]["time"] < lines[1]["time"]
