"""The newest record is missed, too, when it is removed: by the file's own table, or by the file next to it."""

import os
import sqlite3

import pytest

from rocmatrix.evidence import schema, store
from rocmatrix.evidence.counted import head
from tests.fixtures.evidence import record, smoke


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "evidence.db"
    store.add(path, [record("build"), record("prove", 1), smoke(2, status="fail")])
    return path


def edit(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


NEWEST = "DELETE FROM record WHERE number = 3"
TABLE = "UPDATE head SET number = 2"


def test_record_removed_from_the_end_is_missed(path):
    assert store.missing(path) == 0
    edit(path, NEWEST)
    assert store.missing(path) == 1
    store.add(path, [smoke(3)])
    assert (store.missing(path), [r.number for r in store.read(path)]) == (1, [1, 2, 4])


def test_head_edited_with_its_record_is_missed_by_the_file_next_to_it(path):
    edit(path, NEWEST, TABLE)
    assert store.missing(path) == 1
    store.add(path, [smoke(3)])
    assert store.missing(path) == 1
    head.companion(path).unlink()
    assert store.missing(path) == 1  # the new record has the number after the one that is gone


def test_head_without_its_file_stands_by_the_table(path):
    head.companion(path).unlink()
    edit(path, NEWEST)
    assert store.missing(path) == 1
    head.companion(path).write_bytes(b"\xff\x00 of no form")
    assert store.missing(path) == 1


def test_number_follows_the_records_where_every_head_is_gone(path):
    edit(path, "UPDATE head SET number = 0")
    head.companion(path).unlink()
    store.add(path, [smoke(3)])
    assert [r.number for r in store.read(path)] == [1, 2, 3, 4]


def test_head_of_another_file_states_nothing(path, tmp_path):
    other = tmp_path / "other" / "evidence.db"
    store.add(other, [record("build")])
    head.companion(other).write_text(head.companion(path).read_text())
    assert store.missing(other) == 0
    store.add(other, [record("prove", 1)])
    assert head.companion(other).read_text().endswith(" 2\n")


def test_import_moves_no_head(path):
    store.add(path, [smoke(5).model_copy(update={"series": "s", "number": 900})], origin="lab.json")
    assert store.missing(path) == 0


def test_record_that_is_added_again_or_names_another_series_moves_no_head(path):
    store.add(path, store.read(path))
    store.add(path, [record("build")])  # it names no series
    store.add(path, [smoke(5).model_copy(update={"series": "s", "number": 900})])
    assert store.missing(path) == 0


def test_file_that_was_emptied_misses_every_record(path):
    path.write_bytes(b"")
    assert store.missing(path) == 3
    path.unlink()
    assert store.missing(path) == 3


def test_head_that_is_a_link_is_left_alone(path, tmp_path):
    head.companion(path).unlink()
    head.companion(path).symlink_to(tmp_path / "elsewhere")
    store.add(path, [smoke(3)])
    assert not (tmp_path / "elsewhere").exists()


def test_file_without_records_has_no_last_number(tmp_path):
    path = tmp_path / "evidence.db"
    with schema.opened(path, write=True):
        pass
    assert (head.last(path), store.missing(path)) == (0, 0)
    edit(path, "DROP TABLE head", f"PRAGMA user_version = {schema.NUMBERED}")
    assert store.missing(path) == 0


def test_file_next_to_it_is_written_anew_where_it_has_another_form_and_can_be_read_by_others(tmp_path):
    path = tmp_path / "evidence.db"
    before = os.umask(0)
    try:
        head.keep(path, "s", 2)
    finally:
        os.umask(before)
    assert head.companion(path).stat().st_mode & 0o777 == 0o644
    for content in (b"\xff\x00 of no form", b"no head 5", b"s " + b"0" * 198 + b"5"):  # the last one longer than any
        head.companion(path).write_bytes(content)
        head.keep(path, "s", 3)
        assert (head.companion(path).read_text(), head.last(path)) == ("s 3\n", 3)


def test_text_of_three_words_is_no_last_number(tmp_path):
    path = tmp_path / "evidence.db"
    head.companion(path).write_text("no head 5")
    assert head.last(path) == 0


def test_last_number_is_read_for_any_series_where_the_file_is_gone(tmp_path):
    path = tmp_path / "evidence.db"
    assert head.last(path) == 0
    head.keep(path, "one", 4)
    assert (head.last(path), head.last(path, "one"), head.last(path, "other")) == (4, 4, 0)
