from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.storage import checkpoint_store as store
from trainer.storage.checkpoint_store import DamagedCheckpointError, read, stored, write

FILES = {"state.json": b'{"a": 1}', "tensors.safetensors": bytes(range(256))}
PIECES = {name: [content[:5], memoryview(content)[5:]] for name, content in FILES.items()}
FACTS = {"validation_loss": 1.5e-5, "settings": {"epochs": 3}}


def test_written_checkpoint_is_read_back(tmp_path: Path) -> None:
    write(tmp_path / "checkpoints", 7, PIECES, FACTS)
    (one,) = stored(tmp_path / "checkpoints")
    assert one.step == 7
    assert read(one) == (FILES, FACTS)


def test_newest_comes_first(tmp_path: Path) -> None:
    for step in (3, 1_000_000_000, 20):
        write(tmp_path, step, PIECES, {})
    (tmp_path / ".step-000000000099.partial").mkdir()
    (tmp_path / "notes").mkdir()
    assert [one.step for one in stored(tmp_path)] == [1_000_000_000, 20, 3]
    store.sweep(tmp_path)
    assert not list(tmp_path.glob(".*"))
    assert stored(tmp_path / "absent") == []


def test_files_and_both_folders_are_synced_and_the_name_comes_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    write(tmp_path, 7, PIECES, {})
    partial = ".step-000000000007.partial"
    assert done == ["state.json", "tensors.safetensors", "manifest.json", partial, "rename", tmp_path.name]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["state.json", "tensors.safetensors", "manifest.json"]), st.data())
def test_flipped_bit_is_always_found(tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("flip")
    path = write(folder, 7, PIECES, FACTS) / name
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises(DamagedCheckpointError):
        read(stored(folder)[0])


@pytest.mark.parametrize("name", ["state.json", "tensors.safetensors", "manifest.json"])
def test_cut_is_always_found(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, 7, PIECES, FACTS) / name
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedCheckpointError):
            read(stored(tmp_path)[0])
    path.unlink()
    with pytest.raises(DamagedCheckpointError, match=name):
        read(stored(tmp_path)[0])


def test_number_written_otherwise_is_damage_too(tmp_path: Path) -> None:
    path = write(tmp_path, 7, PIECES, FACTS) / "manifest.json"
    assert b"1.5e-05" in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(b"1.5e-05", b"1.5E-05"))
    with pytest.raises(DamagedCheckpointError, match="checksum"):
        read(stored(tmp_path)[0])


def test_checkpoint_under_another_name_is_damaged(tmp_path: Path) -> None:
    write(tmp_path, 7, PIECES, {}).rename(tmp_path / "step-000000000009")
    with pytest.raises(DamagedCheckpointError, match="step 7"):
        read(stored(tmp_path)[0])


def test_another_format_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "FORMAT", 2)
    write(tmp_path, 7, PIECES, {})
    monkeypatch.setattr(store, "FORMAT", 1)
    with pytest.raises(DamagedCheckpointError, match="format 2, this trainer reads 1"):
        read(stored(tmp_path)[0])


@pytest.mark.parametrize("call", range(6))
def test_failure_at_any_moment_leaves_the_one_before_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    write(tmp_path, 7, PIECES, FACTS)
    calls, sync, rename = iter(range(100)), os.fsync, Path.rename

    def maybe(action: Any, *arguments: Any) -> Any:
        if next(calls) == call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return action(*arguments)

    monkeypatch.setattr(os, "fsync", lambda handle: maybe(sync, handle))
    monkeypatch.setattr(Path, "rename", lambda path, target: maybe(rename, path, target))
    try:
        write(tmp_path, 8, PIECES, FACTS)
        whole = True  # syncing a folder is asked for, not relied on: some file systems cannot
    except OSError:
        whole = False
    assert [one.step for one in stored(tmp_path)] == ([8, 7] if whole else [7])
    assert all(read(one) == (FILES, FACTS) for one in stored(tmp_path))
    assert not list(tmp_path.glob(".*"))
    assert whole == (call in (3, 5))


def test_checkpoint_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    path = write(tmp_path, 7, PIECES, FACTS)
    (path / "state.json").write_bytes(b"damaged")
    write(tmp_path, 7, PIECES, FACTS)
    assert read(stored(tmp_path)[0]) == (FILES, FACTS)


def test_error_names_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError) as caught:
        store.write_durably(tmp_path / "model.pt", b"weights")
    assert caught.value.filename == str(tmp_path / "model.pt")
