"""The evidence file is opened, brought up to date, and left alone where it is not ours."""

import json
import os
import shutil
import sqlite3
import time
import zlib
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocmatrix.evidence import schema, store
from rocmatrix.evidence.counted import head
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.evidence import record, smoke


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
        assert (caught.value.code, caught.value.where) == ("RM621", str(path))
        assert damage != "newer" or caught.value.what == "the file has version 99, and this program knows 4"
    else:
        with pytest.raises(RocmatrixError, match="RM621") as caught:
            schema.is_there(path)
        assert caught.value.where == str(path)


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


def of_version(path, version):
    """Make the file one of a program that kept no head."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE head")
        connection.execute(f"PRAGMA user_version = {version}")
    head.companion(path).unlink()


def test_numbered_file_without_a_head_is_read_with_its_places_and_its_gap(path):
    store.add(path, [record("build", 1), smoke(2, status="fail"), smoke(3)])
    for hours in (5, 9):
        copied = smoke(hours).model_copy(update={"series": "s", "number": 4})
        store.add(path, [copied], origin=f"{hours}.json")
    of_version(path, schema.NUMBERED)
    assert [r.number for r in store.read(path)] == [1, 2, 3, 0, 0]  # two share the number 4
    assert store.missing(path) == 0
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM record WHERE number = 2")
    assert store.missing(path) == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.NUMBERED,)  # left as it was


def test_file_without_numbers_misses_nothing(path):
    store.add(path, [record("build", 1)])
    of_version(path, schema.NUMBERED - 1)
    assert store.missing(path) == 0


def test_reader_does_not_wait_for_a_writer(path):
    store.add(path, [record("build")])
    with schema.opened(path, write=True) as connection:
        connection.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert len(store.read(path)) == 1
        assert time.monotonic() - began < schema.WAIT_SECONDS / 2
        connection.execute("ROLLBACK")


def test_log_of_the_newest_records_is_read_on_a_read_only_place(path, tmp_path, monkeypatch):
    store.add(path, [record("build", 1)])
    reader = sqlite3.connect(path)
    reader.execute("SELECT count(*) FROM record").fetchone()  # the log stays while somebody reads
    store.add(path, [record("build", 2, passed=False)])
    frozen = tmp_path / "frozen"
    shutil.copytree(path.parent, frozen, ignore=shutil.ignore_patterns("frozen"))
    reader.close()
    monkeypatch.setattr(schema.os, "access", lambda _, mode: mode != os.W_OK)  # root may write everywhere
    assert [each.passed for each in store.read(frozen / path.name)] == [True, False]


def test_default_file_is_the_one_named_else_that_of_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv(schema.VARIABLE, str(tmp_path / "a" / ".." / "e.db"))
    assert schema.default_file(Path("/root")) == tmp_path / "e.db"
    monkeypatch.delenv(schema.VARIABLE)
    assert schema.default_file(Path("/root")) == Path("/root/.rocmatrix/evidence.db")


def test_file_is_made_with_its_folders_and_named_by_its_path_wherever_its_version_is_read(tmp_path, monkeypatch):
    path, paths, version = tmp_path / "a" / "b" / "evidence.db", [], schema._version
    monkeypatch.setattr(schema, "_version", lambda connection, place: paths.append(place) or version(connection, place))
    with schema.opened(path, write=True):
        pass
    assert len(paths) >= 4
    assert {*paths} == {path}


def test_changes_of_a_transaction_that_fails_are_undone_and_its_error_is_raised(path):
    with schema.opened(path, write=True) as connection:
        with pytest.raises(ZeroDivisionError), schema.transaction(connection):
            connection.execute("UPDATE head SET number = 7")
            raise ZeroDivisionError
        assert not connection.in_transaction
        assert connection.execute("SELECT number FROM head").fetchone() == (0,)


def test_migration_that_fails_changes_nothing(path, monkeypatch):
    monkeypatch.setattr(schema, "MIGRATIONS", (("CREATE TABLE made (x)", "BROKEN"),))
    with pytest.raises(sqlite3.OperationalError, match="BROKEN"), schema.opened(path, write=True):
        pass
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        assert connection.execute("PRAGMA application_id").fetchone() == (0,)


@pytest.mark.parametrize(
    ("writable", "log", "frozen"),
    [
        (("folder", "file"), None, False),
        (("folder",), None, True),
        (("file",), None, True),
        ((), None, True),
        ((), b"", True),
        ((), b"x", False),  # the log holds the newest records
    ],
)
def test_file_is_read_without_its_log_where_none_can_be_made_and_none_is_there(
    path, monkeypatch, writable, log, frozen
):
    calls = []
    if log is not None:
        path.with_name(f"{path.name}-wal").write_bytes(log)
    names = {path.parent: "folder", path: "file"}
    monkeypatch.setattr(schema.os, "access", lambda place, mode: mode == os.W_OK and names[place] in writable)
    monkeypatch.setattr(schema.sqlite3, "connect", lambda place, **more: calls.append((place, more)))
    schema._connected(path, write=False)
    schema._connected(path, write=True)
    uri = f"{path.as_uri()}?mode=ro{'&immutable=1' if frozen else ''}"
    assert calls == [
        (uri, {"uri": True, "timeout": schema.WAIT_SECONDS}),
        (path, {"timeout": schema.WAIT_SECONDS, "isolation_level": None}),
    ]


def failure(code):
    error = sqlite3.OperationalError("SYNTHETIC")
    error.sqlite_errorcode = code
    return error


BUSY = failure(sqlite3.SQLITE_BUSY)
ASK, SET = "PRAGMA journal_mode", "PRAGMA journal_mode = WAL"


@pytest.mark.parametrize(
    ("answers", "nap", "statements", "naps"),
    [
        (["wal"], 0.02, [ASK], 0),
        (["delete", None], 0.02, [ASK, SET], 0),
        ([BUSY, "delete", BUSY, "wal"], 0.02, [ASK, ASK, SET, ASK], 2),
        ([BUSY, "wal"], schema.WAIT_SECONDS, [ASK, ASK], 1),
        ([BUSY, BUSY, "wal"], schema.WAIT_SECONDS, [ASK, ASK, ASK], 2),  # the second try is just in time
        ([BUSY, BUSY, BUSY], schema.WAIT_SECONDS, None, 2),
        ([failure(sqlite3.SQLITE_FULL)], 0.02, None, 0),
    ],
)
def test_change_to_write_ahead_logging_is_tried_until_the_other_program_is_done(
    monkeypatch, answers, nap, statements, naps
):
    clock, slept, executed, left = [100.0], [], [], iter(answers)

    def sleep(seconds):
        slept.append(seconds)
        clock[0] += nap

    def execute(statement):
        executed.append(statement)
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(fetchone=lambda: (answer,))

    monkeypatch.setattr(schema, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    if statements is None:
        with pytest.raises(sqlite3.OperationalError, match="SYNTHETIC"):
            schema._log_ahead(SimpleNamespace(execute=execute))
    else:
        schema._log_ahead(SimpleNamespace(execute=execute))
        assert executed == statements
    assert slept == [0.02] * naps
