from __future__ import annotations

import errno
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from trainer.data.tables import column_store
from trainer.data.tables.column_store import ColumnStore


@pytest.fixture
def limits() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_columns_come_back_whole_and_leave_no_file(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": ["x", "", None, "ü\n"], "^b$": ["1", "2", "3", "4"]})
    kept = ColumnStore(table.columns, tmp_path)
    for part in (table[:1], table[1:1], table[1:]):
        kept.add(part)
    for _ in range(2):
        assert all(kept.column(name).equals(table[name]) for name in reversed(table.columns))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("limits")
def test_more_columns_than_files_may_be_open_at_first(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    names = [f"c{number}" for number in range(300)]
    kept = ColumnStore(names, tmp_path)
    kept.add(pl.DataFrame({name: [name] for name in names}))
    assert kept.column("c299").to_list() == ["c299"]


@pytest.mark.usefixtures("limits")
def test_more_columns_than_the_system_allows_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_store, "allow_files", lambda count: None)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    with pytest.raises(OSError) as caught:
        ColumnStore([f"c{number}" for number in range(300)], tmp_path)
    assert caught.value.errno == errno.EMFILE


def test_full_disk_is_an_error(mount_tmpfs: Callable[[str], Path]) -> None:
    disk = mount_tmpfs("size=64k")
    kept = ColumnStore(["a"], disk)
    with pytest.raises(OSError) as caught:
        for _ in range(100):
            kept.add(pl.DataFrame({"a": ["x" * 1000] * 10}))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(disk))
