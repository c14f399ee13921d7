"""Programs of two checkouts that use one engine keep apart by its name, and a lock ends with its process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocmatrix.containers import engine_lock
from rocmatrix.nightly import disk
from rocmatrix.runtime.kernel_lock import HeldError

ROOT = Path(__file__).resolve().parents[4]
HOLDER = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from rocmatrix.containers import engine_lock
engine_lock.FOLDER = Path(sys.argv[1])
client = SimpleNamespace(info=lambda: {"ID": "one"})
with engine_lock.alone(client, "rocmatrix:x"):
    print("holds", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_lock, "FOLDER", tmp_path)
    return lambda name: SimpleNamespace(info=lambda: {"ID": name})


@pytest.fixture
def other(engine, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "holds\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_another_program_is_named_and_another_engine_or_tag_is_free(engine, other):
    with pytest.raises(HeldError, match=f"process {other.pid}"), engine_lock.alone(engine("one"), "rocmatrix:x"):
        pytest.fail("two hold it")
    assert engine_lock.is_taken(engine("one"), "rocmatrix:x")
    assert not engine_lock.is_taken(engine("one"), "rocmatrix:y")
    assert not engine_lock.is_taken(engine("two"), "rocmatrix:x")


def test_lock_ends_with_the_process_that_is_killed(engine, other):
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    assert not engine_lock.is_taken(engine("one"), "rocmatrix:x")


def test_lock_is_waited_for_on_request(engine, other, capsys):
    began = time.monotonic()
    os.kill(other.pid, signal.SIGSTOP)
    subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep(0.5); os.kill({other.pid}, 9)"])
    with engine_lock.alone(engine("one"), "rocmatrix:x", waiting="somebody builds it"):
        assert time.monotonic() - began > 0.3
    assert "somebody builds it" in capsys.readouterr().err


def test_lock_that_cannot_be_kept_excludes_no_one(engine, monkeypatch, tmp_path):
    monkeypatch.setattr(engine_lock, "FOLDER", tmp_path / "none" / "such")
    with engine_lock.alone(engine("one"), "rocmatrix:x"):
        pass


def test_candidate_of_a_night_in_another_checkout_is_not_removed(engine, other, monkeypatch):
    removed = []
    tags = ("rocmatrix:x", "rocmatrix:night-y")
    images = [{"Id": tag, "RepoTags": [tag], "Size": 10} for tag in tags]
    client = engine("one")
    client.api = SimpleNamespace(images=lambda: images)
    client.images = SimpleNamespace(remove=removed.append)
    client.close = lambda: None
    monkeypatch.setattr(disk, "OWN_TAGS", "rocmatrix:")
    monkeypatch.setattr(disk.engine, "connect", lambda **_: client)
    disk.make_room(budget=0, needed=(), recorded=(), builder=None)
    assert removed == ["rocmatrix:night-y"]
