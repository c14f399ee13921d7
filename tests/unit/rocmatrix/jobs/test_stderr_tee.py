"""A program's standard error reaches the person as it comes, and its end is kept."""

import os
import subprocess
import sys
import time

from rocmatrix.jobs import stderr_tee


def run(code, onto):
    with stderr_tee.tee_stderr(onto) as words:
        subprocess.run([sys.executable, "-c", code], stderr=words.writable, check=False)
    return words.tail


def test_text_passes_through_and_is_kept(capfd):
    assert run("import sys; sys.stderr.write('one\\ntwo\\n')", sys.stderr) == b"one\ntwo\n"
    assert capfd.readouterr().err == "one\ntwo\n"


def test_tee_keeps_only_the_end(capfd):
    tail = run("import sys; sys.stderr.write('x' * 600_000 + 'end')", sys.stderr)
    assert len(tail) == stderr_tee.KEPT_BYTES
    assert tail.endswith(b"xend")
    assert len(capfd.readouterr().err) == 600_003


def test_terminal_stays_a_terminal():
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as terminal:
        tail = run("import sys; sys.stderr.write(str(sys.stderr.isatty()))", terminal)
    assert tail == b"True"
    assert os.read(master, 100) == b"True"
    os.close(master)


def test_grandchild_that_holds_the_end_open_is_not_waited_for(capfd):
    code = "import subprocess, sys; sys.stderr.write('gone\\n'); subprocess.Popen([sys.executable, '-c', "
    code += "'import time; time.sleep(15)'])"
    began = time.monotonic()
    assert run(code, sys.stderr) == b"gone\n"
    assert time.monotonic() - began < 10


def test_reader_that_is_gone_does_not_stop_the_program():
    readable, writable = os.pipe()
    os.close(readable)
    with os.fdopen(writable, "w") as gone:
        assert run("import sys; sys.stderr.write('on\\n')", gone) == b"on\n"
