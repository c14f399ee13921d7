"""A run without a record becomes a failed one as soon as its program is known to be gone."""

import sqlite3
import zlib
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from rocmatrix.evidence import schema, store, unfinished_runs
from rocmatrix.runtime import process_name
from tests.fixtures.evidence import record

LOST = record("smoke", passed=False, log="nothing came back")


def noted(path, monkeypatch, *, host="here", boot="boot 1", runs=True, at=None):
    """Note a run as of another program, and let it run, or not, when it is next looked for."""
    monkeypatch.setattr(process_name, "host", lambda: host)
    monkeypatch.setattr(process_name, "boot", lambda: boot)
    lost = LOST if at is None else LOST.model_copy(update={"at": at})
    token = unfinished_runs.begin(path, lost)
    monkeypatch.setattr(process_name, "host", lambda: "here")
    monkeypatch.setattr(process_name, "boot", lambda: "boot 1")
    monkeypatch.setattr(process_name, "runs", lambda _: runs)
    return token


def now():
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def test_run_that_ended_has_its_record_alone(path):
    token = unfinished_runs.begin(path, LOST)
    unfinished_runs.end(path, token, record("smoke", 1))
    assert unfinished_runs.settle(path) == 0
    assert [each.passed for each in store.read(path)] == [True]


def test_forgotten_run_leaves_no_record(path):
    unfinished_runs.forget(path, unfinished_runs.begin(path, LOST))
    assert unfinished_runs.settle(path) == 0
    assert store.read(path) == []


@pytest.mark.parametrize(("version", "lost"), [(schema.NUMBERED, 1), (schema.NUMBERED - 1, 0)])
def test_run_that_was_lost_is_looked_for_in_a_file_that_knows_notes(path, monkeypatch, version, lost):
    noted(path, monkeypatch, runs=False)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE head")
        connection.execute(f"PRAGMA user_version = {version}")
    assert unfinished_runs._any(path) is bool(lost)


@pytest.mark.parametrize(
    ("about", "lost"),
    [
        ({"runs": True}, 0),
        ({"runs": False}, 1),
        ({"runs": True, "boot": "boot 0"}, 1),
        ({"runs": False, "host": "another", "at": now()}, 0),
        ({"runs": True, "host": "another", "at": "2020-01-01T00:00:00.000Z"}, 1),
    ],
)
def test_run_is_lost_where_its_process_or_boot_is_gone_or_another_host_is_late(path, monkeypatch, about, lost):
    noted(path, monkeypatch, **about)
    assert unfinished_runs.settle(path) == lost
    assert unfinished_runs.settle(path) == 0  # once
    assert [(each.passed, each.log) for each in store.read(path)] == [(False, LOST.log)] * lost


def test_lost_run_stands_before_the_one_that_begins_after_it(path, monkeypatch):
    noted(path, monkeypatch, runs=False)
    token = unfinished_runs.begin(path, LOST)
    unfinished_runs.end(path, token, record("smoke", 1))
    assert [(each.passed, each.number) for each in store.read(path)] == [(False, 1), (True, 2)]


def test_file_that_is_not_there_is_not_made(path):
    assert unfinished_runs.settle(path) == 0
    assert not path.exists()


def test_run_of_this_very_process_is_not_lost(path):
    token = unfinished_runs.begin(path, LOST)
    assert unfinished_runs.settle(path) == 0
    unfinished_runs.end(path, token, record("smoke", 1))
    assert [each.passed for each in store.read(path)] == [True]


def test_note_of_another_run_stays_where_one_ends(path, monkeypatch):
    first, second, third = (noted(path, monkeypatch, runs=True) for _ in range(3))
    assert len({first, second, third}) == 3
    unfinished_runs.end(path, second, record("smoke", 1))
    unfinished_runs.forget(path, first)
    monkeypatch.setattr(process_name, "runs", lambda _: False)
    assert unfinished_runs.settle(path) == 1


def test_run_of_another_machine_is_lost_after_a_week(path, monkeypatch):
    for days, lost in ((6, 0), (8, 1)):
        at = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        noted(path, monkeypatch, host="another", at=at)
        assert unfinished_runs.settle(path) == lost


@pytest.mark.parametrize(("microseconds", "lost"), [(0, 0), (1, 1)])
def test_run_of_another_machine_is_lost_only_once_a_week_is_over(path, monkeypatch, microseconds, lost):
    noted(path, monkeypatch, host="another", at="2026-11-01T00:00:00.000Z")

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 11, 8, microsecond=microseconds, tzinfo=tz)

    monkeypatch.setattr(unfinished_runs, "datetime", Later)
    assert unfinished_runs.settle(path) == lost


def test_file_of_an_older_program_has_no_runs_and_is_left_as_it_is(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    before = path.read_bytes()
    assert unfinished_runs.settle(path) == 0
    assert path.read_bytes() == before


def test_note_that_only_a_newer_program_reads_stays_and_keeps_no_other_back(path, monkeypatch):
    newer, _ = (noted(path, monkeypatch, runs=True) for _ in range(2))
    with sqlite3.connect(path) as connection:
        body = zlib.compress(b'{"kind": "smoke", "later": 1}')
        connection.execute("UPDATE started SET body = ? WHERE token = ?", (body, newer))
    connection.close()
    monkeypatch.setattr(process_name, "runs", lambda _: False)
    assert (unfinished_runs.settle(path), unfinished_runs.settle(path)) == (1, 0)
