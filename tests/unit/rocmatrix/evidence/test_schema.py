"""The evidence file is opened, brought up to date, and left alone where it is not ours."""

import json
import os
import shutil
import sqlite3
import time
import zlib
from contextlib import closing

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
        assert caught.value.code == "RM621"


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
