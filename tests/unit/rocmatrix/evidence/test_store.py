"""The store keeps what it is given once, with two writers and with one that is killed; it never fails a job."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from rocmatrix.evidence import store
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
    outputs = [process.communicate()[0].split() for process in writers]
    assert [process.returncode for process in writers] == [0] * 4
    assert [len(words) for words in outputs] == [20] * 4
    assert len(store.read(path)) == 80


def test_killed_writer_leaves_whole_records_and_the_next_one_continues(path):
    process = writer(path, 0, 100_000)
    outputs = [int(process.stdout.readline()) for _ in range(5)]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert len(store.read(path)) >= len(outputs)
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
    stderr = capsys.readouterr().err
    assert stderr.count("RM620") == 1
    assert "full" in stderr


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


def edit(path, statement):
    """Change the file as an editor of SQLite does."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def raw(path):
    """The rows of the file as SQLite holds them."""
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT * FROM record ORDER BY at").fetchall()
    connection.close()
    return found


def test_record_is_written_under_its_names_with_its_log_apart(path):
    kept = record("build", 1, log="größer\n" * 9, commit="é")
    store.add(path, [kept])
    ((id_, at, cell, kind, body, log, origin, series, number),) = raw(path)
    assert (id_, at, cell, kind, origin, number) == (kept.id, kept.at, kept.cell, "build", "this machine", 1)
    assert json.loads(body) == kept.content() | {"log": ""}
    assert '"é"' in body
    assert zlib.decompress(log).decode() == kept.log
    assert len(series) == 32
    assert [(each.series, each.number, each.log) for each in store.read(path)] == [(series, 1, kept.log)]
    (without,) = store.read(path, logs=False)
    assert (without.log, without.series, without.number) == ("", series, 1)


def test_own_records_are_numbered_in_one_series_and_those_of_a_file_that_names_a_series_in_its(path, tmp_path):
    store.add(path, [record("build", 1), record("build", 2)])
    assert store.add(path, [record("prove", 3), record("build", 1)], origin="lab.json") == 1
    store.add(path, [record("prove", 0)])
    other = tmp_path / "other.db"
    store.add(other, [record("train", 9), record("train", 10)])
    store.add(path, store.read(other)[1:], origin="other.db")
    own, theirs = (store.read(file)[0].series for file in (path, other))
    assert [(origin, each.kind, each.series, each.number) for origin, each in store.rows(path)] == [
        ("this machine", "build", own, 1),
        ("this machine", "build", own, 2),
        ("this machine", "prove", own, 3),
        ("lab.json", "prove", "", 0),
        ("other.db", "train", theirs, 2),
    ]


def test_records_of_a_cell_are_read_alone(path):
    assert store.rows(path) == []
    path.touch()
    assert store.read(path) == []  # made by another process, and still empty
    assert path.read_bytes() == b""
    store.add(path, [record("build", 1), record("build", 2, cell="another"), record("build", 3, log="x")])
    assert [each.at for each in store.read(path, cell="another")] == [record("build", 2).at]
    assert [each.log for _, each in store.rows(path, cell=record("build").cell)] == ["", "x"]
    assert [each.log for _, each in store.rows(path, cell=record("build").cell, logs=False)] == ["", ""]
    assert len(store.read(path)) == 3


@pytest.mark.parametrize(
    ("column", "value"),
    [("body", "{"), ("body", "[]"), ("body", '{"kind": "none"}'), ("log", b"not packed"), ("body", "[" * 100_000)],
)
def test_record_that_cannot_be_read_is_rm621_with_its_file(path, column, value):
    store.add(path, [record("build")])
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE record SET {column} = ?", (value,))
    connection.commit()
    connection.close()
    with pytest.raises(RocmatrixError, match="RM621") as caught:
        store.read(path)
    assert caught.value.where == str(path)
    assert caught.value.what.startswith("a record cannot be read: ")


@pytest.mark.parametrize(
    ("error", "why"),
    [(sqlite3.OperationalError("locked"), "locked"), (RocmatrixError("RM621", what="foreign"), "foreign")],
)
def test_record_that_cannot_be_written_is_reported_once_a_file_with_the_reason(
    path, tmp_path, monkeypatch, capsys, error, why
):
    def refuse(*_):
        raise error

    assert store.save(path, record("build"))
    monkeypatch.setattr(store, "add", refuse)
    assert [store.save(path, record("build", cell="c")) for _ in range(2)] == [False, False]
    assert not store.save(tmp_path / "another.db", record("prove", cell="d"))
    stderr = capsys.readouterr().err
    expected = [
        RocmatrixError("RM620", what=f"the {kind} of {cell}", where=str(file), why=why).render()
        for kind, cell, file in (("build", "c", path), ("prove", "d", tmp_path / "another.db"))
    ]
    assert stderr == "".join(f"{text}\n" for text in expected)


def test_folder_or_pipe_in_place_of_the_file_is_no_empty_evidence(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(RocmatrixError, match="RM621"):
            store.read(place)
    assert store.read(tmp_path / "none") == []


@pytest.mark.parametrize(
    "change",
    [
        "body = replace(body, '\"fail\"', '\"pass\"')",
        "cell = 'another'",
        "log = (SELECT log FROM record WHERE kind = 'build')",
    ],
)
@pytest.mark.parametrize("logs", [True, False])
def test_record_that_was_edited_in_the_file_is_rm621(path, change, logs):
    store.add(path, [record("build", log="words"), smoke(1, status="fail")])
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE record SET {change} WHERE kind = 'smoke'")
    with pytest.raises(RocmatrixError) as caught:
        store.read(path, logs=logs)
    edited = raw(path)[1]
    assert (caught.value.code, caught.value.where) == ("RM621", str(path))
    assert caught.value.what.startswith(f"record {edited[0][:12]} of {edited[2]} was changed after it was written: ")


def test_record_that_stands_alone_is_compared_with_its_hash(path):
    store.add(path, [smoke(status="fail")])
    edit(path, "UPDATE record SET body = replace(body, '\"fail\"', '\"pass\"')")
    for logs in (True, False):
        with pytest.raises(RocmatrixError, match="has another hash"):
            store.read(path, logs=logs)


def test_oldest_of_very_many_records_are_not_unpacked_to_be_compared(path, monkeypatch):
    store.add(path, [smoke(1, status="fail"), smoke(2)])
    edit(path, "UPDATE record SET body = replace(body, '\"fail\"', '\"pass\"')")
    monkeypatch.setattr(store, "MOST_CHECKED", 1)
    assert len(store.read(path, logs=False)) == 2
    for more in ({}, {"cell": smoke().cell, "logs": False}):
        with pytest.raises(RocmatrixError, match="has another hash"):
            store.read(path, **more)
    edit(path, "UPDATE record SET log = 'not packed' WHERE number = 1")
    assert len(store.read(path, logs=False)) == 2


def test_records_of_a_copy_of_this_file_stand_by_their_times_though_none_shares_a_number(path, tmp_path):
    store.add(path, [record("build", 1)])
    (series,) = {each.series for each in store.read(path)}
    copied = smoke(2).model_copy(update={"series": series, "number": 50})
    store.add(path, [smoke(4, status="fail")])
    assert store.add(path, [copied, *store.read(path)], origin="copy.json") == 1
    assert [(each.kind, each.passed) for each in store.read(path)] == [
        ("build", True), ("smoke", True), ("smoke", False),
    ]  # fmt: skip
    assert [each.number for each in store.read(path) if each.series == series] == [1, 2]


def test_older_record_of_a_second_file_of_one_name_does_not_stand_behind_a_newer_failure(path):
    store.add(path, [smoke(5, status="fail")], origin="evidence.json")
    store.add(path, [smoke(2)], origin="evidence.json")  # neither file names places
    assert [each.passed for each in store.read(path)] == [True, False]


def test_record_that_was_removed_leaves_a_gap_in_the_sequence(path):
    assert store.missing(path) == 0
    store.add(path, [record("build", 1), smoke(2, status="fail"), smoke(3)])
    store.add(path, [smoke(9).model_copy(update={"series": "s", "number": 7})], origin="lab.json")
    assert store.missing(path) == 0
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM record WHERE body LIKE '%fail%'")
    assert store.missing(path) == 1


def placed(made, series, number):
    return made.model_copy(update={"series": series, "number": number})


def test_numbers_of_two_copies_state_nothing_though_one_cell_alone_shows_no_clash(path):
    series, other = "f" * 32, "rocm6.3-torch2.7.1-gfx1030"
    store.add(path, [placed(record("smoke", 4, cell=other), series, 10), placed(smoke(5), series, 11)], origin="b.json")
    store.add(path, [placed(smoke(9, status="fail"), series, 10)], origin="c.json")
    read = store.read(path, cell=smoke().cell)
    assert [(each.passed, each.series, each.number) for each in read] == [(True, "", 0), (False, "", 0)]


def test_records_of_two_copies_of_this_file_stand_by_their_times(path):
    store.add(path, [record("build", 1)])
    series = store.read(path)[0].series
    store.add(path, [placed(smoke(5), series, 11)], origin="b.json")
    store.add(path, [placed(smoke(9, status="fail"), series, 10)], origin="c.json")
    read = store.read(path)
    assert [(each.passed, each.series, each.number) for each in read] == [
        (True, series, 1), (True, "", 0), (False, "", 0),
    ]  # fmt: skip


def test_record_of_this_file_that_is_added_here_keeps_its_place(path):
    store.add(path, [record("build", 1)])
    series = store.read(path)[0].series
    store.add(path, [placed(smoke(5), series, 7)])
    assert [(each.series, each.number) for each in store.read(path)] == [(series, 1), (series, 7)]


def test_row_in_which_a_key_stands_twice_is_refused(tmp_path):
    path = tmp_path / "evidence.db"
    store.add(path, [smoke()])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            """UPDATE record SET body = replace(body, '"passed": true', '"passed": 0, "passed": true')"""
        )
    with pytest.raises(RocmatrixError, match="RM621"):
        store.read(path)
