"""A checkpoint's bytes stay readable by later versions, and what a manifest may hold is bounded."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from trainer.storage import checkpoint_store as store
from trainer.storage.checkpoint_store import DamagedCheckpointError, facts_of, read, stored, write

CONTENT = b"ab"
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


def manifest_of(content: Any) -> bytes:
    """Return a manifest as version 1 writes it, in other words than the code."""
    checksum = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return (json.dumps({"content": content, "sha256": checksum}, indent=1) + "\n").encode()


def whole(**changes: Any) -> dict[str, Any]:
    files = {"a.json": {"bytes": len(CONTENT), "sha256": CHECKSUM}}
    return {"format": 1, "step": 7, "files": files, "facts": {"loss": 0.5}} | changes


def planted(folder: Path, content: Any) -> store.Stored:
    path = folder / "step-000000000007"
    path.mkdir()
    (path / "a.json").write_bytes(CONTENT)
    (path / "manifest.json").write_bytes(content if isinstance(content, bytes) else manifest_of(content))
    return store.Stored(step=7, path=path)


def test_checkpoint_is_written_byte_identical_as_format_1(tmp_path: Path) -> None:
    path = write(tmp_path, 7, {"a.json": [b"a", memoryview(b"b")]}, {"loss": 0.5})
    assert path == tmp_path / "step-000000000007"
    assert (path / "manifest.json").read_bytes() == manifest_of(whole())
    assert sorted(file.name for file in path.iterdir()) == ["a.json", "manifest.json"]


def test_checkpoint_of_format_1_is_read(tmp_path: Path) -> None:
    assert read(planted(tmp_path, whole())) == ({"a.json": CONTENT}, {"loss": 0.5})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (whole(files=[]), "no manifest of this format"),
        (whole(files=None), "no manifest of this format"),
        (whole(facts=[]), "no manifest of this format"),
        (whole(step="7"), "no manifest of this format"),
        (whole(step=True), "no manifest of this format"),
        (whole(step=7.0), "no manifest of this format"),
        (whole(step=8), "the manifest is of step 8"),
        ({"format": 1}, "no manifest of this format"),
        (whole(format=2), "format 2, this trainer reads 1"),
        ({"format": 2}, "format 2, this trainer reads 1"),
        ({}, r"no manifest \(KeyError\)"),
        (None, r"no manifest \(TypeError\)"),
        (b"[]", r"no manifest \(TypeError\)"),
        (b"{}", r"no manifest \(KeyError\)"),
        (b"{", r"no manifest \(JSONDecodeError\)"),
        (b"[" * 100_000, r"no manifest \(RecursionError\)"),
        (manifest_of(whole()).replace(b"0.5", b"0.6"), "its own checksum differs"),
        (manifest_of(whole())[:-1], "its own checksum differs"),
    ],
)
def test_file_that_is_no_manifest_is_named_as_what_it_is(content: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(DamagedCheckpointError, match=words) as caught:
        read(planted(tmp_path, content))
    assert words.startswith("the manifest") or str(caught.value).startswith("manifest.json: ")


@pytest.mark.parametrize("name", ["../a.json", "/a.json", ".a", "a/b", "", "ä", "aä", "a" * 101, "a\n", "-a", "_a"])
def test_name_that_is_no_plain_file_name_is_refused(name: str, tmp_path: Path) -> None:
    record = whole()["files"]["a.json"]
    with pytest.raises(DamagedCheckpointError, match="no manifest of this format"):
        read(planted(tmp_path, whole(files={"a.json": record, name: record})))


@pytest.mark.parametrize("name", ["a", "Z" * 100, "0", "a-b_c.d9"])
def test_plain_file_name_is_taken(name: str, tmp_path: Path) -> None:
    one = planted(tmp_path, whole(files={name: whole()["files"]["a.json"]}))
    (one.path / "a.json").rename(one.path / name)
    assert read(one)[0] == {name: CONTENT}


@pytest.mark.parametrize("record", [{"bytes": 3, "sha256": CHECKSUM}, {"bytes": 2, "sha256": "0" * 64}, {}])
def test_file_is_held_to_its_size_and_its_checksum(record: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(DamagedCheckpointError, match=r"a\.json: 2 bytes whose checksum is not the manifest's"):
        read(planted(tmp_path, whole(files={"a.json": record})))


def test_manifest_beyond_all_bounds_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = planted(tmp_path, whole())
    monkeypatch.setattr(store, "MOST_BYTES", len(manifest_of(whole())))
    assert read(one)[0] == {"a.json": CONTENT}
    assert len(list(facts_of(tmp_path))) == 1
    monkeypatch.setattr(store, "MOST_BYTES", len(manifest_of(whole())) - 1)
    with pytest.raises(DamagedCheckpointError, match=r"manifest\.json has \d+ bytes, and \d+ are read at most"):
        read(one)
    assert list(facts_of(tmp_path)) == []


def test_missing_file_is_named_with_the_systems_reason(tmp_path: Path) -> None:
    one = planted(tmp_path, whole())
    (one.path / "a.json").unlink()
    with pytest.raises(DamagedCheckpointError, match=rf"^a\.json: {os.strerror(errno.ENOENT)}$"):
        read(one)


def test_error_without_a_file_names_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    one = planted(tmp_path, whole())
    monkeypatch.setattr(store, "regular", broken)
    with pytest.raises(DamagedCheckpointError, match=rf"^step-000000000007: {os.strerror(errno.EIO)}$"):
        read(one)


def test_facts_of_whole_manifests_come_newest_first_and_contents_are_not_read(tmp_path: Path) -> None:
    for step in (1, 20, 3, 4):
        write(tmp_path, step, {"a.json": [CONTENT]}, {"step": step})
    (tmp_path / "step-000000000020" / "a.json").unlink()
    (tmp_path / "step-000000000003" / "manifest.json").write_bytes(b"{}")
    (tmp_path / "step-000000000004" / "manifest.json").unlink()
    assert [(one.step, facts) for one, facts in facts_of(tmp_path)] == [(20, {"step": 20}), (1, {"step": 1})]


def test_checkpoint_without_facts_is_one(tmp_path: Path) -> None:
    write(tmp_path, 1, {}, {})
    assert [facts for _, facts in facts_of(tmp_path)] == [{}]


@pytest.mark.parametrize("name", ["step-7", "step-0000000000007", "step-00000000000x", "xstep-000000000007", "notes"])
def test_names_of_twelve_digits_alone_are_checkpoints(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    assert stored(tmp_path) == []


def test_leftovers_of_a_killed_writer_are_no_part_of_the_next_checkpoint(tmp_path: Path) -> None:
    partial = tmp_path / ".step-000000000007.partial"
    partial.mkdir()
    (partial / "junk").write_bytes(b"x")
    path = write(tmp_path, 7, {"a.json": [CONTENT]}, {})
    assert sorted(file.name for file in path.iterdir()) == ["a.json", "manifest.json"]
    assert not partial.exists()


def test_sweep_removes_half_written_checkpoints_alone(tmp_path: Path) -> None:
    for name in (".step-000000000007.partial", ".step-000000000008.partial", ".other", "step-000000000009"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(b"x")
    (tmp_path / ".step-000000000001.partial").write_bytes(b"a file, of no one")
    store.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {".other", "step-000000000009"}


def test_failure_after_the_rename_is_the_one_that_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = store.sync_folder

    def fail(folder: Path) -> None:
        if folder == tmp_path:
            raise OSError(errno.EIO, "the disk")
        sync(folder)

    monkeypatch.setattr(store, "sync_folder", fail)
    with pytest.raises(OSError, match="the disk"):
        write(tmp_path, 7, {"a.json": [CONTENT]}, {})


def test_folder_is_synced_without_keeping_it_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        store.sync_folder(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_pieces_of_a_file_are_counted_and_summed(tmp_path: Path) -> None:
    record = store.write_pieces(tmp_path / "a", [b"a", memoryview(b"b"), b""])
    assert record == {"bytes": 2, "sha256": CHECKSUM}
    assert (tmp_path / "a").read_bytes() == CONTENT
    store.write_durably(tmp_path / "b", CONTENT)
    assert (tmp_path / "b").read_bytes() == CONTENT


def test_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught:
        store.write_pieces(tmp_path / "absent" / "a", [])
    assert caught.value.filename == str(tmp_path / "absent" / "a")


def test_shards_are_verified_and_not_returned(tmp_path: Path) -> None:
    files = {"a.json": [CONTENT], "shard-0.safetensors": [b"weights"], "shard-1.safetensors": [b"more"]}
    path = write(tmp_path, 7, files, {})
    (one,) = stored(tmp_path)
    assert read(one)[0] == {"a.json": CONTENT}
    (path / "shard-1.safetensors").write_bytes(b"less")
    with pytest.raises(DamagedCheckpointError, match=r"^shard-1\.safetensors: 4 bytes whose checksum is not the"):
        read(one)
    (path / "shard-1.safetensors").write_bytes(b"more")
    (path / "a.json").write_bytes(b"ba")
    with pytest.raises(DamagedCheckpointError, match=r"^a\.json: 2 bytes whose checksum is not the"):
        read(one)


def test_shard_that_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, 7, {"shard-0.safetensors": [b"weights"]}, {})
    (path / "shard-0.safetensors").rename(path / "shard-0.bin")
    os.mkfifo(path / "shard-0.safetensors")
    with pytest.raises(DamagedCheckpointError, match=r"^shard-0\.safetensors is no regular file$"):
        read(stored(tmp_path)[0])
