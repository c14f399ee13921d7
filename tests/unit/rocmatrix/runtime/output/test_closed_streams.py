"""A program whose standard streams are closed runs as one whose streams lead nowhere."""

import subprocess
import sys

import pytest

from rocmatrix.runtime.output.closed_streams import open_closed_streams

CODE = (
    "import os, sys; from rocmatrix.runtime.output.closed_streams import open_closed_streams; open_closed_streams(); "
    "print('out'); print('err', file=sys.stderr); sys.stdin.read(); "
    "opened = os.open(os.devnull, os.O_RDONLY); sys.exit(0 if opened > 2 else 9)"
)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "</dev/null"])
def test_closed_streams_are_opened_on_nothing(closed):
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" {closed}', sys.executable, CODE], capture_output=True, check=False
    )
    assert done.returncode == 0
    assert (b"out" in done.stdout, b"err" in done.stderr) == (">&-" not in closed.split(), "2>&-" not in closed.split())


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_program_with_a_closed_stream_ends_without_a_traceback(closed):
    argv = ["sh", "-c", f'"$0" -m rocmatrix nosuch {closed}', sys.executable]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr and "NoneType" not in done.stderr


def test_open_streams_are_left_as_they_are():
    before = sys.stdin, sys.stdout, sys.stderr
    open_closed_streams()
    assert (sys.stdin, sys.stdout, sys.stderr) == before
