"""Programs of two checkouts that use one engine keep apart by its name, and a lock ends with its process."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import docker.errors
import pytest

from rocmatrix.containers import engine_lock, orphan_cleanup
from rocmatrix.nightly import disk
from rocmatrix.runtime import process_name
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.kernel_lock import HeldError

ROOT = Path(__file__).resolve().parents[4]
HOLDER = """
import contextlib, sys, time
from pathlib import Path
from types import SimpleNamespace
from rocmatrix.containers import engine_lock
engine_lock.FOLDER = Path(sys.argv[1])
engine_lock._marked = lambda *_: contextlib.nullcontext()  # the file's lock alone
client = SimpleNamespace(info=lambda: {"ID": "one"})
with engine_lock.exclusive(client, "rocmatrix:x"):
    print("holds", flush=True)
    time.sleep(60)
"""


class Engine:
    """An engine's volumes and clock; `seconds` after its start."""

    def __init__(self, name="one"):
        self.name, self.volumes, self.seconds = name, {}, 0

    def create(self, name, *, labels):
        return self.volumes.setdefault(name, {"Name": name, "Labels": labels})

    def remove(self, name):
        if self.volumes.pop(name, None) is None:
            raise docker.errors.NotFound(name)

    def client(self):
        api = SimpleNamespace(
            create_volume=self.create,
            remove_volume=self.remove,
            volumes=lambda *, filters: {"Volumes": [v for v in self.volumes.values() if v["Labels"]] or None},
        )
        # the form of Go's RFC 3339, of an engine east of Greenwich
        now = lambda: f"{datetime(2026, 11, 23) + timedelta(seconds=self.seconds):%Y-%m-%dT%H:%M:%S}.123456789+01:00"  # noqa: E731
        return SimpleNamespace(api=api, info=lambda: {"ID": self.name, "SystemTime": now()}, close=lambda: None)


@pytest.fixture
def engine(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_lock, "FOLDER", tmp_path)
    monkeypatch.setattr(engine_lock, "SETTLE_SECONDS", 0.0)
    return lambda name: Engine(name).client()


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
    with pytest.raises(HeldError, match=f"process {other.pid}"), engine_lock.exclusive(engine("one"), "rocmatrix:x"):
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
    with engine_lock.exclusive(engine("one"), "rocmatrix:x", waiting="somebody builds it"):
        assert time.monotonic() - began > 0.3
    assert "somebody builds it" in capsys.readouterr().err


def test_lock_that_cannot_be_kept_excludes_no_one(engine, monkeypatch, tmp_path):
    monkeypatch.setattr(engine_lock, "FOLDER", tmp_path / "none" / "such")
    with engine_lock.exclusive(engine("one"), "rocmatrix:x"):
        pass


# Programs that do not share the file: the mark on the engine alone keeps them apart.


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Return a function that makes this program one of another machine: of another name and without the file."""

    def enter(name):
        label = {orphan_cleanup.LABEL: f"{name} pid:[1] | boot | 1:1"}
        monkeypatch.setattr(engine_lock, "FOLDER", tmp_path / name)
        monkeypatch.setattr(engine_lock.orphan_cleanup, "label", lambda: label)

    monkeypatch.setattr(engine_lock, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(engine_lock, "POLL_SECONDS", 0.01)
    return enter


def test_another_machine_of_the_engine_is_named_and_other_tags_are_free(machine):
    shared = Engine()
    machine("lab")
    with engine_lock.exclusive(shared.client(), "rocmatrix:x"):
        machine("desk")
        with pytest.raises(HeldError, match="a program on lab of this engine, volume rocmatrix-lock-rocmatrix_x"):
            engine_lock.exclusive(shared.client(), "rocmatrix:x").__enter__()
        assert engine_lock.is_taken(shared.client(), "rocmatrix:x")
        with engine_lock.exclusive(shared.client(), "rocmatrix:y"):
            assert len(shared.volumes) == 2
        assert not engine_lock.is_taken(shared.client(), "rocmatrix:y")
    assert shared.volumes == {}


def test_mark_of_another_machine_is_waited_for(machine, capsys):
    shared, seen = Engine(), []
    machine("lab")
    other = engine_lock.exclusive(shared.client(), "rocmatrix:x")
    other.__enter__()
    threading.Timer(0.2, lambda: (seen.append(1), other.__exit__(None, None, None))).start()
    machine("desk")
    with engine_lock.exclusive(shared.client(), "rocmatrix:x", waiting="another builds it"):
        assert seen
    assert capsys.readouterr().err.count("another builds it (a program on lab") == 1


@pytest.mark.parametrize(("seconds", "taken"), [(599, True), (601, False)])
def test_mark_that_is_not_renewed_expires_by_the_engines_clock(machine, seconds, taken):
    shared = Engine()
    machine("lab")
    engine_lock._Mark(client=shared.client(), tag="rocmatrix:x").take()  # and is killed
    shared.seconds = seconds
    machine("desk")
    assert engine_lock.is_taken(shared.client(), "rocmatrix:x") is taken
    with pytest.raises(HeldError) if taken else contextlib.nullcontext():
        engine_lock.exclusive(shared.client(), "rocmatrix:x").__enter__()


def test_mark_of_a_killed_program_of_this_host_ends_at_once(machine, tmp_path, monkeypatch):
    shared = Engine()
    monkeypatch.setattr(engine_lock, "FOLDER", tmp_path)
    dead = subprocess.Popen(["true"])
    dead.wait()
    named = f"{process_name.host()} | {process_name.boot()} | {dead.pid}:1"
    monkeypatch.setattr(engine_lock.orphan_cleanup, "label", lambda: {orphan_cleanup.LABEL: named})
    engine_lock._Mark(client=shared.client(), tag="rocmatrix:x").take()
    with engine_lock.exclusive(shared.client(), "rocmatrix:x"):
        assert len(shared.volumes) == 1
    assert shared.volumes == {}


def test_mark_is_renewed_while_the_program_runs(machine, monkeypatch):
    shared = Engine()
    machine("lab")
    mark = engine_lock._Mark(client=shared.client(), tag="rocmatrix:x", connect=shared.client)
    assert mark.take() is None
    waits = iter([False, False, False, True])
    ended = SimpleNamespace(wait=lambda seconds: setattr(shared, "seconds", shared.seconds + 500) or next(waits))
    mark.renew(ended)
    assert sorted(shared.volumes) == [mark.volume, f"{mark.volume}.{mark.holder[:8]}.3"]
    machine("desk")
    assert engine_lock.is_taken(shared.client(), "rocmatrix:x")  # 2,000 s after it was made, 500 after it was renewed
    shared.seconds += 101
    assert not engine_lock.is_taken(shared.client(), "rocmatrix:x")


def test_mark_is_renewed_after_a_user_has_pruned_its_volumes(machine):
    shared, minutes = Engine(), iter(range(1, 15))
    machine("lab")
    mark = engine_lock._Mark(client=shared.client(), tag="rocmatrix:x", connect=shared.client)
    mark.take()

    def wait(seconds):
        shared.seconds += seconds
        if (minute := next(minutes)) == 2:
            shared.volumes.clear()  # `docker volume prune --all`: no container uses a mark
        return minute == 14

    mark.renew(SimpleNamespace(wait=wait))
    machine("desk")
    with pytest.raises(HeldError, match="a program on lab"):
        engine_lock.exclusive(shared.client(), "rocmatrix:x").__enter__()


def test_renewal_outlasts_an_engine_that_is_away(machine):
    shared, answers = Engine(), iter([RocmatrixError("RM201", what="away"), docker.errors.APIError("busy"), None])
    machine("lab")

    def connect():
        if (error := next(answers)) is not None:
            raise error
        return shared.client()

    mark = engine_lock._Mark(client=shared.client(), tag="rocmatrix:x", connect=connect)
    mark.take()
    waits = iter([False, False, False, True])
    mark.renew(SimpleNamespace(wait=lambda _: next(waits)))
    assert sorted(shared.volumes) == [mark.volume, f"{mark.volume}.{mark.holder[:8]}.1"]


def test_volume_of_a_person_under_the_name_of_a_mark_is_named(machine):
    shared = Engine()
    shared.create("rocmatrix-lock-rocmatrix_x", labels=None)
    machine("lab")
    with pytest.raises(HeldError, match="volume rocmatrix-lock-rocmatrix_x"):
        engine_lock.exclusive(shared.client(), "rocmatrix:x").__enter__()
    shared.volumes.clear()


def test_abandoned_mark_that_two_take_over_is_the_ones_whose_volume_is_left(machine, monkeypatch):
    shared = Engine()
    machine("lab")
    engine_lock._Mark(client=shared.client(), tag="rocmatrix:x").take()
    shared.seconds = 700
    machine("desk")
    own = engine_lock._Mark(client=shared.client(), tag="rocmatrix:x")
    rival = engine_lock._Mark(client=shared.client(), tag="rocmatrix:x")
    pauses = iter([lambda: None, lambda: (shared.volumes.clear(), rival._put(shared.client(), rival.volume))])
    monkeypatch.setattr(engine_lock.time, "sleep", lambda _: next(pauses)())
    assert "a program on desk" in own.take()


def test_engine_without_volumes_excludes_no_one(machine):
    def refuse(*_, **__):
        raise docker.errors.APIError("not implemented")

    client = Engine().client()
    client.api.create_volume = client.api.volumes = refuse
    machine("lab")
    with engine_lock.exclusive(client, "rocmatrix:x"):
        assert not engine_lock.is_taken(client, "rocmatrix:y")


def test_candidate_of_a_night_in_another_checkout_is_not_removed(engine, other, monkeypatch):
    removed = []
    tags = ("rocmatrix:x", "rocmatrix:night-y")
    images = [{"Id": tag, "RepoTags": [tag], "Size": 10} for tag in tags]
    client = engine("one")
    client.api.images = lambda: images
    client.images = SimpleNamespace(remove=removed.append)
    client.close = lambda: None
    monkeypatch.setattr(disk, "OWN_TAGS", "rocmatrix:")
    monkeypatch.setattr(disk.engine, "connect", lambda **_: client)
    disk.make_room(budget=0, needed=(), recorded=(), builder=None)
    assert removed == ["rocmatrix:night-y"]
