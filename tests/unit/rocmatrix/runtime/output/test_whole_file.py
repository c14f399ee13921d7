"""A file is written whole or not at all; neither a link nor a pipe in its place is written through."""

import errno
import os
from pathlib import Path

import pytest

from rocmatrix.runtime.output.whole_file import write_whole


def test_file_is_written_and_replaced_without_leftovers(tmp_path):
    path = tmp_path / ("n" * 255)  # as long as a name can be
    for content in (b"first", b""):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("place", [".", "/", "..", "", "folder", "link-to-folder"])
def test_folder_or_path_without_a_name_is_refused_untouched(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("link-to-folder").symlink_to("folder")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(IsADirectoryError):
        write_whole(Path(place), b"new")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("kind", ["pipe", "link-to-pipe", "/dev/null"])
def test_pipe_or_device_is_refused_and_stays(tmp_path, kind):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link-to-pipe").symlink_to("pipe")
    path = tmp_path / kind
    before = path.lstat().st_mode
    with pytest.raises(FileExistsError):
        write_whole(path, b"new")
    assert path.lstat().st_mode == before


def test_link_is_replaced_and_what_it_leads_to_stays(tmp_path):
    precious, path = tmp_path / "precious", tmp_path / "page.html"
    precious.write_text("kept")
    for target in (precious, tmp_path / "absent"):
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        write_whole(path, b"new")
        assert not path.is_symlink()
        assert path.read_bytes() == b"new"
    assert precious.read_text() == "kept"
    assert not (tmp_path / "absent").exists()


def test_link_under_the_temporary_name_is_not_followed(tmp_path):
    precious, part = tmp_path / "precious", tmp_path / f".rocmatrix-{os.getpid()}.part"
    precious.write_text("kept")
    part.symlink_to(precious)
    write_whole(tmp_path / "page.html", b"new")
    assert precious.read_text() == "kept"
    assert not os.path.lexists(part)


def test_failed_write_leaves_the_file_of_before_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("before")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "for the test")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="for the test"):
        write_whole(path, b"new")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]
