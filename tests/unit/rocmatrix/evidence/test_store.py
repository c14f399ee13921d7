"""The store keeps what it is given once, with two writers and with one that is killed; it never fails a job."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from rocmatrix.evidence import schema, store
from rocmatrix.evidence.record import LOG_BYTES
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.evidence import record, smoke

ROOT = Path(__file__).resolve().parents[4]
WRITER = """
import sys
from pathlib import Path
from rocmatrix.evidence import store
from tests.fixtures.evidence import record
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    store.add(Path(sys.argv[1]), [record("build", number, log="x" * 5000)])
    print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "evidence.db"


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    monkeypatch.setattr(store, "_reported", set())


def writer(path, first, last):
    argv = [sys.executable, "-c", WRITER, str(path), str(first), str(last)]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_record_comes_back_as_it_was_and_once(path):
    records = [smoke(1, tflops=90.5, log="line\x1b[31m\n" * 9), record("build")]
    assert store.add(path, records) == 2
    assert store.add(path, records) == 0
    assert store.read(path) == [records[1], records[0]]
    assert store.read(path, logs=False)[1].log == ""
    assert store.read(path, cell="another") == []


def test_log_is_bounded_from_its_beginning(path):
    long = "ö" * LOG_BYTES + "end"
    kept = record("build", log=long)
    assert len(kept.log.encode()) <= LOG_BYTES
    assert kept.log.endswith("end")
    assert kept.log_omitted + len(kept.log) == len(long)
    store.add(path, [record("build", log="a" * LOG_BYTES)])
    assert path.stat().st_size < LOG_BYTES / 4


def test_writers_at_once_lose_nothing_of_a_file_that_does_not_exist_yet(path):
    writers = [writer(path, first, first + 20) for first in range(0, 80, 20)]
    said = [process.communicate()[0].split() for process in writers]
    assert [process.returncode for process in writers] == [0] * 4
    assert [len(words) for words in said] == [20] * 4
    assert len(store.read(path)) == 80


def test_killed_writer_leaves_whole_records_and_the_next_one_continues(path):
    process = writer(path, 0, 100_000)
    said = [int(process.stdout.readline()) for _ in range(5)]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert len(store.read(path)) >= len(said)
    store.add(path, [smoke(7)])
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_full_disk_is_reported_once_and_fails_nothing(tmp_path, capsys):
    if os.getuid() != 0:
        pytest.skip("mounting a small file system needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=True)
    try:
        path = disk / "evidence.db"
        kept = [store.save(path, record("build", n, log=os.urandom(40_000).hex())) for n in range(4)]
        assert not all(kept)
        assert len(store.read(path)) == sum(kept)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    said = capsys.readouterr().err
    assert said.count("RM620") == 1
    assert "full" in said


@pytest.mark.parametrize("damage", ["another program", "no database", "newer", "a folder"])
def test_store_that_is_not_ours_is_left_alone_and_reported(path, damage, capsys):
    if damage == "a folder":
        path.mkdir()
    elif damage == "no database":
        path.write_text("notes of mine, longer than a header of SQLite would be" * 4)
    else:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE mine (x)")
        if damage == "newer":
            connection.execute(f"PRAGMA application_id = {schema.APPLICATION}")
            connection.execute("PRAGMA user_version = 99")
        connection.close()
    before = path.read_bytes() if path.is_file() else None
    assert not store.save(path, record("build"))
    assert capsys.readouterr().err.count("RM620") == 1
    assert (path.read_bytes() if path.is_file() else None) == before
    if damage != "a folder":
        with pytest.raises(RocmatrixError) as caught:
            store.read(path)
        assert caught.value.code == "RM621"


def test_read_only_place_can_be_read(path, tmp_path):
    store.add(path, [record("build")])
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    for parent in tmp_path.parents:  # pytest's own folders, closed to others; one more where tests run side by side
        if parent.stat().st_mode & 0o777 == 0o700:
            parent.chmod(0o755)
    argv = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    tmp_path.chmod(0o755)
    assert done.stdout.split() == ["1", "False"], done.stderr
    assert done.stderr.count("RM620") == 1


READ = """
import os, sqlite3, sys
from pathlib import Path
from rocmatrix.evidence import store
from tests.fixtures.evidence import record
path = Path(sys.argv[1])
if os.getuid() == 0:
    os.setuid(65534)  # root may write everywhere
print(len(store.read(path)), store.save(path, record("prove")))
"""


def test_older_file_is_brought_up_to_date(path, monkeypatch):
    monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
    with schema.opened(path, write=True) as connection:
        for kept, origin in ((smoke(1), store.HERE), (record("build"), store.HERE), (record("train", 3), "lab.json")):
            row = (kept.id, kept.at, kept.cell, kept.kind, json.dumps(kept.content()), zlib.compress(b""), origin)
            connection.execute("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    monkeypatch.undo()
    assert [r.kind for r in store.read(path)] == ["build", "smoke", "train"]  # read as it is
    store.add(path, [record("prove", -9)])  # a clock set back
    kept = store.read(path)
    assert [(r.kind, r.number) for r in kept] == [("build", 1), ("smoke", 2), ("prove", 3), ("train", 1)]
    assert len({r.series for r in kept}) == 2
    with schema.opened(path, write=True) as connection:
        assert connection.execute("SELECT count(*) FROM night").fetchone() == (0,)


def test_reader_does_not_wait_for_a_writer(path):
    store.add(path, [record("build")])
    with schema.opened(path, write=True) as connection:
        connection.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert len(store.read(path)) == 1
        assert time.monotonic() - began < schema.WAIT_SECONDS / 2
        connection.execute("ROLLBACK")
