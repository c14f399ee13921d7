"""Locks that go with their process: also one that was killed, stopped on a full disk, or led astray by a link."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from rocmatrix.runtime.kernel_lock import HeldError, held

HOLD = """
import sys, time
from pathlib import Path
from rocmatrix.runtime.kernel_lock import held
with held(Path(sys.argv[1]), shared=sys.argv[2] == "shared"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Return how to start a process that holds the lock, alone or shared; what is left of them is ended."""
    started = []

    def start(kind="alone"):
        process = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path / "lock", kind], stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_held_lock_names_the_process_and_goes_with_it_when_killed(tmp_path, holder):
    process = holder()
    with pytest.raises(HeldError, match=str(process.pid)), held(tmp_path / "lock"):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    with held(tmp_path / "lock"):
        pass


def test_shared_locks_stand_side_by_side_and_keep_a_lone_one_out(tmp_path, holder):
    holder("shared")
    with held(tmp_path / "lock", shared=True):
        pass
    with pytest.raises(HeldError), held(tmp_path / "lock"):
        pass


def test_waiting_is_reported_once_and_ends_with_the_holder(tmp_path, holder, capfd):
    process = holder()
    threading.Timer(1.0, process.kill).start()
    began = time.monotonic()
    with held(tmp_path / "lock", waiting="another call installs"):
        assert time.monotonic() - began > 0.8
    assert capfd.readouterr().err.count("another call installs") == 1


def test_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (tmp_path / "lock").symlink_to(precious)
    with pytest.raises(OSError), held(tmp_path / "lock"):
        pass
    assert precious.read_text() == "kept"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_lock_that_can_only_be_read_keeps_others_out_all_the_same(tmp_path, monkeypatch, holder, number):
    """It is another user's, or of a checkout on a file system that is mounted read-only."""
    path = tmp_path / "lock"
    with held(path, open_to_all=True):
        assert path.stat().st_mode & 0o777 == 0o666
    signed, opened = path.read_text(), os.open

    def closed(place, flags, *mode):
        if flags & os.O_RDWR:
            raise OSError(number, os.strerror(number), str(place))
        return opened(place, flags, *mode)

    monkeypatch.setattr(os, "open", closed)
    with held(path, open_to_all=True):
        assert path.read_text() == signed  # it cannot be signed
    monkeypatch.undo()
    process = holder()
    monkeypatch.setattr(os, "open", closed)
    with pytest.raises(HeldError, match=str(process.pid)), held(path, open_to_all=True):
        pytest.fail("two hold it")
