from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from trainer.runtime.errors import TrainerError, from_os_error
from trainer.storage import run_folder
from trainer.storage.checkpoint_store import path_of
from trainer.storage.run_folder import fresh_name, open_run


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_run_appears_at_the_end_and_whole(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "TRAINING"
    with open_run(output, "one", need_bytes=1) as folder:
        record = folder.write("model.pt", b"weights")
        assert entries(output) == [".one.partial"]
    assert entries(output) == ["one"]
    assert (output / "one" / "model.pt").read_bytes() == b"weights"
    assert record == {"bytes": 7, "sha256": hashlib.sha256(b"weights").hexdigest()}


def test_files_are_on_the_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, rename = os.fsync, Path.rename

    def fsync(handle: int) -> None:
        done.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        sync(handle)

    def move(path: Path, target: Path) -> Path:
        done.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", move)
    with open_run(tmp_path, "one", need_bytes=1) as folder:
        folder.write("model.pt", b"weights")
    assert done == ["model.pt", ".one.partial", "rename", tmp_path.name]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_failure_leaves_nothing(tmp_path: Path, failure: type[BaseException]) -> None:
    def train() -> None:
        with open_run(tmp_path, "one", need_bytes=1) as folder:
            folder.write("model.pt", b"weights")
            raise failure

    with pytest.raises(failure):
        train()
    assert entries(tmp_path) == []


def test_rename_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, target: Path) -> NoReturn:
        raise OSError(errno.EIO, "injected", str(path))

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="injected"), open_run(tmp_path, "one", need_bytes=1):
        pass
    assert entries(tmp_path) == []


def test_run_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with pytest.raises(TrainerError, match="RM540") as caught, open_run(tmp_path, "one", need_bytes=1):
        pass
    assert caught.value.where == str(tmp_path / "one")
    assert entries(tmp_path) == ["one"]


def test_run_that_appeared_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught, open_run(tmp_path, "one", need_bytes=1):
        (tmp_path / "one").mkdir()
        (tmp_path / "one" / "model.pt").touch()
    assert caught.value.errno in (errno.ENOTEMPTY, errno.EEXIST)
    assert entries(tmp_path) == ["one"]


def test_folder_of_a_run_without_settings_is_named_and_kept(tmp_path: Path) -> None:
    (tmp_path / ".one.partial").mkdir()
    with pytest.raises(TrainerError, match="RM540") as caught, open_run(tmp_path, "one", need_bytes=1):
        pass
    assert f"delete {tmp_path / '.one.partial'}" in caught.value.next
    assert entries(tmp_path) == [".one.partial"]


def killed(output: Path, file: str = "run.json") -> Path:
    """Return the folder of a run called `one` whose process was killed once it had written `file`."""
    partial = output / ".one.partial"
    (partial / file).parent.mkdir(parents=True)
    (partial / file).touch()
    return partial


def test_run_that_was_killed_before_a_checkpoint_keeps_none_of_its_name_away(tmp_path: Path) -> None:
    (killed(tmp_path) / "telemetry.jsonl").touch()
    with open_run(tmp_path, "one", need_bytes=1) as folder:
        assert list(folder.partial.iterdir()) == []
    assert [each.name for each in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize("file", ["most_rows.json", f"{path_of(Path('checkpoints'), 1)}/manifest.json"])
def test_killed_run_that_can_be_resumed_is_kept(tmp_path: Path, file: str) -> None:
    (killed(tmp_path, file) / "run.json").touch()
    with pytest.raises(TrainerError, match="RM540"), open_run(tmp_path, "one", need_bytes=1):
        pytest.fail("it was taken for abandoned")
    assert (tmp_path / ".one.partial" / file).exists()


def test_run_that_another_process_holds_is_not_abandoned(tmp_path: Path) -> None:
    handle = os.open(killed(tmp_path), os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        with pytest.raises(TrainerError, match="RM540"), open_run(tmp_path, "one", need_bytes=1):
            pytest.fail("it was taken for abandoned")
    finally:
        os.close(handle)
    assert (tmp_path / ".one.partial" / "run.json").exists()


def test_fresh_names_sort_by_time_and_differ() -> None:
    names = {fresh_name() for _ in range(1000)}
    assert len(names) == 1000
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{8}", name) for name in names)


def test_free_disk_is_checked_before_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=999))
    with pytest.raises(TrainerError, match="RM543") as caught, open_run(tmp_path, "one", need_bytes=1000):
        pass
    assert "needs about 1,000 bytes, 999 are free" in caught.value.what
    assert entries(tmp_path) == []


def test_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError), open_run(tmp_path / "file", None, need_bytes=1):
        pass
    with pytest.raises(NotADirectoryError), open_run(tmp_path / "file" / "below", None, need_bytes=1):
        pass


def test_injected_full_disk_names_the_file_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(run_folder.os, "fsync", full)
    with pytest.raises(OSError) as caught, open_run(tmp_path, "one", need_bytes=1) as folder:
        folder.write("model.pt", b"weights")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / ".one.partial" / "model.pt"))
    assert entries(tmp_path) == []


def test_disk_that_is_really_full(mount_tmpfs: Callable[[str], Path]) -> None:
    disk = mount_tmpfs("size=64k")
    with pytest.raises(OSError) as caught, open_run(disk, "one", need_bytes=1) as folder:
        folder.write("model.pt", b"x" * 1_000_000)
    assert caught.value.errno == errno.ENOSPC
    assert entries(disk) == []


def test_disk_that_is_really_read_only(mount_tmpfs: Callable[[str], Path]) -> None:
    disk = mount_tmpfs("ro")
    with pytest.raises(OSError) as caught, open_run(disk, "one", need_bytes=1):
        pass
    assert caught.value.errno == errno.EROFS


@pytest.mark.parametrize("name", ["/proc/no-such-folder", "x" * 300])
def test_output_where_no_folder_can_be_made_is_a_coded_error(tmp_path: Path, name: str) -> None:
    try:
        with open_run(tmp_path / name, "one", need_bytes=1):
            pytest.fail("the folder was made")
    except TrainerError as error:
        found: TrainerError | None = error
    except OSError as error:
        found = from_os_error(error)
    assert found is not None and found.code == "RM544"
