"""Where a command may write; device nodes are made in the test's own folder."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest
from safetensors import SafetensorError

from trainer.runtime.errors import TrainerError, from_os_error
from trainer.storage.output_file import OWN, require_output, whole, write_whole

FULL, NULL = os.makedev(1, 7), os.makedev(1, 3)


def node(folder: Path, device: int) -> Path:
    path = folder / "node"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, device)
        path.open("wb").close()
    except OSError:
        pytest.skip("making and opening a device node takes root and a file system with devices")
    return path


def refused(output: Path, *, through: bool = True, **inputs: Path) -> str:
    with pytest.raises(TrainerError) as caught:
        require_output(output, "--output", inputs, through=through)
    assert caught.value.code == "RM500"
    return caught.value.what


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_input_is_never_an_output_by_whatever_name(tmp_path: Path, link) -> None:
    data, other = tmp_path / "t.csv", tmp_path / "other.csv"
    data.write_text("x\n")
    link(data, other)
    for output in (data, other, tmp_path / "." / "t.csv"):
        assert "--output" in refused(output, data=data)
    require_output(tmp_path / "new.csv", "--output", {"data": data})


def test_folder_a_missing_one_and_a_socket_are_refused(tmp_path: Path) -> None:
    assert "is a folder" in refused(tmp_path)
    assert "there is no folder" in refused(tmp_path / "nodir" / "x.csv")
    os.mknod(tmp_path / "socket", stat.S_IFSOCK | 0o600)
    assert "no ordinary file" in refused(tmp_path / "socket")


def test_format_that_needs_a_file_refuses_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no ordinary file" in refused(tmp_path / "pipe", through=False)
    require_output(tmp_path / "pipe", "--output", {})


@pytest.mark.parametrize("linked", [False, True])
def test_pipe_is_written_to_and_stays(tmp_path: Path, linked: bool) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(tmp_path / "link" if linked else pipe, b"all of it")
    reader.join(timeout=5)
    assert read == [b"all of it"] and pipe.is_fifo()


def test_device_is_written_to_and_stays(tmp_path: Path) -> None:
    path = node(tmp_path, NULL)
    write_whole(path, b"gone")
    assert path.is_char_device() and path.stat().st_rdev == NULL


def test_full_device_is_reported_and_stays(tmp_path: Path) -> None:
    path = node(tmp_path, FULL)
    with pytest.raises(OSError) as caught:
        write_whole(path, b"x")
    known = from_os_error(caught.value)
    assert known is not None and (known.code, known.where) == ("RM543", str(path))
    assert path.is_char_device() and list(tmp_path.iterdir()) == [path]


def test_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"after"


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt, OSError("17408 requested and 13216 written"), OSError("No space left on device (os error 28)")],
)
def test_folder_whose_writing_was_stopped_is_not_left(tmp_path: Path, error) -> None:
    with pytest.raises((KeyboardInterrupt, OSError)) as raised, whole(tmp_path / "model") as partial:
        partial.mkdir()
        (partial / "weights").write_bytes(b"half")
        raise error
    assert list(tmp_path.iterdir()) == []
    assert not isinstance(raised.value, OSError) or raised.value.errno == errno.ENOSPC


def test_folder_that_a_killed_program_left_is_not_mixed_into_the_next(tmp_path: Path) -> None:
    (tmp_path / ".model.partial").mkdir()
    (tmp_path / ".model.partial" / "model-00002-of-00002.safetensors").write_bytes(b"of another model")
    with whole(tmp_path / "model") as partial:
        partial.mkdir()
        (partial / "config.json").write_bytes(b"{}")
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["config.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_parts_of_another_program_that_writes_the_same_stay_and_those_of_a_dead_one_go(tmp_path: Path) -> None:
    alive, dead = (tmp_path / f".model.{OWN}{number}.partial" for number in (os.getppid(), 2**22 + 1))
    alive.mkdir()
    dead.write_bytes(b"half")
    with whole(tmp_path / "model") as partial:
        assert partial not in (alive, dead) and not dead.exists()
        assert partial.name == f".model.{OWN}{os.getpid()}.partial"
        partial.write_bytes(b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([alive, tmp_path / "model"])


def test_full_disk_of_safetensors_names_the_output(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as raised, whole(tmp_path / "model") as partial:
        partial.mkdir()
        raise SafetensorError("Error while serializing: IoError(Os: No space left on device (os error 28))")
    assert raised.value.filename == str(tmp_path / "model")
